"""Who is to blame, and where in the user's code is that? The events behind a stretch of time, the events around them,
and the line: `where_of_event` for an event, `where_of_piece` for a piece without one, `where_of_buckets` for
buckets, which also says how much of them the line takes. All ask `tracekit.profile.where`; of fused lines a finding
names the first.
"""

import re
from collections.abc import Callable

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import NO_INTS, Bools, Ints, Rows, Union, distinct
from tracekit.findings.finding import Where
from tracekit.lines.owners import Group
from tracekit.profile import Profile
from tracekit.profile.where import lines_of_buckets, lines_of_event, lines_of_time
from tracekit.trace.roles import OPERATOR, PYTHON
from tracekit.trace.rows import INNER_FIRST, outermost
from tracekit.vocabulary.kernel_names import short_kernel

_OF_GRAPH = re.compile(r"graph_\d+_(?=cpp_fused_)")  # which graph of the process it is in tells a reader nothing
_BUILT_IN = re.compile(r"<(?:built-in (?:method|function)|method '?)\s*(\w+)")
_FRAME = re.compile(r".+\(\d+\): (\S+)", re.DOTALL)
_OPERATOR = re.compile(r"\w+(::\w+)*")
_NODE = "autograd::engine::evaluate_function: "
NOTHING = "nothing that was recorded"  # what time is blamed on where no event is to blame


class Culprit(Struct, frozen=True):
    """Events that have something in common, and the time that is blamed on them, per counted step."""

    key: int  # what they have in common
    name: str  # of the event on which most time is blamed
    step_ns: float
    rows: Ints  # the events, the costliest first
    piece_mask: Bools  # of the pieces


def by_name(profile: Profile, piece_mask: Bools) -> list[Culprit]:
    """Pieces by the name of the event that they are blamed on, the costliest first."""
    return grouped(profile, piece_mask, lambda event: profile.trace.name_codes[event].astype(np.int64))


def grouped(profile: Profile, piece_mask: Bools, key: Callable[[Ints], Ints]) -> list[Culprit]:
    """Pieces of counted steps by a key of the event that they are blamed on, the costliest first; without those that
    are blamed on none."""
    pieces, trace = profile.attribution.pieces, profile.trace
    piece_rows = np.flatnonzero(piece_mask & (pieces.event >= 0) & profile.counted[pieces.step])
    event, dur = pieces.event[piece_rows].astype(np.int64), pieces.dur[piece_rows]
    culprits = []
    values, inverse = np.unique(key(event), return_inverse=True)
    for group, value in enumerate(values.tolist()):
        of_group = inverse == group
        mask = np.zeros(len(piece_mask), bool)
        mask[piece_rows[of_group]] = True
        rows, row_of = np.unique(event[of_group], return_inverse=True)
        rows = rows[np.argsort(-np.bincount(row_of, dur[of_group]), kind="stable")]
        name = trace.name(rows[0])
        culprits.append(Culprit(value, name, float(dur[of_group].sum()) / profile.counted_steps, rows, mask))
    return sorted(culprits, key=lambda culprit: -culprit.step_ns)


def blamed_on(profile: Profile, name: re.Pattern[str]) -> Bools:
    """The pieces that are blamed on an event of such a name."""
    pieces, trace = profile.attribution.pieces, profile.trace
    fits = trace.labels.fits(name)
    if not fits.any():
        return np.zeros(len(pieces.event), bool)
    blamed: Bools = (pieces.event >= 0) & fits[trace.name_codes[np.maximum(pieces.event, 0)]]
    return blamed


def time_blamed_on(profile: Profile, rows: Ints | Rows) -> Union:
    """The time of the steps that is blamed on these events."""
    pieces = profile.attribution.pieces
    return pieces.union((pieces.event >= 0) & np.isin(pieces.event, rows))


def step_ns_of(profile: Profile, piece_mask: Bools) -> float:
    """How long some pieces are in a counted step."""
    pieces = profile.attribution.pieces
    return float(pieces.dur[piece_mask & profile.counted[pieces.step]].sum()) / profile.counted_steps


def open_events(profile: Profile, row: int) -> Ints:
    """The events of its thread that are open when an event starts, the outermost first and the event itself last."""
    trace = profile.trace
    end_index = int(np.searchsorted(trace.ts_ns, trace.ts_ns[row], side="right"))
    before = slice(0, end_index)
    open_ = (trace.track[before] == trace.track[row]) & (
        trace.ts_ns[before] + trace.dur_ns[before] >= trace.ts_ns[row] + trace.dur_ns[row]
    )
    rows = np.flatnonzero(open_)
    kind = trace.kinds[rows]
    order: Ints = rows[np.lexsort((INNER_FIRST[kind], -trace.dur_ns[rows], trace.ts_ns[rows]))]
    return order


def outermost_operators(profile: Profile, rows: Ints | Rows) -> Ints:
    """For each event the outermost operator of its thread that is open when it starts; −1 for none."""
    trace = profile.trace
    operators = trace.where(lambda part: (part.roles.kind == OPERATOR) & ~part.roles.annotation & part.lasting)
    of_tracks = outermost(trace, operators[np.isin(trace.track[operators], trace.track[rows])])
    outer = np.full(len(rows), -1, np.int64)
    for track in distinct(trace.track[rows]).tolist():
        top = of_tracks[trace.track[of_tracks] == track]
        on_this_track = np.flatnonzero(trace.track[rows] == track)
        moments = trace.ts_ns[rows[on_this_track]]
        index = np.searchsorted(trace.ts_ns[top], moments, side="right") - 1
        in_operator = (
            (index >= 0) & (moments < trace.events_at(top).end_ns[np.maximum(index, 0)]) if len(top) else index > 0
        )
        outer[on_this_track[in_operator]] = top[index[in_operator]]
    return outer


def operators_around(profile: Profile, row: int) -> list[str]:
    """The names of the operators around an event, the outermost first; its own is last, if it is one."""
    trace = profile.trace
    rows = open_events(profile, row)
    roles = trace.events_at(rows).roles
    return [trace.names[code] for code in trace.name_codes[rows[(roles.kind == OPERATOR) & ~roles.annotation]].tolist()]


def frames_around(profile: Profile, row: int) -> list[str]:
    """The Python frames around an event, the outermost first."""
    trace = profile.trace
    rows = open_events(profile, row) if trace.has_stacks else NO_INTS
    kind = trace.kinds[rows]
    return [trace.names[code] for code in trace.name_codes[rows[kind == PYTHON]].tolist()]


def plain(name: str) -> str:
    """A name as people know it: `zoom_shift` for `<built-in function zoom_shift>`, a node's name for its evaluation."""
    name = _OF_GRAPH.sub("", name.removeprefix(_NODE).removeprefix("torch::autograd::"))
    if function := _BUILT_IN.match(name) or _FRAME.fullmatch(name):
        return function[1]
    return name if _OPERATOR.fullmatch(name) else short_kernel(name)


def where_of_event(profile: Profile, row: int, operator: str | None = None) -> Where:
    """Where an event belongs: the line, if it is known, the module, and the innermost operator unless one is given."""
    operators = [operator] if operator is not None else operators_around(profile, row)
    lines, modules = lines_of_event(profile, row)
    return _of_first_line(lines, operators[-1] if operators else None, modules[-1] if modules else None)


def where_of_piece(profile: Profile, piece: int) -> Where:
    """The line that most of a piece belongs to; empty without a recording with stacks."""
    pieces = profile.attribution.pieces
    return _of_first_line(lines_of_time(profile, pieces.view, int(pieces.start[piece]), int(pieces.end[piece])))


def where_of_buckets(profile: Profile, *buckets: str) -> tuple[Where, float]:
    """The line that takes most of these buckets of the wall time, if one is known, and its share of them."""
    return next(iter(shares_of_buckets(profile, *buckets)), (Where(), 0.0))


def shares_of_buckets(profile: Profile, *buckets: str) -> list[tuple[Where, float]]:
    """Each line that takes part of these buckets of the wall time, if any is known, and its share; the most first."""
    return [(_of_first_line(lines), share) for lines, share in lines_of_buckets(profile, *buckets)]


def _of_first_line(lines: Group, operator: str | None = None, module: str | None = None) -> Where:
    if not lines:
        return Where(operator=operator, module=module)
    return Where(lines[0].file, lines[0].line, lines[0].function, operator, module=module)
