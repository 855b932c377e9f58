"""Decoding a chunk piece by piece gives what decoding it at once gives, whatever the chunk holds."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pieces import PIECES, blocks, decoded, mutated
from strategies import as_json, traces

from tracekit.trace.reading.chunks import Chunks
from tracekit.trace.reading.source import Source

WHOLE = 1 << 30
ORDINARY = (
    '{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 17%d.125, "dur": 2, '
    '"args": {"External id": 1}}'
)


@pytest.mark.traces
def test_the_first_chunk_of_every_real_trace(shared_traces: Path) -> None:
    for path in sorted(shared_traces.glob("*.json.gz")):
        with Source(path) as source:
            chunk = bytes(next(iter(Chunks(source))))
        assert decoded(chunk, 5000) == decoded(chunk, WHOLE) == decoded(chunk, WHOLE, communicates=True), path.name


@settings(max_examples=60)
@given(events=traces(), piece=st.sampled_from(PIECES))
def test_any_events(events: list[dict[str, object]], piece: int) -> None:
    chunk = as_json(events, bare=True).strip()
    assert decoded(chunk, piece) == decoded(chunk, WHOLE) == decoded(chunk, WHOLE, communicates=True)


@pytest.mark.traces
@given(seed=st.integers(0, 2**40))
def test_damaged_events(seed: int, damaged_blocks: list[bytes]) -> None:
    rnd = random.Random(seed)
    chunk = b"[%b]" % mutated(rnd.choice(damaged_blocks), rnd)
    assert decoded(chunk, rnd.choice(PIECES)) == decoded(chunk, WHOLE) == decoded(chunk, WHOLE, communicates=True)


@pytest.mark.parametrize("piece", PIECES)
def test_only_what_json_calls_white_space_separates_events(piece: int) -> None:
    texts = [ORDINARY % k for k in range(12)]
    chunk = f"[{','.join(texts[:6])},\v{','.join(texts[6:])}]".encode()
    assert decoded(chunk, piece) == decoded(chunk, WHOLE)
    assert decoded(chunk, piece)["lost"] == 1


@pytest.fixture(scope="module")
def damaged_blocks() -> list[bytes]:
    from real import TRACES

    if not TRACES.is_dir():
        pytest.skip(f"the real traces are not here ({TRACES}); set TRACEKIT_TRACES")
    return blocks(TRACES, random.Random(1), 4)


@pytest.mark.parametrize(
    "odd",
    [
        '{"ph": "X", "name": "twice", "name": "again", "ts": 5, "ts": 6, "ph": "X"}',
        '{"ph": "X", "na\\u006de": "\\u0061\\n\\"},{\\"ph\\":", "ts": 5}',
        '{"ph": "X", "name": "n", "ts": 5, "dur": "7", "args": {"correlation": "12", "stream": "0x0"}}',
        '{"ph": "X", "name": "n", "ts": 1e3, "dur": 2.5e-1}',
        '{"ph": "X", "name": "n", "ts": 5, "pid": 99999999999999999999999, "args": {"bytes": 99999999999999999999}}',
        '{"ph": "X", "name": "n", "ts": 5, "args": {"memory bandwidth (GB/s)": NaN}}',
        '{"ph": "X", "name": "\\ud800", "ts": 5}',
        '{"ph": "X", "name": "caf\udce9", "P\udce9": 1, "ts": 5}',  # bytes that are not UTF-8
        '{"ph": "X", "name": "n", "ts": 1712195495561301.84251, "dur": 0.0005}',
        '{"ph": "X", "name": "n", "ts": "soon", "dur": 1}',
        '{"ph": "X", "cat": "Trace", "name": "n", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 5, "dur": 1}',
        '{"ph": "i", "name": "Iteration Start: PyTorch Profiler", "pid": "Traces", "ts": 5, "s": "g"}',
        '{"ph": "X", "name": "n", "ts": 5, "args": {"of": [{"name": 1, "ts": 1}, {"ph": "X", "ts": 5}, {"name": 2}]}}',
        '{"ph": "X", "name": "nccl:all_reduce", "ts": 5, "args": {"Input Dims": [[3]], "Input type": ["float"]}}',
        '{"ph": "X", "name": "c10d", "ts": 5, "args": {"Collective name": "allreduce", "In msg nelems": 3}}',
        '{"ph": "X", "name": "w", "ts": 5, "args": {"wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 5}}',
        '{"ph": "X", "cat": "cuda_profiler_range", "name": "k", "ts": 5, "args": {"smsp__cycles": 12.0}}',
        '{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}}',
        "17",
    ],
)
@pytest.mark.parametrize("piece", PIECES)
def test_an_odd_event_among_ordinary_ones(odd: str, piece: int) -> None:
    events = [ORDINARY % (200 - k) for k in range(6)] + [odd] + [ORDINARY % (100 + k) for k in range(6)]
    for separator in (",", ",\n  ", " , "):
        chunk = f"[{separator.join(events)}]".encode("utf-8", "surrogateescape")
        pieces = decoded(chunk, piece)
        assert pieces == decoded(chunk, WHOLE) == decoded(chunk, WHOLE, communicates=True)
        assert len(json.loads(pieces["ts_ns"])) + pieces["lost"] in (12, 13)
