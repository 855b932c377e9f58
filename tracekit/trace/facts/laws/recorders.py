"""Does the file hold all that happened? It may be cut, damaged or unreadable in part, and its recorder may have lost
events, down to the first nodes of replayed graphs, kept only a sample, or slowed what it recorded."""

import re
from collections.abc import Iterator

import numpy as np

from tracekit.base.intervals import NO_INTS, NO_TIME, Bools, Ints, Union, distinct, place_among
from tracekit.base.units import count, duration, many, percent
from tracekit.trace.facts.coverage import nodes_of_replays, of_category
from tracekit.trace.facts.law import FIGURES, Broken, law
from tracekit.trace.model import Trace
from tracekit.trace.roles import OPERATOR, PYTHON, USER
from tracekit.trace.rows import BEFORE, Events
from tracekit.trace.schema import values

_MAX_UNREAD_SHARE = 0.01  # of the events: with more unread ones, figures lack something that matters
_MAX_LOST_SHARE = 0.02  # of what refers to an operator, or to a frame: with more, some were lost
_MIN_FOUND_SHARE = 0.5  # of what refers to operators: some writers number calls and operators independently
_MIN_REFERENCES = 20
_MIN_SAMPLED_SHARE = 0.1  # of the launches without work, and of the work without launches
_MAX_SHARE_OF_GAPS = 0.2  # of the numbers of operators: with more, they were thinned out
_MIN_LAUNCHES_OUTSIDE = 3  # of operators
_SERIALISING = re.compile(r"cuda_profiler_range")  # categories of events
_MIN_REPLAYS = 3  # of one graph
_MIN_HOLE_NS = 40_000  # beyond what submitting a graph takes
_MIN_SHARE_OF_GRAPH = 0.1  # of what its recorded nodes take: before a long graph runs, the driver has to submit it
_MIN_SHARE_OF_REPLAYS = 0.9  # of one graph: where it sometimes begins at once, something else delays it
_MIN_SHARE_OF_HOLES = 0.5  # of one graph's replays: where the GPU mostly works before it, the graph waits for that


@law("cut_short", "doubt", touches=("gpu work", "gpu idle", "host time", "steps"))
def cut_short(trace: Trace) -> Iterator[Broken]:
    """The file ends before its events do.

    Holds: A file of a trace ends with the end of its JSON.
    Breaks: The file ends in the middle of it, as where a disk was full or a process was killed.
    Then: A step after the first loss is not answered, and none at all unless the file shows that it was written in
        order of time.
    Do: Get the whole file, or record again.
    """
    if trace.cut_short:
        start = trace.lost_from_ns
        end = int(trace.end_ns.max(initial=0)) + 1
        span = Union.of(np.array([start]), np.array([end])) if start is not None else NO_TIME
        yield Broken(
            f"The file is truncated ({trace.cut_short}); the events before that point are used.",
            gpu=span if trace.device == "gpu" else NO_TIME,
            host=span,
        )


@law("damaged", "doubt", touches=("gpu work", "gpu idle", "host time", "steps"))
def damaged(trace: Trace) -> Iterator[Broken]:
    """The archive is damaged, although the list of events in it ends properly.

    Holds: An archive unpacks to its end, and its checksum is right.
    Breaks: Unpacking fails after the list of events has ended.
    Then: Events before that point are read; that none is missing cannot be known.
    Do: Get the file again.
    """
    if trace.damage and not trace.cut_short:
        yield Broken(f"{trace.damage[:1].upper()}{trace.damage[1:]}; the events before that point are used.")


@law("merged_file", "note")
def merged_file(trace: Trace) -> Iterator[Broken]:
    """The file holds other processes, too.

    Holds: A file holds one process.
    Breaks: Several processes have events in it; each is read by itself.
    Then: Events without a process, such as the profiler's own overhead, are left out.
    Do: Write a file for each process.
    """
    if trace.process is not None:
        yield Broken(
            f"One of several processes in the file ({trace.process}); events without a process, such as the profiler's "
            "own overhead, are left out."
        )


@law("lost_header", "note")
def lost_header(trace: Trace) -> Iterator[Broken]:
    """The keys before the events are unknown.

    Holds: What stands before the events can be read: the device, the clock, the version of the schema.
    Breaks: It is longer than tracekit reads.
    Then: Facts about the device may be missing.
    Do: Nothing, unless a figure needs the device.
    """
    if trace.header_lost:
        yield Broken("The header before the events is too long, and was not read.")


@law("lost_events", "doubt", touches=("gpu work", "gpu idle", "host time"))
def lost_events(trace: Trace) -> Iterator[Broken]:
    """Some events could not be read; a few do no harm, nor does the one at which a file was cut.

    Holds: Each event can be read.
    Breaks: More than 1 % of the events cannot; fewer are a note, and so is the one at which a file was cut.
    Then: They are in no figure.
    Do: Record again, and report the file if its JSON is valid.
    """
    if trace.lost:
        be = "is" if trace.lost == 1 else "are"
        are_few = trace.lost <= _MAX_UNREAD_SHARE * len(trace.ts_ns) or trace.cut_short is not None
        yield Broken(
            f"{many(trace.lost, 'event')} could not be read, and {be} excluded from all figures.",
            trace.lost,
            severity="note" if are_few else None,
        )


@law("mended_events", "note")
def mended_events(trace: Trace) -> Iterator[Broken]:
    """Some events were read although their JSON is broken.

    Holds: Events are valid JSON with values of the right type.
    Breaks: A quote in a name is not escaped, a value has the wrong type, or a duration is negative.
    Then: A negative duration counts as 0.
    Do: Nothing: figures rest on what was repaired.
    """
    if trace.mended:
        yield Broken(
            f"{many(trace.mended, 'event')} {'was' if trace.mended == 1 else 'were'} repaired: an unescaped quote in a "
            "name, a value of the wrong type, or a negative duration (which counts as 0).",
            trace.mended,
        )


@law("whole_microseconds", "note")
def whole_microseconds(trace: Trace) -> Iterator[Broken]:
    """Times have no decimals.

    Holds: Times have nanoseconds, as three decimals of a microsecond.
    Breaks: No time has decimals, and some events last 0 µs.
    Then: Anything shorter than a microsecond is 0: many short operators add up to less than they took.
    Do: Record with a newer PyTorch.
    """
    if any((part.ts_ns % 1000 != 0).any() for part in trace.parts()):
        return
    if any((part.roles.host & ~part.lasting).any() for part in trace.parts()):
        yield Broken("Times are whole microseconds: anything shorter appears as zero.")


@law("lost_nodes", "doubt", touches=("gpu work", "gpu idle"))
def lost_nodes(trace: Trace) -> Iterator[Broken]:
    """The GPU seems to idle before the first recorded node of each replay.

    Holds: A replayed CUDA graph begins at once if the GPU has nothing else to do.
    Breaks: At least three replays of a graph, and nine in ten of them, begin late (by at least 40 µs and a tenth of
        what the graph takes), with the GPU idle before at least half.
    Then: The time before the first node is unknown, and such steps are left out.
    Do: Start the profiler before the graphs are captured.
    """
    # Nothing but submission lies between a call and its graph. A profiler that starts after the graph was captured may
    # lack the same nodes each time.
    calls, starts, ends, delays = _holes(trace)
    missing = np.zeros(len(calls), bool)
    # From the start of the first recorded node of each replay to the end of the last.
    position = np.searchsorted(calls, trace.links.launches)
    of_replay = np.append(calls, -1)[position] == trace.links.launches
    recorded = trace.events_at(trace.links.activities[of_replay])
    first, last = np.full(len(calls), -BEFORE, np.int64), np.full(len(calls), BEFORE, np.int64)
    np.minimum.at(first, position[of_replay], recorded.ts_ns)
    np.maximum.at(last, position[of_replay], recorded.end_ns)
    step = trace.steps.of(trace.ts_ns[calls])
    of_graph: dict[frozenset[tuple[int, int]], list[int]] = {}
    for replay, nodes in enumerate(nodes_of_replays(trace, calls)):
        of_graph.setdefault(frozenset(nodes.items()), []).append(replay)
    for group in of_graph.values():
        min_hole_ns = np.maximum(_MIN_HOLE_NS, _MIN_SHARE_OF_GRAPH * (last - first)[group])
        # Other streams may work meanwhile: then the GPU does not idle, but the graph begins late nevertheless.
        long, late = ((ends - starts)[group] >= min_hole_ns), delays[group] >= min_hole_ns
        is_usual = long.mean() >= _MIN_SHARE_OF_HOLES and late.mean() >= _MIN_SHARE_OF_REPLAYS
        missing[group] = long & is_usual & (long.sum() >= _MIN_REPLAYS)
    if missing.any():
        usual = duration(float(np.median((ends - starts)[missing])))
        yield Broken(
            f"{count(int(missing.sum()))} replays of CUDA graphs seem to lack their first nodes: the GPU never begins "
            f"one at once, but after {usual}. Start the profiler before the graphs are captured.",
            int(missing.sum()),
            int(calls[missing][0]),
            gpu=Union.of(starts[missing], ends[missing]),
            steps=tuple(distinct(step[missing & (step >= 0)]).tolist()),
        )


def _holes(trace: Trace) -> tuple[Ints, Ints, Ints, Ints]:
    """The replays, from when to when the GPU does nothing before the first recorded node of each, ns, and how long
    after its call and all else of its stream that node begins."""
    nothing = NO_INTS
    if not trace.census.any(lambda roles: roles.graph_launch):
        return nothing, nothing, nothing, nothing
    rows = trace.where(lambda part: part.roles.gpu & part.lasting)
    launch = trace.links.launch(rows)
    of_replay = np.zeros(len(rows), bool)
    of_replay[launch >= 0] = trace.events_at(launch[launch >= 0]).roles.graph_launch
    calls, first = np.unique(launch[of_replay], return_index=True)
    events = trace.events_at(rows)
    reach = np.concatenate(([BEFORE], np.maximum.accumulate(events.end_ns)[:-1]))[of_replay]
    begin = events.ts_ns[of_replay][first]
    called = trace.events_at(calls).end_ns
    idle_from = np.maximum(reach[first], called)
    position, ready = np.flatnonzero(of_replay)[first], called.copy()
    for track in distinct(trace.track[rows[position]]).tolist():
        on_track = np.flatnonzero(trace.track[rows] == track)
        ended_ns = np.append(BEFORE, np.maximum.accumulate(events.end_ns[on_track]))
        mine = trace.track[rows[position]] == track
        ready[mine] = np.maximum(called[mine], ended_ns[np.searchsorted(on_track, position[mine])])
    return calls, np.minimum(idle_from, begin), begin, begin - ready


@law("stacks", "note")
def stacks(trace: Trace) -> Iterator[Broken]:
    """Python stacks slow the host.

    Holds: Recording hardly slows the host.
    Breaks: Python stacks were recorded.
    Then: Python looks slower than it is. A capture takes times from a recording without stacks, and lines from one with
        them.
    Do: Record without stacks for times.
    """
    if trace.has_stacks:
        yield Broken("Python stacks were recorded, which slows Python down: without them it takes less time.")


@law("serialised", "doubt", touches=("gpu work", "gpu idle", "steps"))
def serialised(trace: Trace) -> Iterator[Broken]:
    """Hardware counters were recorded, for which each kernel runs alone, and perhaps several times.

    Holds: Kernels of several streams may run at once, and each runs once.
    Breaks: Hardware counters were recorded (events of `cuda_profiler_range`).
    Then: Durations and gaps are not those of training.
    Do: Record without counters to time it.
    """
    ranges = of_category(trace, _SERIALISING)
    if len(ranges):
        yield Broken(
            "Hardware counters were recorded, for which every kernel runs alone: durations and gaps are not those of "
            "the training. Record without counters to time it.",
            len(ranges),
            int(ranges[0]),
        )


@law("lost_operators", "doubt", touches=("host time", "lines", "causes"))
def lost_operators(trace: Trace) -> Iterator[Broken]:
    """Operators are missing around launches, or calls and kernels name operators that are not in the trace.

    Holds: Operators are in the trace with what they launch.
    Breaks: More than 2 % of the launches (and at least 3) lie in no operator, although operators launch the same
        kernels elsewhere; or more than 2 % of what names an operator names one that is missing.
    Then: What the host did then may count as Python, so that findings about causes are withheld.
    Do: Record fewer steps at a time.
    """
    # Launches of kernels that operators launch elsewhere; others may be launched by code that has no operators.
    coverage = trace.coverage
    calls = coverage.calls[~coverage.is_lost]
    calls = calls[~trace.events_at(calls).roles.graph_launch]
    in_operator = trace.operators.of(calls) >= 0
    kernels = trace.name_codes[trace.links.submitted(calls)[0]]
    is_operators = np.zeros(len(trace.names), bool)
    is_operators[kernels[in_operator]] = True
    by_operators = is_operators[kernels]
    outside = calls[~in_operator & by_operators]
    if len(outside) >= _MIN_LAUNCHES_OUTSIDE and len(outside) > _MAX_LOST_SHARE * len(calls):
        yield Broken(
            f"{percent(len(outside) / len(calls))} of the launches lie in no operator, although operators launch the "
            "same kernels elsewhere: what the host did then may be told as Python.",
            len(outside),
            int(outside[0]),
        )
        return
    # What names operators that are not in the trace.
    ids_of_operators = (_external_ids(part, part.roles.kind == OPERATOR)[1] for part in trace.parts())
    operators = np.concatenate([NO_INTS, *ids_of_operators])
    operators.sort(kind="stable")  # in place: there are millions
    references = lost = 0
    first = -1
    for part in trace.parts():
        rows, ids = _external_ids(part, (part.roles.runtime & part.process) | part.roles.gpu)
        rows, ids = rows[ids > 0], ids[ids > 0]
        position = np.minimum(place_among(operators, ids), max(len(operators) - 1, 0))
        unknown = rows[operators[position] != ids] if len(operators) else rows
        first = int(unknown[0]) if first < 0 and len(unknown) else first
        references, lost = references + len(rows), lost + len(unknown)
    are_many = references >= _MIN_REFERENCES and lost > _MAX_LOST_SHARE * references
    if are_many and (references - lost) / references >= _MIN_FOUND_SHARE:
        yield Broken(
            f"{percent(lost / references)} of the calls and kernels belong to operators that are not in the trace: "
            "what the host did then may be told as Python.",
            lost,
            first,
        )


def _external_ids(part: Events, mask: Bools) -> tuple[Ints, Ints]:
    """The rows of some events of a part of the trace, and the operators that they name; 0 for none."""
    assert isinstance(part.selection, slice)
    rows, start = part.rows(mask), part.selection.start
    ids = values(part.trace.events["external_id"].slice(start, part.selection.stop - start))
    return rows, ids[rows - start]


@law("lost_frames", "doubt", touches=("lines",))
def lost_frames(trace: Trace) -> Iterator[Broken]:
    """Python frames name callers that are not in the trace.

    Holds: The caller of each Python frame is in the trace.
    Breaks: More than 2 % of the frames name a caller that is not.
    Then: Lines may be wrong.
    Do: Record fewer steps with stacks, or let `tracekit capture` find the lines.
    """
    if not trace.has_stacks:
        return
    frames = trace.where(lambda part: part.roles.kind == PYTHON)
    ids, callers = (values(trace.events[name], -1)[frames] for name in ("python_id", "python_parent_id"))
    refer = frames[callers >= 0]
    is_found = np.isin(callers[callers >= 0], ids)
    lost = len(refer) - int(is_found.sum())
    if len(refer) >= _MIN_REFERENCES and lost > _MAX_LOST_SHARE * len(refer):
        yield Broken(
            f"{percent(lost / len(refer))} of the Python frames were called by frames that are not in the trace: lines "
            "may be wrong.",
            lost,
            int(refer[~is_found][0]),
        )


@law("sampled", "refusal", touches=FIGURES)
def sampled(trace: Trace) -> Iterator[Broken]:
    """Launches without work and work without launches, or numbers of operators that are missing, in great number: the
    file holds a sample of the events.

    Holds: A trace holds every event of its time.
    Breaks: More than 10 % of the launches have no work and more than 10 % of the work has no launch; on a CPU, after
        more than 20 % of the operators' numbers the next one is missing.
    Do: Use the file before it was thinned out, or record again.
    """
    if trace.device == "cpu":
        # The profiler numbers operators and annotations one after the other, in blocks of some hundred for each thread:
        # few have a successor that is missing, unless the file was thinned out.
        if not trace.census.any(lambda roles: roles.operator):
            return
        numbered = trace.where(lambda part: np.isin(part.roles.kind, (OPERATOR, USER)) & part.process)
        numbers = values(trace.events["external_id"])[numbered]
        gaps = np.diff(distinct(numbers[numbers > 0])) > 1
        if len(gaps) >= _MIN_REFERENCES and gaps.mean() > _MAX_SHARE_OF_GAPS:
            yield Broken(
                "The file seems to hold only a sample of the events: operators are numbered one after the other, and "
                f"after {percent(float(gaps.mean()))} of them the next one is missing.",
                int(gaps.sum()),
            )
        return
    coverage = trace.coverage
    if not len(coverage.calls) or coverage.is_lost.mean() <= _MIN_SAMPLED_SHARE:
        return
    calls = trace.correlation[trace.where(lambda part: part.roles.runtime & part.process & (part.correlation > 0))]
    work = trace.correlation[trace.where(lambda part: part.roles.gpu & (part.correlation > 0))]
    if not len(calls) or not len(work) or trace.impossible.two_clocks:
        return
    alone = ~np.isin(work, calls) & (work > calls.min()) & (work < calls.max())
    if alone.mean() > _MIN_SAMPLED_SHARE:
        yield Broken(
            f"The file seems to hold only a sample of the events: {percent(coverage.is_lost.mean())} of the launches "
            f"have no work, and {percent(alone.mean())} of the work has no launch.",
            coverage.lost + int(alone.sum()),
        )


@law("duplicates", "doubt", touches=("gpu work",))
def duplicates(trace: Trace) -> Iterator[Broken]:
    """GPU activities that are in the trace twice.

    Holds: Each activity is in the trace once.
    Breaks: Two activities of the GPU have the same stream, name, launch, start and duration.
    Then: Counts of kernels are too high; busy time is right, since it is a union.
    Do: Do not merge files that overlap.
    """
    rows = trace.where(lambda part: part.roles.gpu & part.lasting)
    at_once = np.diff(trace.ts_ns[rows]) == 0  # they are in order of time
    rows = rows[np.append(at_once, False) | np.append(False, at_once)] if len(rows) else rows
    columns = (trace.correlation, trace.name_codes, trace.track, trace.dur_ns, trace.ts_ns)
    order = np.lexsort([column[rows] for column in columns])
    is_same = np.ones(max(len(rows) - 1, 0), bool)
    for column in columns:
        ordered = column[rows[order]]
        is_same &= ordered[1:] == ordered[:-1]
    if is_same.any():
        yield Broken(
            f"{many(int(is_same.sum()), 'GPU activity is', 'GPU activities are')} in the trace twice: counts of "
            "kernels are too high.",
            int(is_same.sum()),
            int(rows[order[1:][is_same][0]]),
        )


@law("several_recordings", "doubt", touches=("gpu work", "gpu idle", "host time", "steps"))
def several_recordings(trace: Trace) -> Iterator[Broken]:
    """Launches of one process share an id, or operators of one name, which a single recording never gives twice.

    Holds: Ids of launches are given once in a recording.
    Breaks: More than 2 % of the launches have the id of an earlier one of the process; without launches, operators of
        one name do.
    Do: Write each recording to a file of its own.
    """
    calls = trace.where(lambda part: part.roles.launch & part.process & (part.correlation > 0))
    rows, again, noun = calls, _again(calls, trace.correlation[calls]), ("launch has", "launches have")
    if not len(calls):
        rows = trace.where(lambda part: (part.roles.kind == OPERATOR) & part.process)
        noun = ("operator has", "operators have")
        numbers = values(trace.events["external_id"])[rows]
        rows, numbers = rows[numbers > 0], numbers[numbers > 0]
        again = _again(rows, numbers * len(trace.names) + trace.name_codes[rows])
        # An event that is in the file twice makes no other recording.
        again = again[~np.isin(trace.ts_ns[again], trace.ts_ns[np.setdiff1d(rows, again)])]
    if len(again) > _MAX_LOST_SHARE * len(rows):
        yield Broken(
            f"{many(len(again), *noun)} the id of another one: the file seems to hold several recordings, whose times "
            "cannot be told apart.",
            len(again),
            int(again[0]),
        )


def _again(rows: Ints, ids: Ints) -> Ints:
    """The rows whose id an earlier row has, too."""
    order = np.argsort(ids, kind="stable")
    again: Ints = rows[order[1:]][ids[order[1:]] == ids[order[:-1]]]
    return again
