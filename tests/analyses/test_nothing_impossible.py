"""No gain and no cost is beyond what the GPU and the host need anyway, worked out event by event."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from real import case_path, trace_names, trace_path
from strategies import as_json, traces

from tests.engine.known import Event
from tests.engine.test_replay import loop
from tests.world.worlds import world
from tracekit.analyses import summary
from tracekit.errors import TracekitError
from tracekit.findings import diagnose
from tracekit.findings.counted import Steps
from tracekit.findings.saving import Savings
from tracekit.profile import Profile, open_subject
from tracekit.vocabulary.kernel_class import kernel_class

Stretch = tuple[int, int]
WORLDS = range(40)
_NEAR = 1.0  # ns: by as much, sums of rounded shares differ


def working(profile: Profile) -> list[tuple[int, Stretch, str, str]]:
    """The row, the time, the category and the name of each GPU activity."""
    trace = profile.trace
    categories, names = trace.events["cat"].to_pylist(), trace.names
    starts, ends, codes = trace.ts_ns.tolist(), trace.end_ns.tolist(), trace.name_codes.tolist()
    return [
        (row, (starts[row], ends[row]), category.lower(), names[codes[row]])
        for row, category in enumerate(categories)
        if (category or "").lower() in ("kernel", "gpu_memcpy", "gpu_memset") and ends[row] > starts[row]
    ]


def steps_of(profile: Profile, view: str) -> list[Stretch]:
    """The counted steps of a view."""
    told = profile.views[view]
    return [
        (start, start + length)
        for start, length, counted, known in zip(
            told.starts_ns.tolist(), told.step_ns.tolist(), profile.counted.tolist(), told.known.tolist(), strict=True
        )
        if counted and known
    ]


def busy_ns(shares: Iterable[tuple[Stretch, float]], steps: list[Stretch]) -> float:
    """The mean over the steps of the time in which anything runs, each moment as long as the largest share then."""
    edges: list[tuple[int, int, float]] = []
    for (start, end), share in shares:
        edges += [(start, 1, share), (end, -1, share)]
    edges += [(moment, 0, 0.0) for step in steps for moment in step]
    edges.sort()
    total, running, before, bounds = 0.0, Counter[float](), 0, iter(steps)
    step = next(bounds, None)
    for moment, change, share in edges:
        while step is not None and before >= step[1]:
            step = next(bounds, None)
        if step is not None and before >= step[0]:
            total += (moment - before) * max((each for each, count in running.items() if count), default=0.0)
        running[share] += change
        before = moment
    return total / len(steps)


def host_ns(profile: Profile) -> float:
    """The mean over the steps of the host's time outside of calls of the runtime, in which it may wait for the GPU."""
    trace, steps = profile.trace, steps_of(profile, "host")
    calls = [
        ((start, end), 1.0)
        for start, end, is_call in zip(
            trace.ts_ns.tolist(), trace.end_ns.tolist(), trace.roles.runtime.tolist(), strict=True
        )
        if is_call and end > start
    ]
    return sum(end - start for start, end in steps) / len(steps) - busy_ns(calls, steps)


def share_left(change: str) -> Callable[[str, str], float]:
    """Which share of an activity the change leaves at best."""
    if change.endswith("kernels took half as long"):
        label = change.removesuffix(" kernels took half as long")
        return lambda category, name: 0.5 if category == "kernel" and kernel_class(name) == label else 1.0
    if change == "copies came from pinned memory":
        return lambda category, name: 0.1 if name.startswith("Memcpy HtoD (Pageable -> ") else 1.0
    return lambda category, name: 1.0


def impossible_gains(profile: Profile) -> list[str]:
    """The rows of `what_if` that promise what cannot be."""
    rows, mean = summary(profile, "what_if").table.to_pylist(), profile.means["wall"]
    if not rows or mean is None:
        return []
    work, steps, wrong = working(profile), steps_of(profile, "wall"), []
    of_host = host_ns(profile) if profile.means["host"] is not None else 0.0
    for row in rows:
        change = row["if"]
        left = share_left(change)
        least = busy_ns(((time, left(category, name)) for _, time, category, name in work), steps)
        if change.endswith(("took half as long", "pinned memory", "for the GPU went")):
            least = max(least, of_host)
        if row["best_ns"] < min(least, mean.step_ns) - _NEAR:
            wrong.append(f"{change}: at best {row['best_ns']:.0f} ns, but {least:.0f} are needed")
        if not row["best_ns"] <= row["worst_ns"] <= mean.step_ns + _NEAR:
            wrong.append(f"{change}: {row['best_ns']:.0f} … {row['worst_ns']:.0f} of {mean.step_ns:.0f} ns")
    return wrong


def impossible_costs(profile: Profile) -> list[str]:
    """The causes that are said to save what cannot be saved."""
    steps = Steps.of(profile)
    if profile.attribution.answered_view.name != "wall" or not len(steps.low):
        return []
    wrong, work, spans = [], working(profile), [*zip(steps.low.tolist(), steps.high.tolist(), strict=True)]
    savings = Savings(profile, steps)
    for finding in diagnose(profile).all_findings:
        if finding.claim is None or finding.once:
            continue
        undone = set() if finding.undone is None else set(finding.undone.tolist())
        shorter = None if finding.work is None else set(finding.work.tolist())
        claimed = [*zip(finding.claim.starts.tolist(), finding.claim.ends.tolist(), strict=True)]
        whole = [
            (time, 1.0) for row, time, *_ in work if row not in undone and shorter is not None and row not in shorter
        ]
        partly = [time for row, time, *_ in work if row not in undone and (shorter is None or row in shorter)]
        kept = whole + [((start, end), 1.0) for time in partly for start, end in outside(time, claimed)]
        saved = savings.of(finding.claim, finding.work, finding.host, finding.undone).step_ns
        if saved > max(steps.length - busy_ns(kept, spans), 0.0) + _NEAR:
            wrong.append(f"{finding.id}: {saved:.0f} of {steps.length:.0f} ns, {busy_ns(kept, spans):.0f} are needed")
    return wrong


def outside(time: Stretch, claimed: list[Stretch]) -> Iterable[Stretch]:
    """The parts of a time that are not claimed."""
    at, end = time
    first = int(np.searchsorted([stop for _, stop in claimed], at))
    for start, stop in claimed[first:]:
        if start >= end:
            break
        if start > at:
            yield at, start
        at = max(at, stop)
    if at < end:
        yield at, end


def impossible(path: Path) -> list[str]:
    try:
        profiles = open_subject([path]).profiles
    except TracekitError:
        return []
    return [each for profile in profiles for each in (*impossible_gains(profile), *impossible_costs(profile))]


@given(st.one_of(st.integers(0, 1 << 32).map(lambda seed: loop(random.Random(seed))), traces()))
def test_nothing_impossible_is_told_of_any_trace(events: list[Event]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        path.write_bytes(as_json(events))
        assert not impossible(path)


@pytest.mark.parametrize("seed", WORLDS)
def test_nothing_impossible_is_told_of_a_world(tmp_path: Path, seed: int) -> None:
    assert not impossible(world(seed).write(tmp_path))


@pytest.mark.traces
@pytest.mark.parametrize("name", trace_names())
def test_nothing_impossible_is_told_of_a_real_trace(name: str) -> None:
    assert not impossible(trace_path(name))


def test_kernels_that_take_half_as_long_save_half_where_the_host_is_far_ahead() -> None:
    (profile,) = open_subject([case_path("host_far_ahead/trace.json")]).profiles
    (row,) = (row for row in summary(profile, "what_if").table.to_pylist() if "half as long" in row["if"])
    assert 99.75e6 <= row["best_ns"] <= row["worst_ns"] <= 103e6


def test_loops_allow_to_replay() -> None:
    """Otherwise, the property would say nothing."""
    told = 0
    for seed in range(60):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            path.write_bytes(as_json(loop(random.Random(seed))))
            (profile,) = open_subject([path]).profiles
            told += summary(profile, "what_if").table.num_rows > 0
    assert told >= 20
