"""The fast reader agrees with the plain one, however the text is laid out and wherever it is cut."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trace.plain_reader import fast, plain
from tracekit.trace import Trace
from tracekit.trace.reading import chunks, convert, exact, native

TRACES = Path(__file__).parent.parent.parent.parent / "shared" / "traces"


def write(path: Path, events: list[dict[str, object]], **layout: object) -> Path:
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events, "traceName": "x"}, **layout))  # type: ignore[arg-type]
    return path


def events(count: int) -> list[dict[str, object]]:
    return [
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": f"op{k % 7}",
            "pid": 1,
            "tid": k % 3,
            "ts": k * 10,
            "dur": 3,
            "args": {"External id": k},
        }
        for k in range(count)
    ]


@pytest.mark.traces
def test_every_real_trace(shared_traces: Path) -> None:
    paths = sorted(shared_traces.glob("*.json.gz"))
    assert paths
    for path in paths:
        trace = Trace.load(path, use_cache=False)
        assert fast(trace) == plain(path), path.name
        assert (trace.lost, trace.mended, trace.cut_short) == (0, 0, None)


@pytest.mark.parametrize(
    "layout", [{}, {"indent": 0}, {"indent": 2}, {"indent": "\t"}, {"separators": (",", ":")}, {"sort_keys": True}]
)
@pytest.mark.parametrize("size", [200, 1000, 4096])
def test_any_layout_in_chunks_of_any_size(
    layout: dict[str, object], size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks.Chunks.__init__, "__defaults__", (size,))
    path = write(tmp_path / "t.json", events(300), **layout)
    trace = Trace.load(path, use_cache=False)
    assert fast(trace) == plain(path)
    assert (trace.lost, trace.cut_short, trace.meta) == (0, None, {"schemaVersion": 1, "traceName": "x"})


def test_objects_in_args_that_look_like_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks.Chunks.__init__, "__defaults__", (700,))
    inner = [{"name": k, "ts": 1} for k in range(30)] + [{"ph": "X", "ts": 5}]
    made = [{**event, "args": {"list": inner, "External id": 3}} for event in events(40)]
    trace = Trace.load(write(tmp_path / "t.json", made), use_cache=False)
    assert (len(trace.events), trace.lost) == (40, 0)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1712195495561301.842", 1712195495561301842),
        ("1712195495561301.8425", 1712195495561301842),  # half to even
        ("1712195495561301.8435", 1712195495561301844),
        ("0.001", 1),
        ("5", 5000),
        ("1e3", 1_000_000),
        ("-2.5", -2500),
    ],
)
def test_times_are_exact(text: str, ns: int) -> None:
    assert exact.from_text(text.encode()) == ns
    times, known = exact.from_texts([text.encode()] * 3 + [b"null"])
    assert times[:3].tolist() == [ns] * 3
    assert known.tolist() == [True, True, True, False]
    assert int((Decimal(text) * 1000).quantize(Decimal(1))) == ns


@pytest.mark.parametrize("end", ["", ', {"ph": "X", "name": broken}'], ids=["whole", "damaged"])
def test_times_in_quotes_are_the_numbers_in_them(tmp_path: Path, end: str) -> None:
    """As Ascend's profiler writes them, with nanoseconds that a float64 would lose."""
    rows = [
        ('"1747130000123556.123"', "40.25"),
        ("1747130000123556.124", '"0.0015"'),
        ('"1747130000123557"', '"1e1"'),
        ('"1747130000123558.000"', '"-3"'),
        ('"1747130000123559.000"', '"long"'),
        *((text, "1") for text in ('" 1"', '"1_0"', '"NaN"', '"0x1"', '"01"', '""', "true", "[1]", "null")),
    ]
    events = (f'{{"ph": "X", "cat": "cpu_op", "name": "n", "ts": {ts}, "dur": {dur}}}' for ts, dur in rows)
    path = tmp_path / "t.json"
    path.write_text("[" + ", ".join(events) + end + "]")
    trace = Trace.load(path, use_cache=False)
    moments = [123_556_123, 123_556_124, 123_557_000, 123_558_000, 123_559_000]
    assert trace.ts_ns.tolist() == [1_747_130_000_000_000_000 + ns for ns in moments]
    assert trace.dur_ns.tolist() == [40_250, 2, 10_000, 0, 0]
    assert (trace.lost, trace.mended) == (8 + bool(end), 2)  # neither a negative nor a worded duration is one


TIMES = st.one_of(
    st.integers(0, 10**18).map(lambda ns: f"{ns // 1000}.{ns % 1000:03}"),
    st.from_regex(r"-?[0-9]{1,20}(\.[0-9]{0,4})?(e[0-9])?", fullmatch=True),
    st.sampled_from(["null", "NaN", '"5"', '"1,23"', ",", "1,2", "9999999999999999.999", "."]),
)


@given(texts=st.lists(TIMES, max_size=6), times=st.integers(1, 3))
def test_many_times_are_what_each_is(texts: list[str], times: int) -> None:
    """Also where texts that hold commas are as long together as others are."""
    found, known = exact.from_texts([text.encode() for text in texts * times])
    one_by_one = [exact.from_text(text.encode()) for text in texts * times]
    assert known.tolist() == [ns is not None for ns in one_by_one]
    assert found[known].tolist() == [ns for ns in one_by_one if ns is not None]


def big(path: Path, mega: int) -> Path:
    """A trace that is long enough for a second process to help."""
    one = ",\n".join(json.dumps({**event, "args": {"Call stack": "x" * 400}}) for event in events(5000))
    with path.open("w") as file:
        file.write('{"schemaVersion": 1, "traceEvents": [\n' + one)
        while file.tell() < mega << 20:
            file.write(",\n" + one)
        file.write("\n]}")
    return path


def test_two_processes_read_what_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert, "WORTH_BYTES", 0)
    monkeypatch.setattr(native, "BUILT", False)  # with it, one process is as fast
    started: list[Any] = []
    popen = convert.subprocess.Popen
    monkeypatch.setattr(convert.subprocess, "Popen", lambda *args, **more: started.append(args) or popen(*args, **more))
    path = big(tmp_path / "big.json", (convert.FEW * chunks.CHUNK_BYTES >> 20) + 12)
    alone = Trace.load(path, use_cache=False, workers=1)
    assert not started
    together = Trace.load(path, use_cache=False, workers=3)
    assert len(started) == 2
    assert alone.events.combine_chunks().equals(together.events.combine_chunks())
    assert alone.tracks.equals(together.tracks)
