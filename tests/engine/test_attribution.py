"""The attribution against the contract: known answers, and its brute-force twin on random and real traces."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
import twin
from hypothesis import given
from hypothesis import strategies as st
from real import ROOT, recorded_by, trace_names, trace_path
from strategies import as_json, traces

from tests.engine.known import Event, Known
from tests.engine.known_host import HOST
from tests.engine.known_wall import WALL
from tracekit.faces.shared.document import attribution

SAMPLES = sorted(
    str(path.relative_to(ROOT / "sample_traces"))
    for path in (ROOT / "sample_traces").rglob("*.json.gz")
    if path.name != "cold.json.gz" and not path.name.startswith("detail.")
)
STEP_KEYS = ("step", "start_ns", "wall_ns", "host_start_ns", "host_ns", "steady", "wall", "host")


def by_twin(path: Path) -> dict[str, Any]:
    return twin.document(twin.load_events(path))


def by_engine(path: Path, size: int = 1 << 16) -> dict[str, Any]:
    from tracekit.engine import attribute
    from tracekit.trace import Trace

    return attribution(attribute(Trace.load(path), size))


def view(document: dict[str, Any]) -> dict[str, Any]:
    """What two documents of one trace must agree on: everything except the wording of a reason."""
    return {
        "device": document["device"],
        "cannot_answer": sorted(document["cannot_answer"]),
        "steps": [{key: step[key] for key in STEP_KEYS} for step in document["steps"]],
    }


def assert_adds_up(document: dict[str, Any]) -> None:
    for step in document["steps"]:
        for name, buckets, total in (("wall", twin.WALL, "wall_ns"), ("host", twin.HOST, "host_ns")):
            parts = step[name]
            if name in document["cannot_answer"]:
                assert parts is None
            if parts is not None:
                assert list(parts) == buckets or set(parts) == set(buckets)
                assert all(part >= 0 for part in parts.values())
                assert sum(parts.values()) == step[total]


@pytest.mark.parametrize("implementation", [by_twin, by_engine])
@pytest.mark.parametrize("known", [*HOST, *WALL], ids=lambda known: known.rule)
def test_known_answer(known: Known, implementation: Callable[[Path], dict[str, Any]], tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(as_json(known.events))
    document = implementation(path)
    assert document["device"] == known.device
    assert sorted(document["cannot_answer"]) == known.cannot
    assert [
        (
            *(s["step"], s["start_ns"], s["start_ns"] + s["wall_ns"]),
            *(s["host_start_ns"], s["host_start_ns"] + s["host_ns"], s["steady"]),
        )
        for s in document["steps"]
    ] == known.steps
    assert [nonzero(s["wall"]) for s in document["steps"]] == known.wall
    assert [nonzero(s["host"]) for s in document["steps"]] == known.host
    assert_adds_up(document)


def nonzero(buckets: dict[str, int] | None) -> dict[str, int] | None:
    return None if buckets is None else {name: ns for name, ns in buckets.items() if ns}


@given(traces(), st.randoms(use_true_random=False))
def test_twin_on_any_trace(events: list[Event], rng: random.Random) -> None:
    """The twin itself adds up, and does not depend on the order of events."""
    document = twin.document(events)
    assert_adds_up(document)
    shuffled = list(events)
    rng.shuffle(shuffled)
    assert twin.document(shuffled) == document


@given(traces(), st.booleans(), st.randoms(use_true_random=False), st.sampled_from([1, 1, 2, 3, 5, 8, 1 << 16]))
def test_engine_on_any_trace(events: list[Event], bare: bool, rng: random.Random, size: int) -> None:
    """The engine agrees with the twin, adds up, and depends neither on the order of events nor on the block size."""
    from tracekit.errors.reading import EmptyTraceError

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        path.write_bytes(as_json(events, bare=bare))
        try:
            document = by_engine(path, size)
        except EmptyTraceError:
            assert not any(event["ph"] == "X" for event in events)
            return
        assert view(document) == view(by_twin(path))
        assert_adds_up(document)
        shuffled = list(events)
        rng.shuffle(shuffled)
        path.write_bytes(as_json(shuffled, bare=bare))
        assert view(by_engine(path)) == view(document)


@given(traces(), st.integers(1, 12))
def test_moments_of_any_trace(events: list[Event], size: int) -> None:
    """Segments, pieces and the cost of syncs do not depend on where time is cut, and make up the totals."""
    from tracekit.errors.reading import EmptyTraceError

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        path.write_bytes(as_json(events))
        try:
            assert_same_moments(path, size)
        except EmptyTraceError:
            return


def assert_same_moments(path: Path, size: int) -> None:
    from tracekit.engine import attribute
    from tracekit.trace import Trace

    trace = Trace.load(path)
    whole, cut = attribute(trace), attribute(trace, size)
    assert cut.stalls.equals(whole.stalls)
    at_once = attribute(trace, size, with_pieces=True)
    assert (at_once.wall == whole.wall).all()
    assert (at_once.host == whole.host).all()
    assert at_once.stalls.equals(whole.stalls)
    assert at_once.made_pieces is not None
    for name in whole.pieces.__struct_fields__:
        assert np.array_equal(getattr(at_once.made_pieces, name), getattr(whole.pieces, name))
    for name in ("wall", "host"):
        rows = [row for part in cut.segments_of(name, size) for row in part.to_pylist()]
        assert rows == [row for part in whole.segments_of(name) for row in part.to_pylist()]
        for row, following in pairwise(rows):
            assert row["start_ns"] + row["dur_ns"] == following["start_ns"]
            assert (row["bucket"], row["event"]) != (following["bucket"], following["event"])
    low, _ = trace.steps.window
    if "wall" not in whole.cannot_answer and len(trace.steps) == 1 and low == int(trace.steps.begin[0]):
        spent = dict.fromkeys(twin.WALL, 0)
        for part in whole.segments_of("wall"):
            for row in part.to_pylist():
                spent[row["bucket"]] += row["dur_ns"]
        assert list(spent.values()) == whole.wall[0].tolist()
        stalled = sum(whole.stalls.filter(pc.equal(whole.stalls["step"], 0))["dur_ns"].to_pylist())
        assert stalled == spent["sync_stall"]


@pytest.mark.traces
@pytest.mark.parametrize("name", trace_names() or ["any"])
def test_engine_on_real_trace(name: str, record_property: Callable[[str, object], None]) -> None:
    """The engine agrees with the twin on every real trace, to the nanosecond."""
    path = trace_path(name)
    record_property("trace", recorded_by(path))
    expected = by_twin(path)
    assert_adds_up(expected)
    document = by_engine(path)
    assert view(document) == view(expected)
    assert_adds_up(document)


@pytest.mark.parametrize("name", SAMPLES)
def test_engine_on_sample_trace(name: str, record_property: Callable[[str, object], None]) -> None:
    """The same on every trace without stacks that comes with tracekit."""
    path = ROOT / "sample_traces" / name
    record_property("trace", recorded_by(path))
    assert view(by_engine(path)) == view(by_twin(path))


@pytest.mark.traces
@pytest.mark.parametrize("size", [7, 500])
@pytest.mark.parametrize("name", trace_names() or ["any"])
def test_blocks_of_real_trace(name: str, size: int) -> None:
    """Every real trace has the same result in blocks as in one piece; the smallest are cut after every event."""
    path = trace_path(name)
    small = path.stat().st_size < 100_000
    if size == 7 and not small:
        size = 2_111
    assert_same_moments(path, size)


@pytest.mark.traces
@pytest.mark.parametrize(
    "name", [name for name in trace_names() if trace_path(name).stat().st_size < 30_000] or ["any"]
)
def test_one_event_a_block(name: str) -> None:
    assert_same_moments(trace_path(name), 1)
