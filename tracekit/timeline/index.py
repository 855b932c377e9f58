"""Which lanes does a variant have? Wall time, GPU streams, host threads, compilations and idle time."""

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Literal

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import Bools, Ints, Rows, Union
from tracekit.profile import Profile
from tracekit.timeline.categories import CATEGORY, FRAMES, GPU, HOST, Kinds
from tracekit.timeline.lane import Codes, Lane, sublanes
from tracekit.trace import Trace

Family = Literal["wall", "gpu", "idle", "compile", "host", "frames"]
MOST = 64  # rows of one thread: events that nest deeper share the last row


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
        groups = tuple(group for group in _groups(profile, kinds) if group.lanes)
        lows = [int(lane.start[0]) for group in groups for lane in group.lanes]
        highs = [int(lane.end.max()) for group in groups for lane in group.lanes]
        low, high = trace.steps.window
        return Index(profile, groups, kinds, min([low, *lows]), max([high, *highs]))

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
        return str(trace.names[trace.name_codes[row]])

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


def _groups(profile: Profile, kinds: Kinds) -> Iterator[Group]:
    trace = profile.trace
    pieces = profile.attribution.pieces
    yield Group("wall", pieces.view, _single_lane(pieces.start, pieces.end, pieces.event, pieces.bucket))
    tracks = trace.tracks
    streams = _by_track(trace, kinds.lanes == GPU)
    devices = {tracks["pid"][track].as_py() for track in streams}
    for track, rows in streams.items():
        device = f"GPU {tracks['pid'][track].as_py()} " if len(devices) > 1 else ""
        yield Group("gpu", f"{device}stream {tracks['tid'][track].as_py()}", _lanes(trace, kinds, rows), track)
    if streams:
        yield Group("idle", "GPU idle", _idle(trace, [*streams.values()]))
    compiling = np.flatnonzero((kinds.category == CATEGORY["compile"]) & (kinds.lanes == HOST))
    yield Group("compile", "compile", _lanes(trace, kinds, compiling) if len(compiling) else ())
    threads = _by_track(trace, kinds.lanes == HOST)
    frames = _by_track(trace, kinds.lanes == FRAMES)
    for track in _in_order(trace, {**threads, **frames}):
        if track in threads:
            yield Group("host", _thread(trace, track), _lanes(trace, kinds, threads[track]), track)
    for track in _in_order(trace, frames):
        yield Group("frames", f"{_thread(trace, track)} Python", _lanes(trace, kinds, frames[track]), track)


def _single_lane(start: Ints, end: Ints, row: Rows, category: Codes) -> tuple[Lane, ...]:
    return (Lane.of(start, end, row, category).index(),) if len(start) else ()


def _by_track(trace: Trace, mask: Bools) -> dict[int, Ints]:
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


def _idle(trace: Trace, streams: list[Ints]) -> tuple[Lane, ...]:
    """The times when no stream has work, from the first step's issue to the end of the last one's work."""
    rows = trace.events_at(np.sort(np.concatenate(streams)))
    gaps = Union.of(rows.ts_ns, rows.end_ns).gaps(*trace.steps.window)
    nothing = np.full(len(gaps.starts), -1, np.int32)
    return _single_lane(gaps.starts, gaps.ends, nothing, np.full(len(nothing), CATEGORY["idle"], np.int8))


def _in_order(trace: Trace, tracks: dict[int, Ints]) -> list[int]:
    """The main thread and its helpers, then the others of their process, then the rest; those with most events
    first."""
    driving = [track for track in trace.threads.driving if track in tracks]
    process = trace.threads.process
    other_tracks = [track for track in tracks if track not in driving]
    return driving + sorted(other_tracks, key=lambda track: (not process[track], -len(tracks[track]), track))


def _thread(trace: Trace, track: int) -> str:
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
