"""What can be read is read, and what was lost is counted and reported."""

import gzip
import json
import time
from pathlib import Path

import numpy as np
import pytest
from real import case_path

from tracekit.engine import attribute, host
from tracekit.errors.reading import BombError, EmptyTraceError, NotATraceError
from tracekit.faces.shared.document import attribution
from tracekit.trace import Trace
from tracekit.trace.reading import chunks, source
from tracekit.trace.reading.mend import read_one_by_one

OP = (
    '{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": %d, "dur": 2, '
    '"args": {"External id": 1}}'
)


def read(tmp_path: Path, text: str | bytes) -> Trace:
    path = tmp_path / "trace.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Trace.load(path, use_cache=False)


def around(event: str, before: int = 2, after: int = 2) -> str:
    events = [OP % k for k in range(before)] + [event] + [OP % (100 + k) for k in range(after)]
    return '{"traceEvents": [' + ",\n".join(events) + "]}"


def codes(trace: Trace) -> set[str]:
    return {entry.id for entry in trace.health}


@pytest.mark.parametrize(
    ("event", "name"),
    [
        ('{"ph": "X", "cat": "cpu_op", "name": "say "hi" now", "pid": 1, "tid": 1, "ts": 9, "dur": 1}', 'say "hi" now'),
        ('{"ph": "X", "cat": "cpu_op", "name": "a\nb\tc", "pid": 1, "tid": 1, "ts": 9, "dur": 1}', "a\nb\tc"),
        ('{"ph": "X", "name": "n", "pid": 1, "tid": 1, "ts": 9, "dur": 1, "args": {"bw": NaN, "x": -Infinity}}', "n"),
        ('{"ph": "X", "name": "n", "pid": 1, "tid": 1, "ts": 9, "dur": 1, "args": {"bw": inf, "x": N/A}}', "n"),
        ('{"ph": "X", "name": "n", "pid": 1, "tid": 1, "ts": 9, "dur": 1, "args": {"x": 1, }}', "n"),
        ('{"ph": "X", "name": "n", "pid": 1, "tid": 1, "ts": 9, "dur": 1, "args": {"k": "a "b" c"}}', "n"),
    ],
)
def test_broken_events_are_mended(tmp_path: Path, event: str, name: str) -> None:
    for text in (around(event), around(event, after=0), around(event, before=0)):
        trace = read(tmp_path, text)
        assert name in trace.names
        assert (trace.lost, trace.mended) == (0, 1)
        assert "mended_events" in codes(trace)


@pytest.mark.parametrize(
    "odd", ['"name": [1]', '"pid": {"a": 1}', '"cat": [1]', '"dur": -5', '"dur": -5.5', '"dur": "7 us"', '"args": [1]']
)
def test_values_of_the_wrong_kind_are_counted(tmp_path: Path, odd: str) -> None:
    given = json.loads(OP % 9) | json.loads("{" + odd + "}")
    trace = read(tmp_path, around(json.dumps(given)))
    assert (len(trace.events), trace.lost, trace.mended) == (5, 0, 1)
    assert "mended_events" in codes(trace)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    event = OP.replace("aten::mm", "caf@") % 9
    trace = read(tmp_path, around(event).encode().replace(b"@", b"\xe9"))
    assert trace.names[1] == "caf\N{REPLACEMENT CHARACTER}"
    assert len(trace.events) == 5


@pytest.mark.parametrize(
    "event",
    [
        '{"ph": "X", "name": "n", "ts": 1, "args": {"deep": ' + "[" * 100_000 + "]" * 100_000 + "}}",
        '{"ph": "X", "name": "n", "ts": ' + "9" * 6000 + "}",
        '{"ph": "X", "name": "n", "ts": "soon"}',
        '{"ph": "X", "name": "n", "ts": 1e99999999999999999999, "dur": x}',
        "17",
        '"text"',
        '{"ph": "X" "name": oh, dear}',
    ],
    ids=["deep", "overlong", "text", "exponent", "number", "string", "garbage"],
)
def test_what_is_beyond_repair_is_counted(tmp_path: Path, event: str) -> None:
    trace = read(tmp_path, around(event))
    assert (len(trace.events), trace.lost) == (4, 1)
    assert "lost_events" in codes(trace)


@pytest.mark.parametrize(
    "fields",
    [
        '"pid": [1], "tid": {"a": 1}',
        '"pid": null, "tid": true',
        '"cat": 5, "name": 7',
        '"cat": {"x": 1}',
        '"args": [1, 2]',
        '"args": "text"',
        '"args": {"correlation": "x", "stream": [1], "bytes": 1e400}',
        '"dur": "long"',
        '"dur": null',
        '"dur": -3',
        '"id": 1, "ts": 4, "ts": 4',
    ],
)
def test_fields_of_any_type(tmp_path: Path, fields: str) -> None:
    trace = read(tmp_path, around('{"ph": "X", "ts": 4, ' + fields + "}"))
    assert len(trace.events) == 5
    assert trace.lost == 0
    attribution(attribute(trace))


def test_keys_before_and_after(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        '{"schemaVersion": 1, "a": {"b": [1]}, "traceEvents": [' + OP % 1 + '], "baseTimeNanoseconds": 5, "n": "x"}',
    )
    assert trace.meta == {"schemaVersion": 1, "a": {"b": [1]}, "baseTimeNanoseconds": 5, "n": "x"}
    broken = read(tmp_path, '{"schemaVersion": 1, "k": "va/"l", "traceEvents": [' + OP % 1 + "]}")
    assert (broken.meta, len(broken.events)) == ({"schemaVersion": 1}, 1)


def test_list_at_top_level_and_a_byte_order_mark(tmp_path: Path) -> None:
    assert len(read(tmp_path, "\ufeff[" + OP % 1 + "," + OP % 2 + "]").events) == 2
    assert len(read(tmp_path, "[" + OP % 1 + "," + OP % 2 + ",]").events) == 2


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", NotATraceError),
        (b"hello", NotATraceError),
        (b"{}", NotATraceError),
        (b'{"traceEvents": 5}', NotATraceError),
        (b"\x1f\x8b", NotATraceError),
        (b"\x1f\x8b\x08\x00garbage", NotATraceError),
        (b"\x28\xb5\x2f\xfdgarbage", NotATraceError),
        (b"\x89PNG\r\n\x1a\n", NotATraceError),
        (b'{"traceEvents": []}', EmptyTraceError),
        (b'{"traceEvents": [', NotATraceError),
    ],
)
def test_what_is_no_trace_ends_in_a_sentence(tmp_path: Path, content: bytes, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"trace\.json (is not|holds no) .*\."):
        read(tmp_path, content)


def whole(count: int) -> bytes:
    return (
        '{"deviceProperties": [], "traceEvents": [' + ",\n".join(OP % (10 * k) for k in range(count)) + "]}"
    ).encode()


def test_cut_text(tmp_path: Path) -> None:
    text = whole(300)
    trace = read(tmp_path, text[: text.rindex(b'"ts"')])
    assert (len(trace.events), trace.lost) == (299, 1)
    assert "cut_short" in codes(trace)


def test_cut_archive_is_read_to_the_last_byte(tmp_path: Path) -> None:
    text = whole(20_000)
    packed = gzip.compress(text, 1)
    cut = read(tmp_path, packed[: len(packed) // 2])
    broken = bytearray(packed)
    broken[len(packed) // 2 : len(packed) // 2 + 40] = b"\xff" * 40
    assert 9_000 < len(cut.events) < 11_000
    assert "cut_short" in codes(cut)
    damaged = read(tmp_path, bytes(broken))
    assert len(damaged.events) > 9_000
    assert damaged.cut_short or damaged.damage


def test_a_trailer_that_does_not_fit_is_said(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(whole(300), 1))
    packed[-6] ^= 255
    trace = read(tmp_path, bytes(packed))
    assert (len(trace.events), trace.cut_short) == (300, None)
    assert "damaged" in codes(trace)


def test_a_bomb_meets_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_ALWAYS", 1 << 20)
    with pytest.raises(BombError, match="TRACEKIT_MAX_BYTES="):
        read(tmp_path, gzip.compress(b'{"traceEvents": [' + b" " * (64 << 20)))
    monkeypatch.setenv("TRACEKIT_MAX_BYTES", str(1 << 30))
    with pytest.raises(NotATraceError):
        read(tmp_path, gzip.compress(b'{"traceEvents": [' + b" " * (64 << 20)))


def test_a_giant_event_and_a_giant_header_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "EVENT_BYTES", 8 << 20)
    giant = '{"ph": "X", "ts": 5, "name": "' + "x" * (20 << 20) + '"}'
    trace = read(tmp_path, around(giant))
    assert (len(trace.events), trace.lost) == (4, 1)
    trace = read(tmp_path, '{"blob": "' + "x" * (50 << 20) + '", "traceEvents": [' + OP % 1 + '], "n": 1}')
    assert (len(trace.events), trace.meta) == (1, {})
    assert "lost_header" in codes(trace)


def test_steps_of_a_cut_file_are_unknown_unless_it_is_in_order_of_time(tmp_path: Path) -> None:
    step = '{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#%d", "pid": 1, "tid": 1, "ts": %d, "dur": 100}'
    other = (OP % 0).replace('"tid": 1', '"tid": 2').replace('"ts": 0', '"ts": %d')
    lines = [line for k in range(5) for line in (step % (k, 100 * k), OP % (100 * k + 10), other % (100 * k + 50))]
    sorted_text = '{"deviceProperties": [], "traceEvents": [' + ",".join(lines)
    attributed = attribute(read(tmp_path, sorted_text))
    assert [step["wall"] is not None for step in attribution(attributed)["steps"]] == [True] * 4 + [False]
    unsorted = attribute(read(tmp_path, '{"deviceProperties": [], "traceEvents": [' + ",".join(reversed(lines))))
    assert set(unsorted.cannot_answer) == {"wall", "host"}
    assert all(step["wall"] is None and step["host"] is None for step in attribution(unsorted)["steps"])
    apart = [line for line in lines if line not in lines[2::3]] + lines[2::3]  # thread by thread, cut before the second
    one_thread = attribute(read(tmp_path, '{"deviceProperties": [], "traceEvents": [' + ",".join(apart[:10])))
    assert set(one_thread.cannot_answer) == {"wall", "host"}
    with_stacks = attribute(read(tmp_path, sorted_text.replace("[]", '[], "with_stack": 1', 1)))
    assert set(with_stacks.cannot_answer) == {"wall", "host"}


@pytest.mark.traces
@pytest.mark.parametrize("name", ["luatil_compile_rtx3060", "compile_cold_cpu", "tracelens_resnet_mi300x_training"])
def test_what_a_cut_file_says_of_a_step_is_what_the_whole_one_says(
    shared_traces: Path, tmp_path: Path, name: str
) -> None:
    text = gzip.decompress((shared_traces / f"{name}.json.gz").read_bytes())
    (tmp_path / "whole.json").write_bytes(text)
    true = {
        step["step"]: step
        for step in attribution(attribute(Trace.load(tmp_path / "whole.json", use_cache=False)))["steps"]
    }
    for share in np.linspace(0.1, 0.99, 6):
        said = attribution(attribute(read(tmp_path, text[: int(len(text) * share)])))["steps"]
        assert all(step["wall"] in (None, true.get(step["step"], {}).get("wall")) for step in said)
        json.dumps(said)


def test_a_case_in_which_every_flow_end_lacks_a_quote() -> None:
    trace = Trace.load(case_path("legacy_with_a_broken_key/trace.json"), use_cache=False)
    assert (trace.lost, trace.mended, len(trace.events)) == (20, 0, 40)
    assert trace.events["cat"].to_pylist().count("kernel") == 20
    assert set(trace.dur_ns.tolist()) == {34_500, 30_000}
    assert "lost_events" in codes(trace)


def test_events_between_broken_keys_are_read(tmp_path: Path) -> None:
    """Also where one line holds everything."""
    broken = '{"name": "n", "ph": "f", "ts": 5, tid": 0, "pid": "CUDA functions", "id": 1, "cat": "cpu_to_cuda"}'
    text = "[" + ", ".join(f"{OP % k}, {broken}" for k in range(20)) + "]"
    trace = read(tmp_path, text)
    assert (trace.lost, len(trace.events)) == (20, 20)


@pytest.mark.parametrize("apart", range(12))
def test_an_archive_goes_on_where_the_header_of_a_member_is_cut_by_a_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, apart: int
) -> None:
    first, second = gzip.compress(b"a" * 1000), gzip.compress(b"b" * 1000)
    monkeypatch.setattr(source, "_PIECE", len(first) + apart)
    path = tmp_path / "trace.json.gz"
    path.write_bytes(first + second)
    read = bytearray(3000)
    with source.Source(path) as opened:
        assert opened.readinto(memoryview(read)) == 2000
    assert read[:2000] == b"a" * 1000 + b"b" * 1000


def test_an_archive_that_ends_in_its_header_is_said_to(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(b"{}")[:6])
    with pytest.raises(NotATraceError, match="the archive ends early"):
        Trace.load(path)


@pytest.mark.parametrize("repeated", ['"name":"', " ", '"', "[", '":', "\\", ",", "}", '{"a":'])
@pytest.mark.parametrize("start", ['{"ph":1 ', '{"ph":'])
def test_an_event_that_cannot_be_mended_is_given_up_soon(start: str, repeated: str) -> None:
    event = start + repeated * (60_000 // len(repeated)) + "x}"
    text = f"[{','.join([event] * 4)}"
    began = time.process_time()
    read_one_by_one(text.encode())
    assert time.process_time() - began < 5


def test_a_value_that_outgrows_what_is_parsed_first_is_read() -> None:
    for length in (4_000, 4_080, 4_096, 5_000, 70_000):
        for character in ("x", "\\n", "\\u00e9", "é"):
            event = (
                f'{{"ph": "X", "name": "{character * (length // len(character))}", "ts": 1, "dur": 2, "tid": 1e400}}'
            )
            result = read_one_by_one(f"[{event}, {event}]".encode())
            assert (len(result.events), result.lost) == (2, 0)


@pytest.mark.parametrize("strange", ['"Python id"', "null", "{}", "[]", "1.5", '"9"'])
def test_properties_of_a_gpu_that_are_none_are_passed_over(tmp_path: Path, strange: str) -> None:
    gpus = f'[{{"id": 0, "computeMajor": {strange}, "name": {strange}}}, {{"computeMajor": 9}}, {strange}]'
    trace = read(tmp_path, f'{{"deviceProperties": {gpus}, "traceEvents": [{OP % 1}]}}')
    assert trace.compute_majors == [9]


def test_as_many_categories_as_names_take_no_more_than_their_sum(tmp_path: Path) -> None:
    count = 30_000  # a table of each category with each name would take 900 MB, and more than once
    events = (f'{{"ph":"X","cat":"c{k}","name":"n{k}","pid":1,"tid":1,"ts":{k},"dur":1}}' for k in range(count))
    trace = read(tmp_path, f"[{','.join(events)}]")
    assert len(host.HostRules.of(trace, blame=False).state) <= 20 * count
