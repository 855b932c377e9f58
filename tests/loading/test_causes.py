"""Why a loop waited for its batches, where the answer is known: made records of workers and of the loop."""

import pytest
from msgspec.structs import replace

from tests.loading.made import LINE, MadeLoading, at, taking_turns
from tracekit.findings.late_batches import advice
from tracekit.loading.causes import explain
from tracekit.loading.record import Batch, Recorded, Request
from tracekit.loading.stalls import Loading


def explained(made, skipped=9):
    """Without the first batches, which are late in any case."""
    made.requests = made.requests[skipped:]
    explanation = explain(made.loading, made.waits(), made.within())
    assert explanation is not None
    assert sum(explanation.parts.values()) == explanation.waited_ns
    return explanation


def test_one_worker_is_slow():
    explanation = explained(taking_turns(lambda worker, _: (45.0 if worker == 2 else 6.0, 1000), 8.0, 60))
    assert (explanation.reason, explanation.worker) == ("slow_worker", 2)
    assert explanation.worker_share == 1.0
    assert explanation.slower == pytest.approx(7.5)
    assert explanation.place == LINE
    assert explanation.place_ns / explanation.blamed_ns == pytest.approx(0.9, abs=0.05)
    assert explanation.blamed_ns == pytest.approx(45e6)


def test_there_are_too_few_workers():
    explanation = explained(taking_turns(lambda *_: (93.0, 1000), 20.0, 40))
    assert explanation.reason == "few_workers"
    assert explanation.busy > 0.9
    assert explanation.needed == 5  # 93 ms / (20 + 0.7 ms)
    assert not explanation.is_faster_without
    assert explanation.place == LINE


def test_as_many_workers_as_are_needed_are_enough():
    made = taking_turns(lambda *_: (93.0, 1000), 20.0, 40, workers=5)
    assert made.within()[1] - made.within()[0] < 1.1 * 40 * 20.7e6 + 93e6


def test_some_batches_are_larger():
    explanation = explained(taking_turns(lambda _, number: (80.0, 8000) if number % 10 == 3 else (10.0, 1000), 6.0, 60))
    assert explanation.reason == "larger_batches"
    assert explanation.larger == pytest.approx(8.0, rel=0.01)
    assert explanation.blamed_ns == pytest.approx(80e6)


def test_some_batches_are_slow_while_the_others_fill_the_queue():
    explanation = explained(taking_turns(lambda _, number: (80.0 if number % 10 == 3 else 10.0, 1000), 6.0, 60))
    assert explanation.reason == "slow_batches"
    assert explanation.slower == pytest.approx(8.0)
    assert explanation.others_idle > 0.5


def test_the_queue_was_full_before():
    made = MadeLoading(2)
    for number in range(20):
        worker, turn = number % 2, number // 4 * 200
        began = turn + (number % 4 // 2) * 30
        made.batch(worker, number, began, began + 25, began + 30)
        asked = turn + 20 + number % 4
        made.asks(worker, number, asked, max(asked, began + 30.7) + 0.2)
    explanation = explained(made, skipped=4)
    assert explanation.reason == "full_queue"
    assert explanation.busy < 0.4


def test_what_it_takes_to_hand_batches_over():
    made = MadeLoading(2)
    for number in range(20):
        began = number * 50.0
        made.batch(number % 2, number, began, began + 1, began + 2, sending=began + 12, sent=began + 40)
        made.asks(number % 2, number, began + 5, began + 42, processor=37.0)
    explanation = explained(made)
    assert explanation.reason == "handing_over"
    assert explanation.is_faster_without
    assert explanation.parts == {"pickling": 77 * 10**6, "sending": 308 * 10**6, "receiving": 22 * 10**6}


def test_a_loop_that_gets_no_core():
    made = MadeLoading(2)
    for number in range(20):
        began = number * 50.0
        made.batch(number % 2, number, began, began + 1, began + 2)
        made.asks(number % 2, number, began + 2, began + 30, processor=0.3)
    explanation = explained(made)
    assert explanation.reason == "delayed"


def test_the_sampler_draws_in_the_loop():
    made = MadeLoading(2)
    for number in range(20):
        began = number * 50.0
        made.batch(number % 2, number, began, began + 1, began + 2)
        made.asks(number % 2, number, began + 10, began + 10.1, returned=began + 30)
    explanation = explained(made)
    assert explanation.reason == "drawing"


def test_the_first_batches_of_an_epoch():
    made = taking_turns(lambda *_: (60.0, 1000), 30.0, 30, workers=3)
    explanation = explain(made.loading, made.waits(), made.within())
    assert explanation is not None
    assert explanation.reason == "starting"


def test_an_epoch_in_which_numbers_begin_again():
    made = MadeLoading(1)
    for number, began in ((0, 0.0), (0, 100.0)):
        made.batch(0, number, began, began + 9, began + 10)
        made.asks(0, number, began, began + 10.6)
    first, second = (made.loading.stall(request) for request in made.requests)
    assert (first.batch.began_ns, second.batch.began_ns) == (at(0), at(100))


EPOCH_MS = 1500.0  # from the begin of one to that of the next; the loop evaluates at its end


def in_epochs(made, *, persist, epochs=5):
    """Why a loop waits that does the same in each epoch, whose workers are new ones unless they persist."""
    recorded: dict[int, Recorded] = {}
    for epoch in range(epochs):
        later_ns, others = round(epoch * EPOCH_MS * 1e6), 0 if persist else 1000 * epoch
        for one in made.records():
            process = one.facts.process + others
            facts = replace(one.facts, process=process, began_ns=one.facts.began_ns + later_ns)
            of_process = recorded.setdefault(process, Recorded(facts, [], [], [], one.places))
            of_process.batches.extend(
                Batch(*batch[:2], *(ns + later_ns for ns in batch[2:8]), *batch[8:]) for batch in one.batches
            )
            of_process.requests.extend(
                Request(request.process + others, *request[1:3], *(ns + later_ns for ns in request[3:]))
                for request in one.requests
            )
            of_process.samples.extend(sample._replace(at_ns=sample.at_ns + later_ns) for sample in one.samples)
    loading = Loading(recorded.values())
    waits = [(one.asked_ns, one.returned_ns) for one in loading.requests if one.returned_ns - one.asked_ns > 1e6]
    explanation = explain(loading, waits, (loading.requests[0].asked_ns, loading.requests[-1].returned_ns))
    assert explanation is not None
    return explanation


@pytest.mark.parametrize("persist", [True, False])
def test_there_are_too_few_workers_in_each_epoch(persist):
    explanation = in_epochs(taking_turns(lambda *_: (93.0, 1000), 20.0, 30), persist=persist)
    assert (explanation.reason, explanation.workers) == ("few_workers", 3)
    assert explanation.busy > 0.95
    assert explanation.needed == 5  # as in a single epoch, whatever lies between two


@pytest.mark.parametrize("persist", [True, False])
def test_the_same_worker_is_slow_in_each_epoch(persist):
    made = taking_turns(lambda worker, _: (45.0 if worker == 2 else 6.0, 1000), 8.0, 30)
    explanation = in_epochs(made, persist=persist)
    assert (explanation.reason, explanation.worker) == ("slow_worker", 2)
    assert explanation.worker_share > 0.95
    assert explanation.slower == pytest.approx(7.5)


@pytest.mark.parametrize("persist", [True, False])
def test_workers_are_seen_to_persist(persist):
    explanation = in_epochs(taking_turns(lambda *_: (60.0, 1000), 30.0, 6), persist=persist)
    assert (explanation.reason, explanation.persist) == ("starting", persist)
    assert ("persistent_workers" in advice(explanation)) is not persist


@pytest.mark.parametrize("persist", [True, False])
def test_the_workers_of_other_epochs_are_not_idle(persist):
    made = taking_turns(lambda _, number: (80.0 if number % 4 == 3 else 30.0, 1000), 1.0, 30, workers=2, prefetch=9)
    explanation = in_epochs(made, persist=persist)
    assert explanation.others_idle < 0.1


def test_a_worker_is_not_compared_with_those_of_another_loader():
    """As in `zip(labelled, unlabelled)`: one loader, with a single worker, is slow, and the other one has two."""
    made, other = taking_turns(lambda *_: (40.0, 1000), 2.0, 30, workers=1), MadeLoading(2)
    for number in range(30):
        asked = (made.requests[number].returned_ns - at(0)) / 1e6 + 0.1
        other.batch(number % 2, number, asked - 9, asked - 6, asked - 4)
        other.asks(number % 2, number, asked, asked + 0.5)
    records = made.records()
    for one in other.records():
        others = replace(one.facts, process=one.facts.process + 100, loader=one.facts.workers)
        requests = [request._replace(process=request.process + 100) for request in one.requests]
        records.append(one._replace(facts=others, requests=requests))
    explanation = explain(Loading(records), made.waits()[3:], made.within())
    assert explanation is not None
    assert (explanation.reason, explanation.workers) == ("few_workers", 1)
    assert explanation.busy > 0.95
    assert explanation.making_ns == pytest.approx(40e6)
    assert explanation.working_ns == pytest.approx(1.5e6, rel=0.05)  # of its own batches, without the other's waits


def test_nothing_is_said_where_most_is_unknown():
    made = taking_turns(lambda *_: (60.0, 1000), 3.0, 30)
    elsewhere = [(at(10_000), at(20_000))]
    assert explain(made.loading, elsewhere, elsewhere[0]) is None
    made.batches = [[], [], []]
    assert explain(made.loading, made.waits(), made.within()) is None
