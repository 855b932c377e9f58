"""What work of a device is missing from the trace: that of some launches, or all of it?

In real traces, every launch of a kernel and every copy has some work, unless it is recorded into a CUDA graph or the
work was lost. Memsets are not counted: some of them leave no activity. That work ran on a device of which the trace
shows nothing, the calls that submit it show, or operators that only an accelerator has, or a read of a tensor's value
that takes far longer than on a CPU, because it waits for a device.
"""

import re
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import NO_INTS, NO_TIME, Bools, Ints, Rows, Union, distinct, runs
from tracekit.base.units import count, duration
from tracekit.trace.roles import DEVICE_SYNC, OPERATOR, USER, Roles, bare
from tracekit.trace.schema import labels
from tracekit.trace.storing.scratch import put_aside
from tracekit.vocabulary import event_names

if TYPE_CHECKING:
    from tracekit.trace.model import Trace

_MUST_HAVE_WORK = event_names.call(rf"{event_names.KERNEL_LAUNCH}|(?:cuda|hip|cu)Memcpy.*Async")
_BEGIN_CAPTURE = re.compile(r"(?:cuda|hip|cu)StreamBeginCapture(?:ToGraph)?")
_MIN_SHARE_OF_STREAM = 0.05  # of the activities: a stream that runs fewer is rarely used, and may not go on
_MIN_REPLAYS = 3  # of two that differ, neither is known to be whole
_END_CAPTURE = re.compile(r"(?:cuda|hip|cu)StreamEndCapture")
# Operators that work on an accelerator only. torch asks on a CPU, too, whether a library for GPUs would do: such
# questions (`aten::cudnn_is_acceptable`) are no work.
_ACCELERATED = re.compile(
    r"aten::_?(?:cudnn|miopen)_(?!is_|can_|has_|use_).*|aten::_(?:flash|efficient)_attention_(?:forward|backward)"
    r"|aten::_?(?:\w+_)?mps(?:_.*)?|triton_(?:poi|red|per|tem|mm)_.*|(?:mtia|hpu|npu|xla|mps|xpu)(?:::|_).*",
    re.DOTALL,
)
_COLLECTIVE = re.compile(r"(?:nccl|rccl|hccl|xccl):.*", re.DOTALL)  # annotations of libraries for accelerators
_OTHER_DEVICES = re.compile(r"(?:mtia|hpu|npu|tpu|xpu|mps)_.*")  # categories of events
_READS = re.compile(r"aten::_local_scalar_dense")  # what .item() and float() of a tensor come down to
_MIN_READ_NS = 200_000  # on average: on a CPU, reading a value takes a few µs
_MIN_SHARE_OF_READS = 0.02  # of the recording


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
    nothing = NO_INTS
    if trace.device != "gpu":
        return Coverage(nothing, nothing.astype(bool), none := nothing.astype(np.int32), none, none, nothing)
    calls = trace.where(
        lambda part: part.roles.launch & part.process & part.roles.named(_MUST_HAVE_WORK) & (part.correlation != 0)
    )
    # The calls between the begin and the end of a graph's recording on their thread.
    marks, begins = _capture_marks(trace)
    captured = np.zeros(len(calls), bool)
    for track in distinct(trace.track[marks]).tolist():
        on_track, mine = trace.track[marks] == track, trace.track[calls] == track
        last = np.searchsorted(marks[on_track], calls[mine]) - 1
        captured[mine] = (last >= 0) & begins[on_track][np.maximum(last, 0)]
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

    Replays are of one graph if they are the n-th of their steps, of those with the usual number of replays, and none
    has nodes that the longest lacks. Where there are no steps, all are of one graph.
    """
    missing = np.zeros(len(calls), np.int64)
    is_replay = trace.events_at(calls).roles.graph_launch & (trace.links.submitted(calls)[1] > 0)
    replays = np.flatnonzero(is_replay)
    if len(replays) < _MIN_REPLAYS:
        return missing
    nodes = nodes_of_replays(trace, calls[replays])
    owner = step[replays]
    numbers, counts = np.unique(owner[owner >= 0], return_counts=True)
    groups = np.arange(len(owner))[None]
    if len(numbers) > 1:
        usual = int(np.bincount(counts).argmax())
        alike = np.flatnonzero(np.isin(owner, numbers[counts == usual]))
        groups = alike[np.argsort(owner[alike], kind="stable")].reshape(-1, usual).T
    for group in groups:
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

    marks = NO_INTS
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
    # When each stream that matters has begun something that was launched later; the end, where one never does.
    activities, launches = trace.links.activities, trace.links.launches
    end = int(trace.end_ns.max()) + 1
    ends = np.full(len(last_lost), end if not len(activities) else 0, np.int64)
    tracks, counts = np.unique(trace.track[activities], return_counts=True)
    for track in tracks[counts >= _MIN_SHARE_OF_STREAM * len(activities)].tolist():
        on_track = trace.track[activities] == track
        order = np.argsort(launches[on_track], kind="stable")
        begun = np.append(trace.ts_ns[activities[on_track][order]], end)
        ends = np.maximum(ends, begun[np.searchsorted(launches[on_track][order], last_lost, side="right")])
    waits = trace.where(lambda part: part.process & part.roles.named(DEVICE_SYNC, runtime=True))
    launched = trace.ts_ns[last_lost]
    waited = np.append(trace.events_at(waits).end_ns, ends.max())
    ends = np.minimum(ends, waited[np.searchsorted(trace.ts_ns[waits], launched)])
    busy = trace.events_at(trace.where(lambda part: part.roles.gpu & part.lasting))
    return Union.of(starts, np.maximum(ends, starts)).minus(Union.of(busy.ts_ns, busy.end_ns))


class Submitted(Struct, frozen=True):
    """Work for a device of which the trace shows nothing: who submitted it, that in words, and which events show it."""

    function: str | None  # the call that submitted most of it
    operator: str | None  # or the operator, where no call is recorded
    description: str
    rows: Ints


def device_side_missing(trace: "Trace") -> Submitted | None:
    """Who submitted work to a device of which the trace shows nothing; None where no such work was submitted."""
    if trace.device == "gpu":
        return None
    if trace.census.any(lambda roles: roles.launch):
        rows = trace.where(lambda part: part.roles.launch)
        name = _most_frequent(trace, rows)
        description = f"{count(len(rows))} calls submitted work to the GPU, most of them {bare(name)}"
        return Submitted(bare(name), None, description, rows)
    if len(rows := of_category(trace, _OTHER_DEVICES)):
        return Submitted(None, None, "The work ran on an accelerator", rows)
    if trace.census.any(_is_accelerated):
        rows = trace.where(lambda part: _is_accelerated(part.roles))
        name = _most_frequent(trace, rows)
        description = f"{count(len(rows))} operators ran that only an accelerator has, most of them {name}"
        return Submitted(None, name, description, rows)
    reads = trace.where(lambda part: (part.roles.kind == OPERATOR) & part.roles.named(_READS))
    waited_ns, whole_ns = int(trace.dur_ns[reads].sum()), np.diff(trace.steps.window)[0]
    if len(reads) and waited_ns >= max(_MIN_READ_NS * len(reads), _MIN_SHARE_OF_READS * whole_ns):
        name = trace.name(reads[0])
        description = (
            f"Reading a value takes {duration(waited_ns / len(reads))} on average, as where it waits for a device"
        )
        return Submitted(None, name, description, reads)
    return None


def of_category(trace: "Trace", pattern: re.Pattern[str]) -> Ints:
    """The rows of the events whose category matches as a whole."""
    categories = [k for k, category in enumerate(labels(trace.events["cat"])) if pattern.fullmatch(category)]
    return np.flatnonzero(np.isin(trace.cat_codes, categories)) if categories else NO_INTS


def _is_accelerated(roles: Roles) -> Bools:
    operators: Bools = (roles.kind < USER) & roles.named(_ACCELERATED)  # users may name annotations as they like
    return operators | ((roles.kind <= USER) & roles.named(_COLLECTIVE))


def _most_frequent(trace: "Trace", rows: Ints) -> str:
    """The most frequent name among these events."""
    return trace.names[int(np.bincount(trace.name_codes[rows]).argmax())]
