"""The recorder makes spans from a log of beginnings and ends, loses none and invents none."""

import logging

from tracekit.capture.compiler import CompileRecorder


def emit(recorder, **metadata):
    record = logging.LogRecord("torch.__trace", logging.DEBUG, "f.py", 1, "", (), None)
    record.payload = metadata.pop("payload", None)
    record.metadata = metadata
    recorder.emit(record)


def span(recorder, phase, name, us, compile_id="0/0"):
    event = {"name": name, "ph": phase, "ts": us, "args": {"compile_id": compile_id}}
    emit(recorder, chromium_event={}, payload=event)


def test_a_compilation_is_its_outermost_span_and_its_phases_are_own_times():
    recorder = CompileRecorder()
    span(recorder, "B", "dynamo", 0)
    span(recorder, "B", "entire_frame_compile", 1)
    span(recorder, "B", "build_guards", 2)
    span(recorder, "E", "build_guards", 5)
    span(recorder, "E", "entire_frame_compile", 9)
    span(recorder, "E", "dynamo", 10)
    (made,) = recorder.compiled
    assert (made.name, made.id, made.start_ns, made.end_ns) == ("dynamo", "0/0", 0, 10_000)
    assert made.phases == {"build_guards": 3000, "entire_frame_compile": 5000, "dynamo": 2000}


def test_spans_outside_a_compilation_are_none():
    recorder = CompileRecorder()
    span(recorder, "B", "pgo.get", 0)
    span(recorder, "E", "pgo.get", 5)
    assert recorder.compiled == []


def test_what_an_exception_left_open_is_closed_with_its_parent():
    recorder = CompileRecorder()
    span(recorder, "B", "dynamo", 0)
    span(recorder, "B", "bytecode_tracing", 1)
    span(recorder, "E", "dynamo", 4)
    span(recorder, "B", "dynamo", 5, "1/0")
    span(recorder, "E", "dynamo", 6, "1/0")
    assert [(made.id, made.phases) for made in recorder.compiled] == [
        ("0/0", {"dynamo": 4000}),
        ("1/0", {"dynamo": 1000}),
    ]


def test_an_end_without_a_beginning_is_passed_over():
    recorder = CompileRecorder()
    span(recorder, "E", "dynamo", 4)
    assert recorder.compiled == []


def test_one_reason_and_several_are_both_lists():
    recorder = CompileRecorder()
    artifact = {"name": "recompile_reasons"}
    emit(recorder, artifact=artifact, frame_id=0, frame_compile_id=1, payload="0/0: k == 1")
    emit(recorder, artifact=artifact, frame_id=0, frame_compile_id=2, payload='["0/1: k == 2", "0/0: k == 1"]')
    assert recorder.reasons == {"0/1": ["0/0: k == 1"], "0/2": ["0/1: k == 2", "0/0: k == 1"]}


def test_a_record_of_an_unknown_shape_harms_nobody(caplog):
    recorder = CompileRecorder()
    emit(recorder, chromium_event={}, payload="no json")
    emit(recorder, artifact="no object")
    assert recorder.compiled == []


def test_it_listens_only_while_entered():
    log = logging.getLogger("torch.__trace")
    level, handlers = log.level, [*log.handlers]
    with CompileRecorder() as recorder:
        assert log.handlers[0] is recorder
    assert (log.level, log.handlers) == (level, handlers)
    assert recorder not in logging.getLogger("torch._dynamo.convert_frame").handlers
