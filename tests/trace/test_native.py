"""Pieces read in C are what the general decoder reads: the same columns, in the same numbers, and the same counts."""

from __future__ import annotations

import json
import os
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pieces import mutated
from real import trace_names, trace_path

from tracekit.trace.reading import native
from tracekit.trace.reading.chunks import Chunks, NoEventsError
from tracekit.trace.reading.decode import Decoder
from tracekit.trace.reading.source import Source

pytestmark = pytest.mark.skipif(not native.BUILT, reason="the scanner was not built: there is no compiler")
BLOCKS = 10_000 if os.environ.get("TRACEKIT_VERIFY") else 300
COUNTS = ("events", "lost", "mended", "spans", "communications", "notes", "labels", "closing")
PLAIN = {
    "ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 10.5, "dur": 3.25,
    "args": {"correlation": 5, "External id": 6, "stream": 7, "context": 1, "bytes": 64},
}  # fmt: skip


def decoders() -> tuple[Decoder, Decoder]:
    """One with the scanner, and one without."""
    scanning, general = Decoder(), Decoder()
    general.plain_pieces = None
    return scanning, general


def assert_alike(scanning: Decoder, general: Decoder) -> None:
    for count in COUNTS:
        assert getattr(scanning, count) == getattr(general, count), count
    for table in ("categories", "names", "tracks"):
        assert [*getattr(scanning, table).items()] == [*getattr(general, table).items()], table


def assert_read_alike(*chunks: bytes) -> Decoder:
    """Both read chunks alike; returns the one with the scanner."""
    scanning, general = decoders()
    for chunk in chunks:
        found, wanted = scanning.batch(chunk), general.batch(chunk)
        assert found.equals(wanted)
        if scanning.closing is not None:
            break
    assert_alike(scanning, general)
    return scanning


def is_plain(text: str | bytes) -> bool:
    """Whether the scanner reads all of a chunk."""
    decoder = Decoder()
    assert decoder.plain_pieces is not None
    room = native.Columns()
    chunk = text.encode() if isinstance(text, str) else text
    room.begin(len(chunk))
    return decoder.plain_pieces.read(chunk, 1, len(chunk) - 1, room) is not None


@pytest.mark.parametrize("name", trace_names())
def test_real_traces_are_read_alike(name: str) -> None:
    scanning, general = decoders()
    with Source(trace_path(name)) as source:
        chunks = Chunks(source)
        for chunk in chunks:
            assert scanning.batch(chunk).equals(general.batch(chunk))
        (found, rest), (wanted, general_rest) = scanning.last(chunks.tail), general.last(chunks.tail)
    assert found.equals(wanted)
    assert rest == general_rest
    assert_alike(scanning, general)


def event(**changed: Any) -> dict[str, Any]:
    return {**PLAIN, **changed}


@pytest.mark.parametrize(
    "made",
    [
        event(),
        event(ts="10.5", dur="3.25"),  # as Ascend's profiler writes times
        event(args={"stream": "7", "correlation": "5"}),  # as ROCm's tracer writes numbers
        event(dur=-1.5),
        event(ts=1_700_000_000_000_000),
        event(name='a "quoted" name', cat="Operator"),
        event(name="größer"),
        event(args={"Input Dims": [[5, [True, None]], {}], "context": None}),
        {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "python"}},
        event(args={"Collective name": "allreduce", "In msg nelems": 4, "dtype": "Float"}),
        event(name="nccl:all_reduce", args={"Input Dims": [[4]], "Input type": ["float"]}),
        event(args={"wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 5}),
        event(cat="gpu_memcpy", args={"memory bandwidth (GB/s)": 12.5, "bytes": 64}),
        event(cat="cuda_profiler_range", args={"sm__cycles": 12}),
        {key: value for key, value in PLAIN.items() if key != "cat"},
        {key: value for key, value in PLAIN.items() if key not in ("dur", "args")},
        event(pid="CPU functions", cat=None),
    ],
)
def test_a_plain_event(made: dict[str, Any]) -> None:
    chunk = json.dumps([PLAIN, made, event(name="last")], ensure_ascii=False)
    assert is_plain(chunk)
    assert_read_alike(chunk.encode())


@pytest.mark.parametrize(
    "text",
    [
        '{"ph":"X","name":5,"pid":0,"tid":1,"ts":1}',
        '{"ph":"X","name":"a","pid":[0],"tid":1,"ts":1}',
        '{"ph":"X","name":"a","pid":true,"tid":1,"ts":1}',
        '{"ph":"X","name":"a","pid":0,"tid":1}',
        '{"ph":"X","name":"a","pid":0,"tid":1,"ts":1e3}',
        '{"ph":"X","name":"a","pid":0,"tid":1,"ts":01}',
        '{"ph":"X","name":"a","pid":0,"tid":1,"ts":1.}',
        '{"ph":"X","name":"a","pid":0,"tid":1,"ts":12345678901234567}',
        '{"ph":"X","name":"a","pid":0,"tid":1,"ts":9999999999999999}',
        '{"ph":"X","name":"a","pid":0,"tid":1,"ts":1,"dur":"soon"}',
        '{"ph":"X","name":"a","pid":0,"tid":1,"ts":1,"args":{"stream":1.5}}',
        '{"ph":"X","name":"a","pid":0,"tid":1,"ts":1,"args":{"stream":true}}',
        '{"ph":"X","name":"a","pid":0,"tid":1,"ts":1,"args":{"stream":1234567890123456789}}',
        '{"ph":"X","name":"a","pid":0,"tid":1,"ts":1,"args":{"original_stream":7}}',
        '{"ph":"X","name":"a\\ud800","pid":0,"tid":1,"ts":1}',
        '{"ph":"X","name":"\\u006eccl:send","pid":0,"tid":1,"ts":1}',
        '{"ph":"X","name":"a\\q","pid":0,"tid":1,"ts":1}',
        '{"ph":"X","na\\u006de":"a","pid":0,"tid":1,"ts":1}',
        '{"ph":"X","name":"a","pid":0,"tid":1,"ts":1,}',
        '{"ph":"X","name":"a","pid":0,"tid":1,"ts":1,"x":' + "[" * 70 + "]" * 70 + "}",
        '{"ph":"X","name":"a","pid":1e400,"tid":1,"ts":1}',
        '{"ph":"i","name":"a","pid":1e400,"tid":1,"ts":1}',
        '{"ph":"X","name":"a","pid":0,"tid":1,"ts":1,"args":{"memory bandwidth (GB/s)":1e999}}',
        '{"ph":"X","name":"a","pid":0,"tid":1,"ts":1,"args":{"name":' + "9" * 400 + ".5}}",
        '{"ph":"X","name":"a","pid":0,"tid":1,"ts":1,"x":nul}',
        '{"ph":"X","name":"a "quoted" name","pid":0,"tid":1,"ts":1}',
        '{"ph":"X","name":"a","pid":0,"tid":1,"ts":NaN}',
        '{"ph":""","name":"a","pid":0,"tid":1,"ts":1}',
        "5",
    ],
)
def test_what_is_not_plain_is_read_by_the_general_decoder(text: str) -> None:
    chunk = f"[{json.dumps(PLAIN)},{text},{json.dumps(event(name='last'))}]"
    assert not is_plain(chunk)
    assert_read_alike(f"[{json.dumps(PLAIN)}]".encode(), chunk.encode(), f"[{json.dumps(event(name='new'))}]".encode())


@pytest.mark.parametrize("text", [b'"a\xff"', b'"\xed\xa0\x80"', b'"\xc0\x80"', b'"\xf5\x80\x80\x80"'])
def test_text_that_is_not_utf_8(text: bytes) -> None:
    twice = b'[{"ph":"X","name":' + text + b',"pid":0,"tid":1,"ts":1,"name":"a"}]'
    named = b'[{"ph":"X","name":' + text + b',"pid":0,"tid":1,"ts":1}]'
    marked = b'[{"ph":"i","name":' + text + b',"pid":0,"tid":1,"ts":1}]'
    elsewhere = b'[{"ph":"X","name":"a","pid":0,"tid":1,"ts":1,"id":' + text + b"}]"
    assert [is_plain(chunk) for chunk in (twice, named, marked, elsewhere)] == [False, False, False, True]
    for chunk in (twice, named, marked, elsewhere):
        assert_read_alike(chunk)


@pytest.mark.parametrize("us", ["0.0005", "0.0015", "0.00251", "-0.0025", "1.2344999", "12.9999", "0.9995", "7.000000"])
def test_more_decimals_are_rounded_half_to_even(us: str) -> None:
    chunk = f'[{{"ph":"X","name":"a","pid":0,"tid":1,"ts":{us},"dur":{us}}}]'
    assert is_plain(chunk)
    assert_read_alike(chunk.encode())


def test_plain_and_other_pieces_take_turns() -> None:
    """Rows keep the order of the file, and names their numbers, whichever way a piece is read."""
    draw, events = random.Random(5), []
    for number in range(6_000):
        made = event(name=f"name {draw.randrange(900)}", ts=draw.choice([number, number - 50]), tid=draw.randrange(9))
        if number % 1_500 < 20:
            made["args"] = {"stream": 1.5, "correlation": number}
        events.append(made)
    chunks = [json.dumps(events[k : k + 3_000]).encode() for k in (0, 3_000)]
    assert len(chunks[0]) > 400_000
    assert_read_alike(*chunks)


SCALARS = st.one_of(
    st.integers(-(1 << 70), 1 << 70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(["12", "-3", "007", "1e5", "", " 5", "nccl:send", None, True, [], {}]),
)
FIELDS = ("ph", "cat", "name", "pid", "tid", "ts", "dur", "id")
ARGUMENTS = ("correlation", "External id", "external id", "stream", "context", "bytes", "Python id", "name", "Seq")
EVENTS = st.builds(
    lambda fields, args: {**PLAIN, **fields, **({"args": args} if args is not None else {})},
    st.dictionaries(st.sampled_from(FIELDS), SCALARS, max_size=2),
    st.none() | st.dictionaries(st.sampled_from(ARGUMENTS), SCALARS, max_size=3),
)


@settings(max_examples=BLOCKS, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(EVENTS, min_size=1, max_size=6), st.booleans())
def test_documents_of_any_values(events: list[dict[str, Any]], ascii_only: bool) -> None:
    text = json.dumps(events, ensure_ascii=ascii_only)
    assert_read_alike(text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("name", trace_names()[:: 1 if os.environ.get("TRACEKIT_VERIFY") else 6])
def test_mutated_pieces(name: str) -> None:
    with Source(trace_path(name)) as source:
        try:
            chunk = bytes(next(iter(Chunks(source, chunk_bytes=40_000))))
        except (NoEventsError, StopIteration):
            pytest.skip("it has no whole chunk")
    for seed in range(BLOCKS // len(trace_names()) + 1):
        draw = random.Random(f"{name} {seed}")
        broken = mutated(chunk, draw)
        if broken[:1] == b"[" and broken[-1:] == b"]":
            assert_read_alike(broken)


def test_without_the_scanner_the_general_decoder_reads_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "BUILT", False)
    decoder = Decoder()
    assert decoder.plain_pieces is None
    assert len(decoder.batch(json.dumps([PLAIN]).encode())) == 1
