"""The cause of a slow step is the part that grew most, if it explains half of what the step took beyond the usual."""

import random

import pytest

from tests.watched.planted_steps import a_step
from tracekit.watched import Cause
from tracekit.watched.causes import NAMES, cause_of, explain, sentence
from tracekit.watched.usual import Usual

MS = 1_000_000
USUAL = a_step(0, 10 * MS, waited_ns=MS, processor_ns=9 * MS, queued_ns=0, nodes=100, edges=1_000)
SLOW = USUAL._replace(number=7, step_ns=40 * MS, host_ns=40 * MS)

CASES = {
    Cause.BATCH: {"waited_ns": 30 * MS, "worker": 2},
    Cause.COMPILATION: {"compile_ns": 25 * MS, "compiles": 1, "processor_ns": 34 * MS},
    Cause.COLLECTION: {"collect_ns": 29 * MS, "collections": 1, "processor_ns": 38 * MS},
    Cause.MEMORY: {"retries": 1},
    Cause.LARGER: {"edges": 4_000, "nodes": 400, "processor_ns": 38 * MS},
    Cause.OFF_PROCESSOR: {},
    Cause.QUEUED: {"queued_ns": 28 * MS},
    Cause.LONGER_WORK: {"processor_ns": 39 * MS},
}


@pytest.mark.parametrize("cause", CASES)
def test_the_part_that_grew_is_the_cause(cause):
    step = SLOW._replace(**CASES[cause])
    explanation = explain(step, USUAL)
    assert explanation.cause is cause is cause_of(step, USUAL)
    assert explanation.beyond_ns == 30 * MS
    assert 15 * MS <= explanation.explained_ns <= 30 * MS


def test_what_explains_less_than_half_is_no_cause():
    slow = SLOW._replace(processor_ns=9 * MS, queued_ns=14 * MS, waited_ns=15 * MS)  # 14 of 30 ms each
    assert explain(slow, USUAL).cause is Cause.UNKNOWN


def test_what_is_usual_explains_nothing():
    waits = USUAL._replace(waited_ns=8 * MS)
    slow = SLOW._replace(waited_ns=8 * MS, processor_ns=39 * MS)
    assert cause_of(slow, waits) is Cause.LONGER_WORK


def test_what_was_not_observed_explains_nothing():
    blind = USUAL._replace(processor_ns=-1, queued_ns=-1, nodes=-1, edges=-1)
    assert cause_of(blind._replace(step_ns=40 * MS, host_ns=40 * MS), blind) is Cause.UNKNOWN


def test_the_gpu_alone_took_longer():
    """The host came no later: what the GPU did is for a trace to tell."""
    assert cause_of(USUAL._replace(step_ns=40 * MS), USUAL) is Cause.UNKNOWN


def test_it_explains_no_more_than_the_step_took():
    ahead = USUAL._replace(step_ns=40 * MS, host_ns=100 * MS, waited_ns=95 * MS)  # the GPU still had work
    assert explain(ahead, USUAL).explained_ns == 30 * MS


@pytest.mark.parametrize("on_gpu", [False, True])
def test_each_cause_has_a_name_and_a_sentence(on_gpu):
    assert set(NAMES) == set(Cause)
    said = {sentence(SLOW, USUAL, explain(SLOW, USUAL)._replace(cause=cause), on_gpu) for cause in Cause}
    assert len(said) == len(Cause)


def test_planted_causes_are_found_among_noisy_parts():
    """Waits, queueing and sizes of batches scatter in every step; 12 ms are usual, and a cause takes 25 to 75 ms."""
    source, usual = random.Random(4), Usual()
    planted, caught, right = 0, 0, 0
    for number in range(6_000):
        edges = int(source.gauss(1_000, 50))
        parts = {
            "waited_ns": int(source.expovariate(1 / MS)),
            "queued_ns": int(source.expovariate(1 / MS)),
            "processor_ns": 8 * MS + 2_000 * edges,
        }
        cause, ns = None, source.randint(25 * MS, 75 * MS)
        if number > 100 and source.random() < 0.02:
            cause = source.choice([cause for cause in CASES if cause is not Cause.LARGER])
            match cause:
                case Cause.BATCH:
                    parts["waited_ns"] += ns
                case Cause.COMPILATION:
                    parts |= {"compile_ns": ns, "processor_ns": parts["processor_ns"] + ns}
                case Cause.COLLECTION:
                    parts |= {"collect_ns": ns, "processor_ns": parts["processor_ns"] + ns}
                case Cause.MEMORY:
                    parts |= {"retries": 1, "processor_ns": parts["processor_ns"] + ns}
                case Cause.QUEUED:
                    parts["queued_ns"] += ns
                case Cause.LONGER_WORK:
                    parts["processor_ns"] += ns
        off_ns = ns if cause is Cause.OFF_PROCESSOR else 0
        step_ns = sum(parts[name] for name in ("waited_ns", "queued_ns", "processor_ns")) + off_ns
        step = a_step(number, step_ns, nodes=100, edges=edges, **parts)
        slow = usual.judge(step).slow
        assert slow <= (cause is not None)
        if cause is not None:
            planted += 1
            caught += slow
            right += slow and cause_of(step, usual.typical) is cause
    assert planted > 90
    assert caught >= 0.95 * planted
    assert right >= 0.95 * caught


@pytest.mark.parametrize("working_ns", [2 * MS, 20 * MS])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.8])
def test_on_a_busy_machine_a_cause_is_not_the_queue_that_is_usual_there(share, working_ns):
    """Other work takes the core in slices; whatever computes longer waits for longer. A wait beyond that is a cause."""
    source, usual, right, caught = random.Random(5), Usual(), 0, 0
    slice_ns, ran_ns = 4 * MS, 0

    def queued(processor_ns):
        nonlocal ran_ns
        slices, ran_ns = divmod(ran_ns + processor_ns, slice_ns)
        return int(slices * slice_ns * share / (1 - share))

    others = (Cause.BATCH, Cause.COMPILATION, Cause.COLLECTION, Cause.OFF_PROCESSOR, Cause.LONGER_WORK, Cause.QUEUED)
    for number in range(4_000):
        base_ns = int(working_ns * source.gauss(1, 0.02))
        parts = {"processor_ns": base_ns, "queued_ns": queued(base_ns), "waited_ns": 0}
        cause, ns, off_ns = None, source.randint(100 * MS, 200 * MS), 0
        if number > 300 and source.random() < 0.02:
            cause = source.choice(others)
            if cause in (Cause.COMPILATION, Cause.COLLECTION, Cause.LONGER_WORK):
                queued_ns = queued(ns)
                parts["processor_ns"] += ns
                parts["queued_ns"] += queued_ns
                name = {Cause.COMPILATION: "compile_ns", Cause.COLLECTION: "collect_ns"}.get(cause)
                parts |= {name: ns + queued_ns} if name else {}
            elif cause is Cause.BATCH:
                parts["waited_ns"] = ns
            elif cause is Cause.QUEUED:
                parts["queued_ns"] += 5 * ns
            else:
                off_ns = ns
        step_ns = sum(parts[name] for name in ("waited_ns", "queued_ns", "processor_ns")) + off_ns
        step = a_step(number, step_ns, **{"compile_ns": 0, "collect_ns": 0} | parts)
        slow = usual.judge(step).slow
        if cause is not None and slow:
            caught += 1
            right += cause_of(step, usual.typical) is cause
    assert caught > 40
    assert right >= 0.95 * caught
