"""What on the host keeps the GPU idle for a millisecond and more, all by itself?"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tracekit.findings import Finding, Where, evidence, rule
from tracekit.findings.culprits import counted_steps, line_of_moment, operators_around, plain, where
from tracekit.findings.holes import Usual, is_hole
from tracekit.findings.rules.pageable_copies import pageable_calls
from tracekit.intervals import Bools, Ints
from tracekit.profile import Profile
from tracekit.trace.roles import PYTHON, RUNTIME
from tracekit.units import count, duration

_ODD = 20  # times the median of its name: an event that long is out of the ordinary
_OFTEN = 0.5  # of the steps: what comes so often belongs to the step
_TOGETHER = ("cold_start", "host_freeze", "idle_unexplained")  # whoever it hit: one finding
_FALLBACK = re.compile(r"fallback_function|TensorExpr.*", re.DOTALL)
_LAZY = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#lazy-loading"
_COMPILE = "https://docs.pytorch.org/docs/stable/generated/torch.compile.html"


@dataclass(frozen=True)
class _Story:
    """What kind of thing it is, and who: stretches of one story are one finding."""

    id: str
    who: str
    row: int = -1  # an event; −1 for none


@rule("long_stretches")
def long_stretches(profile: Profile) -> Iterator[Finding]:
    """`cold_start`, `host_freeze`, `idle_unexplained`, `compile_in_steps`, `python_bound`, `dispatch_bound`."""
    if profile.means["wall"] is None or profile.trace.device != "gpu":
        return
    pieces = profile.cost.pieces
    holes = is_hole(pieces) & profile.counted[pieces.step] & ~np.isin(pieces.event, pageable_calls(profile.trace))
    told: dict[tuple[str, str], list[tuple[int, _Story]]] = {}
    usual = Usual(profile)
    for place in np.flatnonzero(holes).tolist():
        story = _story(profile, usual, place)
        key = (story.id, "" if story.id in _TOGETHER else story.who)
        told.setdefault(key, []).append((place, story))
    for (name, _), found in told.items():
        yield _finding(profile, name, found)


def _story(profile: Profile, usual: Usual, place: int) -> _Story:
    trace, pieces = profile.trace, profile.cost.pieces
    row = int(pieces.event[place])
    if row < 0:
        return _of_nobody(profile, place)
    name = trace.names[trace.name_codes[row]]
    if any(_FALLBACK.fullmatch(each) for each in operators_around(profile, row)):
        return _Story("compile_in_steps", "fallback_function", row)
    kind = int(trace.rows(np.array([row])).roles.kind[0])
    odd = trace.dur_ns[row] >= _ODD * usual.of_others(row)
    if kind != PYTHON and ((usual.is_first(row) and odd) or (kind == RUNTIME and odd and _at_first(profile, place))):
        return _Story("cold_start", name, row)
    if odd and not _in_most_steps(profile, name):
        return _Story("host_freeze", name, row)
    return _Story("python_bound" if pieces.of("python")[place] else "dispatch_bound", name, row)


def _in_most_steps(profile: Profile, name: str) -> bool:
    """Whether events of that name keep the GPU idle for so long in most steps."""
    pieces, trace = profile.cost.pieces, profile.trace
    chosen = is_hole(pieces) & (pieces.event >= 0) & profile.counted[pieces.step]
    alike = trace.name_codes[pieces.event[chosen]] == trace.names.index(name)
    steps = len(np.unique(pieces.step[chosen][alike]))
    return steps > 1 and steps >= _OFTEN * counted_steps(profile)


def _at_first(profile: Profile, place: int) -> bool:
    """Whether it lies in the first step of the trace."""
    return int(profile.cost.pieces.step[place]) == 0


def _of_nobody(profile: Profile, place: int) -> _Story:
    """Nothing was recorded meanwhile: Python, if such a stretch comes in most steps, else nobody knows."""
    before, after = _neighbours(profile, place)
    pieces = profile.cost.pieces
    holes = np.flatnonzero(is_hole(pieces) & (pieces.event < 0) & profile.counted[pieces.step])
    alike = [each for each in holes.tolist() if _neighbours(profile, each) == (before, after)]
    steps = len(np.unique(pieces.step[alike]))
    told = f"between {before} and {after}"
    often = steps > 1 and steps >= _OFTEN * counted_steps(profile)
    return _Story("python_bound" if often or line_of_moment(profile, place).file else "idle_unexplained", told)


def _neighbours(profile: Profile, place: int) -> tuple[str, str]:
    """The operators that ended before and started after, on the main thread."""
    trace, pieces = profile.trace, profile.cost.pieces
    start, end = int(pieces.start[place]), int(pieces.end[place])
    low, high = np.searchsorted(trace.ts_ns, (start, end))
    return _nearest(profile, range(int(low) - 1, -1, -1), "the start"), _nearest(
        profile, range(int(high), len(trace.ts_ns)), "the end"
    )


def _nearest(profile: Profile, rows: range, otherwise: str) -> str:
    """The first operator of the main thread, of at most a thousand events."""
    trace = profile.trace
    near = np.fromiter(rows[:1000], np.int64)
    if not len(near):
        return otherwise
    asked = trace.rows(near)
    found = np.flatnonzero(
        asked.roles.host & ~asked.roles.annotation & ~asked.roles.runtime & (asked.track == trace.threads.main)
    )
    return plain(trace.names[trace.name_codes[near[found[0]]]]) if len(found) else otherwise


def _finding(profile: Profile, name: str, found: list[tuple[int, _Story]]) -> Finding:
    pieces = profile.cost.pieces
    places = np.array([place for place, _ in found])
    chosen: Bools = np.zeros(len(pieces.start), bool)
    chosen[places] = True
    found = sorted(found, key=lambda each: -int(pieces.dur[each[0]]))
    first = found[0][1]
    rows: Ints = np.unique([story.row for _, story in found if story.row >= 0]).astype(np.int64)
    place = where(profile, first.row, plain(first.who)) if first.row >= 0 else line_of_moment(profile, found[0][0])
    if first.row < 0 and place == Where():
        place = Where(operator=first.who)
    title, advice, link = _told(profile, name, found, place)
    return Finding(
        name,
        title,
        advice=advice,
        where=place,
        evidence=evidence(profile, rows),
        link=link,
        confidence="measured" if first.row >= 0 else "inferred",
        claim=pieces.union(chosen),
    )


def _told(profile: Profile, name: str, found: list[tuple[int, _Story]], place: Where) -> tuple[str, str, str]:
    pieces = profile.cost.pieces
    total = int(sum(pieces.dur[each] for each, _ in found))
    longest, who = duration(int(pieces.dur[found[0][0]])), plain(found[0][1].who)
    times = f"{count(len(found))} time{'s' if len(found) > 1 else ''}"
    line = f" at {place.file}:{place.line}" if place.file else ""
    if name == "cold_start":
        names = dict.fromkeys(plain(story.who) for _, story in found)
        return (
            f"First calls keep the GPU idle for {duration(total)}, of which {who} takes {longest}"
            + (f"; then {', '.join([*names][1:4])}" if len(names) > 1 else ""),
            "This is paid once: leave the first steps out of what you measure, and warm up before a recording (the "
            "schedule's wait and warmup). It matters only where a run is short.",
            _LAZY,
        )
    if name == "host_freeze":
        usually = duration(Usual(profile).of_others(found[0][1].row))
        return (
            f"The host stands still {times}, {duration(total)} in all: {who}{line} takes {longest} where it usually "
            f"takes {usually}, and the GPU idles meanwhile",
            "The host's thread did not run: look for more busy threads than cores (torch.set_num_threads, workers of "
            "loaders, other jobs), Python's garbage collector, or swapping.",
            "https://docs.pytorch.org/docs/stable/notes/cpu_threading_torchscript_inference.html",
        )
    if name == "idle_unexplained":
        stretches = "one stretch" if len(found) == 1 else f"{count(len(found))} stretches"
        return (
            f"The GPU idles for {duration(total)} in {stretches}, the longest of {longest} {who}, and nothing was "
            "recorded meanwhile",
            "Record with Python stacks (with_stack=True), or capture with tracekit, to see what the host did then.",
            "https://docs.pytorch.org/docs/stable/profiler.html",
        )
    if name == "compile_in_steps":
        return (
            f"TorchScript's fuser compiles in {who}, {times}, for {longest} at most, and launches nothing meanwhile",
            "Warm the scripted function up with every shape before it is measured, switch its fuser off "
            "(torch._C._jit_set_texpr_fuser_enabled(False)), or move to torch.compile.",
            _COMPILE,
        )
    noun = "Python" if name == "python_bound" else "the host"
    doing = line or (f" {who}" if found[0][1].row < 0 else f" in {who}")
    return (
        f"The GPU waits while {noun} is busy{doing}: {duration(total / counted_steps(profile))} a step, {longest} "
        "at a time",
        "Move it out of the step, do it on the GPU, or do it in another thread or process while the GPU works.",
        _COMPILE,
    )
