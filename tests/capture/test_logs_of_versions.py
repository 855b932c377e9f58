"""The compiler's log in other versions and on other machines: records with the wording that they use."""

import json
import logging
from types import SimpleNamespace

import pytest

from tracekit.capture.compiler import CompileRecorder, effective
from tracekit.capture.job import Job
from tracekit.compile_log.ledger import ledger
from tracekit.run import Requested

REQUESTED = Requested(compile=True, backend="inductor", mode="reduce-overhead")
GRAPHS = Job(stage="profile", program="", device="cuda", requested=REQUESTED)


def structured(log, payload=None, **metadata):
    log.handle(made(log, logging.DEBUG, "", payload=payload, metadata=metadata))


def made(log, level, text, **more):
    record = logging.LogRecord(log.name, level, "f.py", 1, text, (), None)
    record.created = 100.0
    vars(record).update(more)
    return record


def span(log, name, start_us, end_us, compile_id=None, **metadata):
    for phase, at in (("B", start_us), ("E", end_us)):
        event = {"name": name, "ph": phase, "ts": at, "args": {"compile_id": compile_id} if compile_id else {}}
        structured(log, json.dumps(event), chromium_event={}, **metadata)


@pytest.fixture
def listening():
    """A recorder that is attached to torch's logs; no record that it gets goes anywhere else."""
    with CompileRecorder() as recorder:
        trace = logging.getLogger("torch.__trace")
        before, trace.propagate = trace.propagate, False
        yield SimpleNamespace(recorder=recorder, trace=trace, ledger=lambda: ledger(recorder, []))
        trace.propagate = before


def warn(name, text):
    log = logging.getLogger(name)
    before, log.propagate = log.propagate, False
    log.warning(text)
    log.propagate = before


def test_torch_2_6_tells_the_id_beside_the_event(listening):
    span(listening.trace, "entire_frame_compile", 10, 90, frame_id=3, frame_compile_id=1)
    structured(
        listening.trace,
        "3/0: L['x'].size()[0] == 4  # train.py:9 in forward",
        artifact={"name": "recompile_reasons", "encoding": "string"},
        frame_id=3,
        frame_compile_id=1,
    )
    (entry,) = listening.ledger().compiles
    assert (entry.id, entry.kind, entry.guard) == ("3/1", "recompile", "L['x'].size()[0] == 4")
    assert (entry.start_ns, entry.end_ns) == (10_000, 90_000)


def test_the_limit_of_torch_2_6_is_called_a_cache_size(listening):
    warn(
        "torch._dynamo.convert_frame",
        "torch._dynamo hit config.cache_size_limit (8)\n   function: 'forward' (train.py:9)\n"
        "   last reason: 0/0: L['self'].k == 0\nTo log all recompilation reasons, use TORCH_LOGS=\"recompiles\".\n",
    )
    (limit,) = listening.ledger().limits
    assert (limit.name, limit.file, limit.line, limit.reason) == ("forward", "train.py", 9, "0/0: L['self'].k == 0")


def test_the_newer_limit_over_all_entries_is_one_too(listening):
    warn(
        "torch._dynamo.convert_frame",
        "torch._dynamo hit config.accumulated_recompile_limit (256)\n   function: 'forward' (train.py:9)\n"
        "   last reason: 0/0: k == 0\nTo log all",
    )
    assert len(listening.ledger().limits) == 1


def test_backward_autotuning_and_recorded_graphs_are_told_apart(listening):
    span(listening.trace, "dynamo", 0, 10, "0/0")
    span(listening.trace, "entire_backward_compile", 20, 30, "0/0")
    span(listening.trace, "CachingAutotuner.benchmark_all_configs", 40, 50)
    span(listening.trace, "CUDAGraphNode.record", 60, 70, "0/0")
    kinds = [entry.kind for entry in listening.ledger().compiles]
    assert kinds == ["first", "backward", "autotune", "cudagraph"]


def test_spans_of_torch_2_6_and_of_tuning_are_compilations(listening):
    span(listening.trace, "CUDAGraphTreeManager.record_function", 10, 40, frame_id=0, frame_compile_id=0)
    span(listening.trace, "CachingAutotuner.coordinate_descent_tuning", 50, 60)
    assert [(each.kind, each.span) for each in listening.ledger().compiles] == [
        ("cudagraph", "CUDAGraphTreeManager.record_function"),
        ("autotune", "CachingAutotuner.coordinate_descent_tuning"),
    ]


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("cudagraphify.get_container", "default"),  # prepared, but then nothing was recorded
        ("CUDAGraphNode.record", "reduce-overhead"),
        ("CUDAGraphTreeManager.record_function", "reduce-overhead"),
    ],
)
def test_graphs_are_claimed_only_where_one_was_recorded(listening, name, mode):
    span(listening.trace, "dynamo", 0, 10, "0/0")
    span(listening.trace, name, 20, 30, "0/0")
    assert effective(GRAPHS, listening.ledger()).mode == mode


def test_graphs_that_were_prepared_for_sizes_that_never_came_again_say_so(listening):
    span(listening.trace, "dynamo", 0, 10, "0/0")
    for n in range(3):
        span(listening.trace, "cudagraphify.get_container", 20 + 20 * n, 30 + 20 * n)
    (note,) = effective(GRAPHS, listening.ledger()).notes
    assert note.startswith("no CUDA graph was recorded: graphs were prepared 3 times, and each is recorded only when")


@pytest.mark.parametrize("log", ["cudagraphs", "perf_hints"])
def test_a_graph_that_is_not_recorded_says_why_and_where(listening, log):
    reason = 'mutated inputs (1 instances). Found from : \n   File "train.py", line 7, in forward\n    x.add_(1)\n'
    warn(f"torch._inductor.cudagraph_utils.__{log}", f"skipping cudagraphs due to {reason}")
    entries = listening.ledger()
    (skip,) = entries.skips
    assert (skip.compile, skip.reason, skip.file, skip.line) == (None, "mutated inputs (1 instances)", "train.py", 7)
    span(listening.trace, "dynamo", 0, 10, "0/0")
    outcome = effective(GRAPHS, listening.ledger())
    assert outcome.mode == "default"
    assert outcome.notes == ["no CUDA graph was recorded (mutated inputs (1 instances))"]


def test_a_skip_is_told_in_the_metrics_where_no_warning_was_heard(listening):
    metrics = {"compile_id": "0/1", "cudagraph_skip_reason": "skipping cudagraphs due to cpu device (arg0_1)"}
    structured(listening.trace, compilation_metrics=metrics)
    structured(listening.trace, compilation_metrics=metrics)
    assert [(skip.compile, skip.reason) for skip in listening.ledger().skips] == [("0/1", "cpu device (arg0_1)")]


def test_skips_beside_recorded_graphs_are_a_note(listening):
    span(listening.trace, "dynamo", 0, 10, "0/0")
    span(listening.trace, "CUDAGraphNode.record", 20, 30, "0/0")
    warn(
        "torch._inductor.cudagraph_utils.__cudagraphs",
        "skipping cudagraph due to function 3 exceeding max re-recording limit (=128) on cudagraph node None",
    )
    outcome = effective(GRAPHS, listening.ledger())
    assert outcome.mode == "reduce-overhead"
    assert outcome.notes[0].startswith(
        "parts of it run without CUDA graphs (function 3 exceeding max re-recording limit"
    )


def test_what_evaluating_the_guards_takes_is_kept_where_it_is_told(listening):
    span(listening.trace, "dynamo", 0, 10, "0/0")
    structured(listening.trace, compilation_metrics={"compile_id": "0/0", "guard_latency_us": 12})
    span(listening.trace, "dynamo", 20, 30, "1/0")
    structured(listening.trace, compilation_metrics={"compile_id": "1/0"})
    assert [entry.guard_ns for entry in listening.ledger().compiles] == [12_000, None]
