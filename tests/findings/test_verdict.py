"""What bounds a step is said by the verdict and by the sentence about the steps: they must agree."""

from types import SimpleNamespace

import pytest
from small import BEFORE, event, kernel, launch, op, step, write

from tracekit.analyses import summary
from tracekit.analyses.steps import IDLES
from tracekit.engine.buckets import BOUNDS, BUCKETS, ON_THE_GPU, WALL
from tracekit.findings import diagnose
from tracekit.findings.verdict import HOST_BOUND, VERDICTS, of_the_gpu, verdict
from tracekit.profile import open_subject

LOADING, FLUSHING = "Lazy Function Loading", "Buffer Flush"


def waited(path, *spans):
    """A step in which the GPU works for a tenth, after these."""
    # Where no operator was recorded, nobody knows what the host did: silence needs a recording of that kind.
    events = [launch(-100 + k, -99.5 + k, 0) for k in range(20)] if silence in dict(spans) else [*BEFORE]
    at = 0.0
    for make, length in spans:
        events += make(at, at + length)
        at += length
    assert at == 880
    events += [step(0, 0, 1000), launch(885, 890, 1), kernel("gemm", 900, 1000, 1)]
    return open_subject([write(path, *events)]).profiles[0]


def sync(start, end):
    return [launch(start, end, 0, "cudaDeviceSynchronize")]


def compiling(start, end):
    return [op("dynamo", start, end)]


def loading(start, end):
    return [launch(start, end, 0), event("overhead", LOADING, start, end, tid=0, pid=-1)]


def flushing(start, end):
    return [launch(start, end, 0), event("overhead", FLUSHING, start, end, tid=0, pid=-1)]


def batches(start, end):
    return [event("user_annotation", "enumerate(DataLoader)#_SingleProcess.__next__", start, end)]


def queued(start, end):
    calls = [launch(start, start + 1, 2), launch(start + 1, start + 2, 3)]
    return [*calls, kernel("gemm", start + 2, start + 3, 2), kernel("gemm", end - 1, end, 3)]


def silence(_start, _end):
    return []


def dispatch(start, end):
    return [op("aten::index", start, end)]


@pytest.mark.parametrize(
    ("spans", "bounds", "idles"),
    [
        # Compiling and loading of code, or the host and the profiler, together take more than what bounds these steps.
        (((compiling, 290), (loading, 280), (sync, 310)), "sync_stall", "idles because the host waits for it"),
        (((flushing, 270), (dispatch, 250), (batches, 360)), "dataloader_bound", "waits for the next batch"),
        (((flushing, 470), (dispatch, 410)), "idle_unexplained", "waits while the profiler works"),
        (((queued, 460), (sync, 420)), "queued_not_started", "idles although work is queued"),
        (((loading, 470), (compiling, 410)), "cold_start", "waits while its code is loaded"),
        (((silence, 880),), "too_little_recorded", "waits for what was not recorded"),
    ],
)
def test_the_sentence_about_the_steps_agrees(tmp_path, spans, bounds, idles):
    profile = waited(tmp_path / "t.json", *spans)
    assert verdict(profile).id == bounds
    assert summary(profile, "steps").sentence.endswith(f"; otherwise, it mostly {idles}.")


def test_the_host_is_not_blamed_for_time_of_which_nothing_was_recorded(tmp_path):
    told = diagnose(waited(tmp_path / "t.json", (silence, 860), (sync, 20)))
    assert told.verdict.id == "idle_unexplained"
    assert not {finding.id for finding in told.all_findings} & (HOST_BOUND.keys() | {"too_little_recorded"})


@pytest.mark.parametrize("bucket", [key for key in WALL if BUCKETS[key].bound not in ("gpu", "copies", "gaps")])
def test_every_bucket_leads_to_a_verdict(bucket):
    census = SimpleNamespace(count=lambda ask: 100)
    trace = SimpleNamespace(census=census, device="cpu")
    parts = {bucket: 2e6}
    profile = SimpleNamespace(parts=parts, known_parts=parts, unknown_ns=0.0, counted_steps=1, trace=trace, health=[])
    assert verdict(profile).id in {*VERDICTS} - {"too_little_recorded"} or bucket == "unrecorded"


def said_of(path, *events):
    return diagnose(open_subject([write(path, *events)]).profiles[0])


def test_of_a_sliver_nothing_is_said(tmp_path):
    few = [step(0, 0, 30), op("aten::mm", 0, 20), launch(5, 10, 1), kernel("gemm", 12, 85, 1)]
    said = said_of(tmp_path / "few.json", *few)
    assert said.verdict.id == "too_little_recorded"
    assert said.verdict.sentence == "Too little was recorded to say what bounds a step: 4 events in 85.0 µs."
    assert said.verdict.share is None
    assert not said.all_findings
    short = said_of(tmp_path / "short.json", *BEFORE, *few)
    assert short.verdict.sentence.endswith(": 24 events in 85.0 µs.")
    many = said_of(tmp_path / "many.json", *BEFORE, *few[:-1], kernel("gemm", 12, 185, 1))
    assert of_the_gpu(many.verdict.id)


def submitted(at, length, number):
    """Kernels of as many µs, one after the other, and the calls that launch them."""
    return [
        each
        for k in range(number)
        for each in (
            launch(at + length * k, at + length * (k + 0.5), k + 1),
            kernel(f"gemm{k}", at + length * (k + 1), at + length * (k + 2), k + 1),
        )
    ]


def test_next_to_no_time_is_a_sliver_whatever_is_in_it(tmp_path):
    assert said_of(tmp_path / "a.json", *submitted(0, 0.02, 40)).verdict.id == "too_little_recorded"


def test_where_most_of_a_step_is_unknown_nothing_is_said_of_it(tmp_path):
    """Of the 100 ms recorded, the GPU's side is known from the first kernel to the end of the last: 0.9 ms."""
    operators = [op(f"aten::op{k}", 1000 * k, 1000 * k + 999) for k in range(100)]
    said = said_of(tmp_path / "a.json", *operators, *submitted(50_000, 30, 30))
    assert said.verdict.sentence == (
        "Too little was recorded to say what bounds the recording: what the GPU did is known for 900 µs of 100 ms in "
        "all."
    )
    assert not said.all_findings


def test_every_reason_for_an_idle_gpu_has_words():
    at_work = {BUCKETS[key].bound for key in (*ON_THE_GPU, "cpu_compute")}
    assert set(IDLES) == {bucket.bound for bucket in BUCKETS.values()} - at_work


def test_each_bucket_of_a_slow_host_belongs_to_one_verdict():
    assert sorted(key for keys in HOST_BOUND.values() for key in keys) == sorted(BOUNDS["host"])
