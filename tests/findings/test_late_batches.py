"""What a report says of batches that came late, where the workers of the loader recorded themselves."""

import pytest
from small import event, launch, step, write

from tests.loading.made import MadeLoading, taking_turns
from tracekit.base import disclosure
from tracekit.confidential import Confidential
from tracekit.findings import diagnose, late_batches
from tracekit.findings.rules import data_loading
from tracekit.loading.causes import explain
from tracekit.profile import open_subject


def explained(made, skipped=9):
    made.requests = made.requests[skipped:]
    return explain(made.loading, made.waits(), made.within())


def slow_third(worker, _):
    return (45.0 if worker == 2 else 6.0, 1000)


def found(folder, made, skipped=9):
    """The finding about a trace of that loop, with what its workers recorded beside it."""
    (profile,) = open_subject([made.trace(folder, skipped)]).profiles
    return next((finding for finding in diagnose(profile).all_findings if finding.id == "dataloader_bound"), None)


def test_the_worker_and_its_line_are_named(tmp_path):
    finding = found(tmp_path, taking_turns(slow_third, 8.0, 60))
    assert "for batches of worker 2. It takes 45.0 ms for one, 4" in finding.title
    assert "ms of them in radius_graph at data.py:88: 7.5 × as long as the other 2 workers" in finding.title
    assert (finding.where.file, finding.where.line) == ("data.py", 88)
    assert "More workers do not help" in finding.advice
    assert finding.advice.startswith("Make radius_graph at data.py:88 cheaper: it takes 4")


@pytest.mark.parametrize("pins", [True, False])
def test_batches_are_compared_without_pinning_only_where_they_are_pinned(pins):
    made = MadeLoading(2)
    for number in range(20):
        began = number * 50.0
        made.batch(number % 2, number, began, began + 1, began + 2)
        made.asks(number % 2, number, began + 2, began + 30, processor=0.3)
    explanation = explained(made)
    assert explanation.reason == "delayed"
    assert ("pin_memory" in late_batches.advice(explanation, pins)) is pins


@pytest.mark.parametrize(("source", "pins"), [("Pinned", True), ("Pageable", False)])
def test_pinned_copies_tell_that_batches_are_pinned(tmp_path, source, pins):
    copy = event("gpu_memcpy", f"Memcpy HtoD ({source} -> Device)", 5, 9, tid=7, pid=0, correlation=1)
    trace = write(tmp_path / "t.json", step(0, 0, 20), launch(1, 2, 1, "cudaMemcpyAsync"), copy)
    (profile,) = open_subject([trace]).profiles
    assert data_loading.copies_pinned(profile) is pins


def test_a_confidential_report_names_stand_ins(tmp_path):
    with disclosure.confidential(Confidential()):
        finding = found(tmp_path, taking_turns(slow_third, 8.0, 60))
        assert "worker 2" in finding.title
        assert "data.py" not in finding.title
        assert finding.where.line == 88


def test_too_few_workers():
    explanation = explained(taking_turns(lambda *_: (93.0, 1000), 20.0, 40))
    assert late_batches.why(explanation).startswith(": its 3 workers are busy 100.0 % of each epoch")
    assert "Each takes 93.0 ms for a batch, 8" in late_batches.why(explanation)
    assert "Use 5 workers (num_workers=5)" in late_batches.advice(explanation)


def test_more_workers_than_there_are_cores_are_no_advice():
    explanation = explained(taking_turns(lambda *_: (93.0, 1000), 20.0, 40, cores=4))
    assert "num_workers" not in late_batches.advice(explanation)
    assert "the process may use only 4 cores" in late_batches.advice(explanation)


def test_more_workers_are_never_advised_where_they_would_be_slower():
    made = MadeLoading(2)
    for number in range(20):
        began = number * 50.0
        made.batch(number % 2, number, began, began + 1, began + 2, sending=began + 12, sent=began + 40)
        made.asks(number % 2, number, began + 5, began + 42, processor=37.0)
    explanation = explained(made)
    assert "but not handed over: 7.00 ms pickling, 28.0 ms sending, 2.00 ms receiving" in late_batches.why(explanation)
    advice = late_batches.advice(explanation)
    assert "Use num_workers=0: it takes 2.00 ms to make a batch, and 30.0 ms to receive one from a worker" in advice


def test_larger_and_slow_batches():
    larger = explained(taking_turns(lambda _, number: (80.0, 8000) if number % 10 == 3 else (10.0, 1000), 6.0, 60))
    assert "8.0 × as large as most" in late_batches.why(larger)
    slow = explained(taking_turns(lambda _, number: (80.0 if number % 10 == 3 else 10.0, 1000), 6.0, 60))
    assert "8.0 × as long to make as most, and are no larger: 80.0 ms" in late_batches.why(slow)
    assert "batches are given out in order" in late_batches.why(slow)
    assert "prefetch_factor" in late_batches.advice(slow)


@pytest.mark.parametrize("beside", [None, "damaged"])
def test_without_records_it_is_not_known_what_workers_do(tmp_path, beside):
    made = taking_turns(slow_third, 8.0, 60)
    if beside:
        (tmp_path / "loader").mkdir()
        (tmp_path / "loader" / "1-1.loading").write_bytes(b"tracekit.loading/1")
    made.write = lambda folder: None
    finding = found(tmp_path, made)
    assert "worker 2" not in finding.title
    assert finding.title.endswith("a step, in 16 of 48 steps")
    assert "so that the workers record which batches are slow" in finding.advice


def test_records_of_another_time_explain_nothing(tmp_path):
    made = taking_turns(slow_third, 8.0, 60)
    late = taking_turns(slow_third, 8.0, 60)
    late.requests = [
        one._replace(**{moment: getattr(one, moment) + 10**12 for moment in ("asked_ns", "got_ns", "returned_ns")})
        for one in late.requests
    ]
    made.write = late.write
    assert "worker 2" not in found(tmp_path, made).title
