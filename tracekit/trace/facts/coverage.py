"""Which launches have work in the trace? In real traces, every launch of a kernel and every copy has some, unless it is
recorded into a CUDA graph or the work was lost.

Memsets are not counted: some of them leave no activity.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import NO_TIME, Bools, Ints, Rows, Union, distinct, runs
from tracekit.trace.roles import DEVICE_SYNC, Roles
from tracekit.trace.storing.scratch import put_aside
from tracekit.vocabulary import event_names

if TYPE_CHECKING:
    from tracekit.trace.model import Trace

_MUST_HAVE_WORK = event_names.call(rf"{event_names.KERNEL_LAUNCH}|(?:cuda|hip|cu)Memcpy.*Async")
_BEGIN_CAPTURE = re.compile(r"(?:cuda|hip|cu)StreamBeginCapture(?:ToGraph)?")
_MIN_SHARE_OF_STREAM = 0.05  # of the activities: a stream that runs fewer is rarely used, and may not go on
_MIN_REPLAYS = 3  # of two that differ, neither is known to be whole
_END_CAPTURE = re.compile(r"(?:cuda|hip|cu)StreamEndCapture")


class Coverage(Struct, frozen=True):
    """The launches that must have work, in order of their starts: rows, and what each lacks."""

    calls: Ints
    is_lost: Bools  # no work at all
    present: Rows  # how many activities each has in the trace
    missing: Rows  # how many it lacks: one, if it has none; of a replay of a graph, its nodes that others have
    step: Rows  # index of the step in whose time each starts; −1 for none
    captured: Ints  # rows of the launches that a graph being recorded took in: they run nothing

    @property
    def lost(self) -> int:
        """How many launches have no work."""
        return int(self.is_lost.sum())

    @property
    def is_incomplete(self) -> Bools:
        """Which launches lack work, or some of it."""
        mask: Bools = self.missing > 0
        return mask

    def by_step(self, steps: int) -> tuple[Ints, Ints]:
        """For each step: how many activities its launches should have, and how many of these are missing."""
        in_step = self.step >= 0
        present, missing = (
            np.bincount(self.step[in_step], numbers[in_step], minlength=steps).astype(np.int64)
            for numbers in (self.present, self.missing)
        )
        return present + missing, missing


def find_coverage(trace: "Trace") -> Coverage:
    """Match the launches of a trace with GPU activity; a trace without any has no launches here."""
    nothing = np.zeros(0, np.int64)
    if trace.device != "gpu":
        return Coverage(nothing, nothing.astype(bool), none := nothing.astype(np.int32), none, none, nothing)
    calls = trace.where(
        lambda part: part.roles.launch & part.process & part.roles.named(_MUST_HAVE_WORK) & (part.correlation != 0)
    )
    captured = _in_capture(trace, calls)
    expected = calls[~captured]
    step = trace.steps.of(trace.ts_ns[expected])
    present = trace.links.submitted(expected)[1].astype(np.int64)
    # Work that starts before its call is there, although it is linked to nothing.
    present[np.isin(trace.correlation[expected], trace.correlation[trace.impossible.before_call]) & (present == 0)] = 1
    missing = np.where(present == 0, 1, _missing_nodes(trace, expected, step))
    present_numbers, missing_numbers, step_numbers = (
        put_aside(column.astype(np.int32)) for column in (present, missing, step)
    )
    is_lost = present == 0
    return Coverage(put_aside(expected), is_lost, present_numbers, missing_numbers, step_numbers, calls[captured])


def _missing_nodes(trace: "Trace", calls: Ints, step: Ints) -> Ints:
    """How many nodes each replay of a CUDA graph lacks that another replay of the same graph has.

    Replays are of one graph if they are the n-th of their steps, and none has nodes that the longest lacks.
    """
    missing = np.zeros(len(calls), np.int64)
    is_replay = trace.events_at(calls).roles.graph_launch & (trace.links.submitted(calls)[1] > 0)
    replays = np.flatnonzero(is_replay)
    if len(replays) < _MIN_REPLAYS:
        return missing
    nodes = nodes_of_replays(trace, calls[replays])
    for group in _replays_of_one_graph(step[replays]):
        fullest = max((nodes[k] for k in group), key=lambda names: names.total())
        if all(nodes[k] <= fullest for k in group):
            missing[replays[group]] = [fullest.total() - nodes[k].total() for k in group]
    return missing


def nodes_of_replays(trace: "Trace", calls: Ints) -> list[Counter[int]]:
    """How often each name occurs among the activities of each replay; kernels that overlap have no certain order."""
    order = np.argsort(trace.links.launches, kind="stable")
    launches, names = trace.links.launches[order], trace.name_codes[trace.links.activities[order]]
    bounds = np.searchsorted(launches, calls), np.searchsorted(launches, calls, side="right")
    return [Counter(names[first:last].tolist()) for first, last in zip(*bounds, strict=True)]


def _replays_of_one_graph(step: Ints) -> Iterator[Ints]:
    """Positions of the replays that are of one graph, group by group: of steps with the usual number of replays, or of
    all where there are no steps."""
    numbers, counts = np.unique(step[step >= 0], return_counts=True)
    usual = int(np.bincount(counts).argmax()) if len(counts) else 0
    alike = np.flatnonzero(np.isin(step, numbers[counts == usual]))
    if len(numbers) > 1:
        yield from alike[np.argsort(step[alike], kind="stable")].reshape(-1, usual).T
    else:
        yield np.arange(len(step))


def _in_capture(trace: "Trace", calls: Ints) -> Bools:
    """Which calls lie between the begin and the end of a graph's recording on their thread."""
    marks, begins = _capture_marks(trace)
    captured = np.zeros(len(calls), bool)
    for track in distinct(trace.track[marks]).tolist():
        on_track = trace.track[marks] == track
        mine = trace.track[calls] == track
        last = np.searchsorted(marks[on_track], calls[mine]) - 1
        captured[mine] = (last >= 0) & begins[on_track][np.maximum(last, 0)]
    return captured


def graph_recordings(trace: "Trace") -> tuple[Ints, Ints]:
    """The calls with which recordings of graphs begin, and for each the call of its thread that ends it."""
    marks, begins = _capture_marks(trace)
    order = np.argsort(trace.track[marks], kind="stable")
    marks, begins = marks[order], begins[order]
    opens = np.flatnonzero(begins[:-1] & ~begins[1:] & (trace.track[marks[:-1]] == trace.track[marks[1:]]))
    return marks[opens], marks[opens + 1]


def _capture_marks(trace: "Trace") -> tuple[Ints, Bools]:
    """The calls that begin or end a graph's recording, and which of them begin one."""

    def is_mark(roles: Roles) -> Bools:
        return roles.named(_BEGIN_CAPTURE, True) | roles.named(_END_CAPTURE, True)

    marks = np.zeros(0, np.int64)
    if trace.census.any(is_mark):
        marks = trace.where(lambda part: part.process & is_mark(part.roles))
    begins = trace.events_at(marks).roles.named(_BEGIN_CAPTURE, runtime=True)
    return marks, begins


def time_of_lost_work(trace: "Trace", coverage: Coverage) -> Union:
    """When lost work may have run: from a launch without work until each stream begins what was launched later, since a
    stream runs in order, or until the host has waited for all of it, or to the end; but not while the GPU is known to
    work."""
    is_incomplete = coverage.is_incomplete
    if not is_incomplete.any():
        return NO_TIME
    bounds = runs(is_incomplete.astype(np.int8))
    is_run = is_incomplete[bounds[:-1]]
    starts = trace.ts_ns[coverage.calls[bounds[:-1][is_run]]]
    last_lost = coverage.calls[bounds[1:][is_run] - 1]
    ends = _begun_everywhere(trace, last_lost)
    waits = trace.where(lambda part: part.process & part.roles.named(DEVICE_SYNC, runtime=True))
    launched = trace.ts_ns[last_lost]
    waited = np.append(trace.events_at(waits).end_ns, ends.max())
    ends = np.minimum(ends, waited[np.searchsorted(trace.ts_ns[waits], launched)])
    busy = trace.events_at(trace.where(lambda part: part.roles.gpu & part.lasting))
    return Union.of(starts, np.maximum(ends, starts)).minus(Union.of(busy.ts_ns, busy.end_ns))


def _begun_everywhere(trace: "Trace", calls: Ints) -> Ints:
    """When each stream that matters has begun something that was launched after each call; the end of the trace, where
    one never does."""
    activities, launches = trace.links.activities, trace.links.launches
    end = int(trace.end_ns.max()) + 1
    begun = np.full(len(calls), end if not len(activities) else 0, np.int64)
    tracks, counts = np.unique(trace.track[activities], return_counts=True)
    for track in tracks[counts >= _MIN_SHARE_OF_STREAM * len(activities)].tolist():
        on_track = trace.track[activities] == track
        order = np.argsort(launches[on_track], kind="stable")
        starts = np.append(trace.ts_ns[activities[on_track][order]], end)
        begun = np.maximum(begun, starts[np.searchsorted(launches[on_track][order], calls, side="right")])
    return begun
