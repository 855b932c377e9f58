"""Which lanes does a variant have, and what are the events on them called? Wall time, GPU streams, host threads,
compilations and idle time; a label is the part of a name that people look for.
"""

import re
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import Bools, Ints, Rows, Union
from tracekit.base.units import duration
from tracekit.profile import Profile
from tracekit.timeline.categories import CATEGORIES, CATEGORY, FRAMES, GPU, HOST, Kinds
from tracekit.timeline.lane import NONE, Codes, Lane, sublanes
from tracekit.trace import Trace
from tracekit.vocabulary.kernel_names import short_kernel

Family = Literal["wall", "gpu", "idle", "compile", "host", "frames"]
MOST = 64  # rows of one thread: events that nest deeper share the last row
_NAMESPACES = re.compile(r"(?:autograd::engine::evaluate_function: |aten::|c10d?::|nn\.Module: |torch::autograd::)")
_FRAME = re.compile(r".*\.py\(\d+\): (.*)", re.DOTALL)
_BUILT_IN = re.compile(r"<built-in (?:method|function) (\S+).*>", re.DOTALL)


class Group(Struct, frozen=True):
    """Lanes that belong together: a stream or a thread, with a lane for each level of overlapping events."""

    family: Family
    title: str  # text of the trace, which has to be sanitized when it is drawn
    lanes: tuple[Lane, ...]
    track: int = -1  # row in the tracks table; −1 if the lanes do not belong to one track


class Index(Struct, frozen=True, eq=False, dict=True):  # compared by identity
    """Everything that a picture of a variant needs. `low` and `high` bound its events, ns on the trace's clock."""

    profile: Profile
    groups: tuple[Group, ...]
    kinds: Kinds
    low: int
    high: int

    @staticmethod
    def of(profile: Profile) -> "Index":
        """Index a variant; slow if there are many events, so it is done in the background."""
        trace, kinds = profile.trace, Kinds.of(profile.trace)
        pieces, threads = profile.attribution.pieces, rows_by_track(trace, kinds.lanes == HOST)
        streams, frames = rows_by_track(trace, kinds.lanes == GPU), rows_by_track(trace, kinds.lanes == FRAMES)
        wall = _single_lane(pieces.start, pieces.end, pieces.event, pieces.bucket)
        groups = [Group("wall", pieces.view, wall)]
        pids, tids = (trace.tracks[column].to_pylist() for column in ("pid", "tid"))
        several_devices = len({pids[track] for track in streams}) > 1
        for track, rows in streams.items():
            device = f"GPU {pids[track]} " if several_devices else ""
            groups.append(Group("gpu", f"{device}stream {tids[track]}", _lanes(trace, kinds, rows), track))
        if streams:  # when none of them has work, from the first step's issue to the end of the last one's work
            work = trace.events_at(np.sort(np.concatenate([*streams.values()])))
            gaps = Union.of(work.ts_ns, work.end_ns).gaps(*trace.steps.window)
            no_event = np.full(len(gaps.starts), NONE, np.int32)
            idle = np.full(len(gaps.starts), CATEGORY["idle"], np.int8)
            groups.append(Group("idle", "GPU idle", _single_lane(gaps.starts, gaps.ends, no_event, idle)))
        compiling = np.flatnonzero((kinds.category == CATEGORY["compile"]) & (kinds.lanes == HOST))
        groups.append(Group("compile", "compile", _lanes(trace, kinds, compiling)))
        for track in threads_in_order(trace, {**threads, **frames}):
            if track in threads:
                groups.append(Group("host", thread_title(trace, track), _lanes(trace, kinds, threads[track]), track))
        for track in threads_in_order(trace, frames):
            title = f"{thread_title(trace, track)} Python"
            groups.append(Group("frames", title, _lanes(trace, kinds, frames[track]), track))
        groups = [group for group in groups if group.lanes]
        lows = [int(lane.start[0]) for group in groups for lane in group.lanes]
        highs = [int(lane.end.max()) for group in groups for lane in group.lanes]
        low, high = trace.steps.window
        return Index(profile, tuple(groups), kinds, min([low, *lows]), max([high, *highs]))

    @cached_property
    def step_bounds(self) -> tuple[Ints, Ints]:
        """When each step begins and ends in the view of the wall lane; without steps, the whole recording."""
        view = self.profile.attribution.answered_view
        if not len(view.starts_ns):
            return np.array([self.low]), np.array([self.high])
        return view.starts_ns, view.starts_ns + view.step_ns

    def name(self, row: int) -> str:
        """The name of an event in the trace, not sanitized."""
        trace = self.profile.trace
        return trace.name(row)

    @cached_property
    def numbers(self) -> list[int]:
        """The N of each step; 0 for the whole recording, if there are no steps."""
        return self.profile.trace.steps.number or [0]

    @cached_property
    def typical_step(self) -> int:
        """The position of a step of typical duration: the median of the counted steps."""
        lows, highs = self.step_bounds
        counted = np.flatnonzero(self.profile.counted)
        if not len(counted):
            return 0
        order = counted[np.argsort((highs - lows)[counted], kind="stable")]
        return int(order[len(order) // 2])


def _single_lane(start: Ints, end: Ints, row: Rows, category: Codes) -> tuple[Lane, ...]:
    return (Lane.of(start, end, row, category).index(),) if len(start) else ()


def rows_by_track(trace: Trace, mask: Bools) -> dict[int, Ints]:
    """The rows of these events by their tracks."""
    rows = np.flatnonzero(mask)
    track = trace.track[rows]
    order = np.argsort(track, kind="stable")
    bounds = np.cumsum(np.bincount(track, minlength=len(trace.tracks)))
    parts = np.split(rows[order], bounds[:-1]) if len(bounds) else []
    return {number: part for number, part in enumerate(parts) if len(part)}


def _lanes(trace: Trace, kinds: Kinds, rows: Ints) -> tuple[Lane, ...]:
    """The events of one track, divided into lanes without overlaps."""
    start, dur = trace.ts_ns[rows], trace.dur_ns[rows]
    if ((start[1:] == start[:-1]) & (dur[1:] > dur[:-1])).any():
        order = np.lexsort((-dur, start))
        rows, start, dur = rows[order], start[order], dur[order]
    category = kinds.category[rows]
    end, small = start + dur, rows.astype(np.int32)
    levels = sublanes(start, end, MOST)
    return tuple(Lane.of(start[level], np.array(end[level]), small[level], category[level]).index() for level in levels)


def threads_in_order(trace: Trace, tracks: dict[int, Ints]) -> list[int]:
    """The main thread and its helpers, then the others of their process, then the rest; those with most events
    first."""
    driving = [track for track in trace.threads.driving if track in tracks]
    process = trace.threads.process
    other_tracks = [track for track in tracks if track not in driving]
    return driving + sorted(other_tracks, key=lambda track: (not process[track], -len(tracks[track]), track))


def thread_title(trace: Trace, track: int) -> str:
    """`main thread`; another one by its name, if that differs from the name of its process, else by what it
    does and its number."""
    if track == trace.threads.main:
        return "main thread"
    name, process = (trace.tracks[column][track].as_py() for column in ("thread", "process"))
    own_name = re.fullmatch(r"thread -?\d+ \((.+)\)", str(name))
    if own_name and own_name[1] != process:
        return own_name[1]
    if (
        track in trace.threads.helpers
        and trace.census.by_track(lambda roles: roles.backward_node, len(trace.tracks))[track]
    ):
        return f"autograd {trace.tracks['tid'][track].as_py()}"
    return f"thread {trace.tracks['tid'][track].as_py()}"


def labels(index: Index, group: Group, depth: int, position: int) -> tuple[str, ...]:
    """The short name of an event, the bucket and culprit of a stretch of wall time, the length of a gap.

    Returns the possible labels, the longest first. They are text of the trace, which a face has to sanitize.
    """
    lane = group.lanes[depth]
    if group.family == "idle":
        return (duration(int(lane.end[position] - lane.start[position])),)
    if group.family == "wall":
        bucket = CATEGORIES[int(lane.category[position])].label
        if lane.row[position] < 0:
            return (bucket,)
        return f"{bucket}: {short_name(index.name(int(lane.row[position])), on_gpu=False)}", bucket
    return (short_name(index.name(int(lane.row[position])), group.family == "gpu"),)


def short_name(name: str, on_gpu: bool) -> str:
    """`addmm` for `aten::addmm`, `forward` for `model.py(12): forward`, and for a kernel, what it computes."""
    return short_kernel(name) if on_gpu else _short_on_host(name)


@lru_cache(1 << 14)
def _short_on_host(name: str) -> str:
    frame = _FRAME.fullmatch(name) or _BUILT_IN.fullmatch(name)
    return frame[1] if frame else _NAMESPACES.sub("", name)
