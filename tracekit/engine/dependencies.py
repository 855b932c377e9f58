"""What did each launch, each GPU activity and each return of a blocked call wait for?

The nodes of a stretch of time, in an order in which everything comes after what it depends on. Read from the file are
the call that submitted an activity, the order of each stream, and the order of each host thread. Inferred are:

- what a sync waited for, or a call that frees memory: the last activity to end before the call returned, of those
  submitted before it;
- a full launch queue: a call returns only after the call `depth` launches before it has started on the stream;
- a wait for another stream: an activity that starts later than its stream and its launch explain waited for the last
  activity that had ended by then;
- backward: the autograd engine's thread goes on when the main thread hands over, in whose record nothing begins or
  ends meanwhile; and the main thread goes on when it is done.
"""

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracekit.base.intervals import Bools, Ints, Union, distinct, runs
from tracekit.trace.roles import PYTHON

if TYPE_CHECKING:
    from tracekit.trace.model import Trace
    from tracekit.trace.rows import Events

# Of nodes at the same time, a lower kind comes first.
RETURN, DRAINED, FULL, HANDOVER, LAUNCH, END, ACTIVITY = range(7)
NONE = -1
NEVER = -(1 << 62)  # ns; long before anything
QUEUE_DEPTH = 1024  # launches that a stream holds before the next call blocks
_NEARLY_FULL = 900  # as many as are known to have blocked a call: then the depth is what was seen at most
_LAUNCH_NS, _GAP_NS = 5_000, 1_000  # where a trace does not show how long a launch and the gap to the next kernel take
UNEXPLAINED_NS = 8_000  # a later start waited for something else
_MOST_NS = 30_000  # neither takes longer, however many of a trace's activities start late
_SKEW_NS = 3_000  # by which the clocks of host and GPU differ at most
_TRIED = 8  # candidates for what a sync waited for


class Dependencies(Struct, frozen=True):
    """One entry per node, in the order of a replay; dependencies are indices of nodes before it, −1 for none.

    A host node happens at `start`; an activity takes `[start, end)`. `launch` is the call that submitted an activity;
    `before` the activity before it on its stream or, for a return, what the call waited for; `source` an activity of
    another stream or, for a hand-over, the thread that hands over. An activity starts `delay` after the latest of: its
    launch and `after_launch`, the end of the one before and `after_before`, the end of `source`. A call that blocks
    goes through its own work from `since` on, where it was called or the thread's last node.
    """

    row: Ints  # of the event; −1 where no single event makes the node
    kind: NDArray[np.int8]
    thread: Ints  # of host nodes, counted from 0, the main thread; −1 for activities
    start: Ints
    end: Ints
    since: Ints
    launch: Ints
    before: Ints
    source: Ints
    after_launch: Ints
    after_before: Ints
    delay: Ints

    def __len__(self) -> int:
        return len(self.kind)


def dependencies(trace: "Trace", low: int, high: int, returned: int) -> Dependencies:
    """The nodes of `[low, high)`, and what runs at `low` already.

    What was queued before the step of `low` was issued is held where it was recorded. `returned` is when the main
    thread is done with what is replayed: its node is an `END`.
    """
    first, last = np.searchsorted(trace.ts_ns, (low, high))
    part = trace.events_at(slice(int(first), int(last)))
    roles = part.roles
    earlier = trace.links.activities[: np.searchsorted(trace.links.activities, first)].astype(np.int64)
    running = earlier[trace.events_at(earlier).end_ns > low]
    activities = np.concatenate((running, part.rows(roles.gpu & part.lasting)))
    launches = trace.links.launch(activities)
    (step,) = trace.steps.of(np.array([low])).tolist()
    issued, begin = (int(trace.steps.issued[step]), int(trace.steps.begin[step])) if step >= 0 else (low, low)
    is_queued = np.where(launches >= 0, trace.ts_ns[launches] < issued, trace.ts_ns[activities] < begin)
    is_queued[: len(running)] = True
    launches[launches < first] = NONE
    # Where the clocks of host and GPU differ, an activity may start before its launch.
    launches[(launches >= 0) & (trace.ts_ns[launches] > trace.ts_ns[activities])] = NONE
    blocking = np.zeros(len(roles.kind), bool)
    calls = part.rows(roles.runtime & part.process)
    blocking[calls[trace.links.is_blocking(calls)] - first] = True
    blocking |= (roles.sync_by_name | roles.frees) & part.process
    syncs = part.rows(blocking & part.lasting & (part.end_ns <= high))
    # The tracks of the threads that matter, the main thread first.
    driving = np.array(trace.threads.driving, np.int64)
    calling = distinct(trace.track[np.concatenate((launches[launches >= 0], syncs))])
    tracks = np.concatenate((driving, np.setdiff1d(calling, driving))).astype(np.int64)
    build = _Builder(trace, tracks, activities, is_queued)
    calls, of_call = np.unique(launches[launches >= 0], return_inverse=True)
    ordinals = np.full(len(activities), NONE, np.int64)
    ordinals[launches >= 0] = of_call
    build.calls(calls, ordinals)
    build.syncs(syncs, launches)
    build.full_queues(calls, ordinals, high)
    build.handovers(part)
    build.mark(END, np.zeros(1, np.int64), np.full(1, returned))
    return build.ordered()


class _Builder:
    """Nodes by kind, numbered as they are made: first the activities, then host nodes."""

    def __init__(self, trace: "Trace", tracks: Ints, activities: Ints, is_queued: Bools) -> None:
        self._trace, self._tracks, self._activities, self._is_queued = trace, tracks, activities, is_queued
        self._start, self._end = trace.ts_ns[activities], trace.events_at(activities).end_ns
        self._by_end = np.argsort(self._end, kind="stable")
        self._numbers = np.full(len(trace.tracks), NONE, np.int64)
        self._numbers[tracks] = np.arange(len(tracks))
        nothing = np.full(len(activities), NONE, np.int64)
        self._columns: dict[str, list[Ints]] = {
            "row": [activities],
            "kind": [np.full(len(activities), ACTIVITY, np.int64)],
            "thread": [nothing],
            "start": [self._start],
            "end": [self._end],
            "since": [self._start],
            "before": [],
            "launch": [],
            "source": [],
        }
        self._lags: tuple[Ints, Ints, Ints] = (nothing, nothing, nothing)
        self._node_count = len(activities)

    def mark(self, kind: int, thread: Ints, start: Ints, **columns: Ints) -> Ints:
        """Host nodes; their numbers."""
        count = len(start)
        nothing = np.full(count, NONE, np.int64)
        nodes = {
            "row": nothing,
            "thread": thread,
            "start": start,
            "end": start,
            "since": start,
            "kind": np.full(count, kind),
        }
        nodes |= {"before": nothing, "launch": nothing, "source": nothing} | columns
        for name, column in self._columns.items():
            column.append(np.asarray(nodes[name], np.int64))
        self._node_count += count
        return np.arange(self._node_count - count, self._node_count)

    def calls(self, calls: Ints, of_activity: Ints) -> None:
        """The launches, and what each activity depends on."""
        trace, start, end, activities = self._trace, self._start, self._end, self._activities
        launched = np.where(of_activity >= 0, of_activity + self._node_count, NONE)
        launched_at = np.where(of_activity >= 0, trace.ts_ns[calls[of_activity]] if len(calls) else 0, NEVER)
        by_stream = np.argsort(trace.track[activities], kind="stable")
        before = np.full(len(activities), NONE, np.int64)
        follows = np.flatnonzero(np.diff(trace.track[activities][by_stream]) == 0)
        before[by_stream[follows + 1]] = by_stream[follows]
        before[self._is_queued] = NONE
        ended = np.where(before >= 0, end[before], NEVER)
        linked, followed = launched >= 0, before >= 0
        latency = _median((start - launched_at)[linked & followed & (launched_at >= ended)], _LAUNCH_NS)
        queued = linked & followed & (launched_at + latency <= ended)  # not where the launch was still under way
        after_launch = np.minimum(start - launched_at, latency)
        after_before = np.minimum(start - ended, _median((start - ended)[queued], _GAP_NS))
        explained = np.maximum(
            np.where(linked, launched_at + after_launch, NEVER), np.where(followed, ended + after_before, NEVER)
        )
        source = np.full(len(activities), NONE, np.int64)
        late = np.flatnonzero((linked | followed) & (start - explained > UNEXPLAINED_NS))
        last = self._by_end[np.searchsorted(end[self._by_end], start[late], side="right") - 1]
        waits = (end[last] <= start[late]) & (end[last] > explained[late])
        source[late[waits]] = last[waits]
        explained[late[waits]] = end[last[waits]]
        self._columns["before"].append(before)
        self._columns["launch"].append(launched)
        self._columns["source"].append(source)
        is_held = ~linked & ~followed  # nothing that was recorded released it
        self._lags = after_launch, after_before, np.where(is_held, start, start - explained)
        self.mark(LAUNCH, self._numbers[trace.track[calls]], trace.ts_ns[calls], row=calls)

    def syncs(self, syncs: Ints, launches: Ints) -> None:
        """The returns of calls that block until the GPU has caught up."""
        trace, start, end = self._trace, self._start, self._end
        called, returned = trace.ts_ns[syncs], trace.events_at(syncs).end_ns
        submitted = np.where(launches >= 0, trace.ts_ns[launches], NEVER)
        awaited = self._awaited(called, returned, submitted, 0)
        unexplained = awaited < 0
        unexplained[~unexplained] = end[awaited[~unexplained]] <= called[~unexplained]
        skewed = self._awaited(called[unexplained], returned[unexplained], submitted, _SKEW_NS)
        awaited[np.flatnonzero(unexplained)[skewed >= 0]] = skewed[skewed >= 0]
        # A call that waits for the whole device; but not where work that it did not wait for was recorded, too.
        reach = np.append(np.maximum.accumulate(np.concatenate(([NEVER], end))), NEVER)
        latest = reach[np.searchsorted(start, returned, side="left")]
        names = np.fromiter(("Device" in name or "Ctx" in name for name in trace.names), bool, len(trace.names))
        drains_device = (names[trace.name_codes[syncs]] | trace.events_at(syncs).roles.frees) & (awaited >= 0)
        drains_device[drains_device] = latest[drains_device] == end[awaited[drains_device]]
        for kind, mask in ((RETURN, ~drains_device), (DRAINED, drains_device)):
            self.mark(
                kind,
                self._numbers[trace.track[syncs[mask]]],
                returned[mask],
                row=syncs[mask],
                since=called[mask],
                before=awaited[mask],
            )

    def _awaited(self, called: Ints, returned: Ints, submitted: Ints, skew: int) -> Ints:
        """The last activity to end before each return, of those submitted before the call and begun before the return;
        −1 if it is none of the last few."""
        ends = self._end[self._by_end]
        position = np.searchsorted(ends, returned + skew, side="right") - 1
        for _ in range(_TRIED):
            candidate = self._by_end[np.maximum(position, 0)] if len(ends) else position
            fits = position < 0
            if len(ends):
                fits |= (submitted[candidate] <= called) & (self._start[candidate] < returned)
            position = np.where(fits, position, position - 1)
        is_found = position >= 0
        is_found[is_found] &= fits[is_found]
        return np.where(is_found, self._by_end[np.maximum(position, 0)] if len(ends) else NONE, NONE)

    def full_queues(self, calls: Ints, of_activity: Ints, high: int) -> None:
        """The returns of launch calls that a full queue may block."""
        trace = self._trace
        linked = np.flatnonzero(of_activity >= 0)
        _, first = np.unique(of_activity[linked], return_index=True)
        first = linked[first]  # the activity of each call that starts first
        returned = trace.events_at(calls).end_ns
        for stream in distinct(trace.track[self._activities[first]]).tolist():
            mine = np.flatnonzero(trace.track[self._activities[first]] == stream)
            starts = np.sort(self._start[first[mine]])
            outstanding = np.arange(1, len(mine) + 1) - np.searchsorted(starts, returned[mine], side="right")
            most_queued = int(outstanding.max(initial=0))
            depth = most_queued if most_queued >= _NEARLY_FULL else QUEUE_DEPTH
            waiting, earlier = mine[depth:], first[mine[: max(len(mine) - depth, 0)]]
            blocks = (self._start[earlier] < returned[waiting]) & (returned[waiting] <= high)
            waiting, earlier = waiting[blocks], earlier[blocks]
            thread = self._numbers[trace.track[calls[waiting]]]
            since = trace.ts_ns[calls[waiting]]
            self.mark(FULL, thread, returned[waiting], row=calls[waiting], since=since, before=earlier)

    def handovers(self, part: "Events") -> None:
        """Where the main thread hands over to helpers, and they to it."""
        trace = self._trace
        main, *helpers = trace.threads.driving
        host = part.process & part.lasting
        of_main = host & (part.track == main)
        edges = distinct(np.concatenate((part.ts_ns[of_main], part.end_ns[of_main])))
        calls = of_main & part.roles.runtime
        busy = Union.of(part.ts_ns[calls], part.end_ns[calls])
        works = host & (part.roles.kind != PYTHON) & ~part.roles.annotation
        forks, joins = [], []
        for thread, track in enumerate(helpers, start=1):
            mine = works & (part.track == track)
            starts, ends = part.ts_ns[mine], part.end_ns[mine]
            stretch = np.searchsorted(edges, starts, side="right")
            # After its last edge, too: of a recording that ends in backward, the main thread's call is not written.
            in_one_stretch = (stretch == np.searchsorted(edges, ends, side="left")) & (stretch > 0)
            handed = np.flatnonzero(in_one_stretch & ~busy.covers(starts))
            handed = handed[np.argsort(stretch[handed], kind="stable")]
            bounds = runs(stretch[handed])
            if len(handed):
                begin = np.minimum.reduceat(starts[handed], bounds[:-1])
                end = np.maximum.reduceat(ends[handed], bounds[:-1])
                numbers = stretch[handed][bounds[:-1]]
                forks.append(np.stack((np.full(len(begin), thread), begin), axis=1))
                joins.append(np.stack((numbers, end, np.full(len(begin), thread)), axis=1))
        if joins:
            latest = np.concatenate(joins)
            latest = latest[np.lexsort((latest[:, 1], latest[:, 0]))]
            latest = latest[runs(latest[:, 0])[1:] - 1]  # in each stretch, the main thread waits for the last of them
            self.mark(HANDOVER, np.zeros(len(latest), np.int64), latest[:, 1], source=latest[:, 2])
            begun = np.concatenate(forks)
            self.mark(HANDOVER, begun[:, 0], begun[:, 1], source=np.zeros(len(begun), np.int64))

    def ordered(self) -> Dependencies:
        """All nodes, in order of time."""
        columns = {name: np.concatenate(parts) for name, parts in self._columns.items()}
        order = np.lexsort((columns["kind"], columns["start"]))
        position = np.empty(len(order) + 1, np.int64)
        position[order], position[-1] = np.arange(len(order)), NONE
        handover = columns["kind"] == HANDOVER
        threads = columns["source"][handover]
        for name in ("launch", "before", "source"):
            columns[name] = position[columns[name]]
        columns["source"][handover] = threads
        columns = {name: column[order] for name, column in columns.items()}
        # A blocked call that encloses another node of its thread goes on from there.
        host = np.flatnonzero(columns["thread"] >= 0)
        by_thread = host[np.argsort(columns["thread"][host], kind="stable")]
        pairs = np.flatnonzero(np.diff(columns["thread"][by_thread]) == 0)
        follows, precedes = by_thread[pairs + 1], by_thread[pairs]
        columns["since"][follows] = np.maximum(columns["since"][follows], columns["start"][precedes])
        lags = np.zeros((3, len(order)), np.int64)
        lags[:, position[: len(self._activities)]] = self._lags
        kind = columns.pop("kind").astype(np.int8)
        return Dependencies(kind=kind, after_launch=lags[0], after_before=lags[1], delay=lags[2], **columns)


def _median(lags: Ints, usual: int) -> int:
    lags = lags[lags >= 0]
    return min(int(np.median(lags)), _MOST_NS) if len(lags) else usual
