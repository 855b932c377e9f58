"""Holes: stretches of a millisecond or more in which a single thing on the host keeps the GPU idle."""

import re
from collections.abc import Iterator
from functools import cached_property

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import Bools, Ints, Union
from tracekit.engine.attribution import Pieces
from tracekit.engine.buckets import SLOW_HOST
from tracekit.findings.culprits import plain, where_of_piece
from tracekit.profile import Profile
from tracekit.profile.start_up import FirstUses
from tracekit.trace.rereading import arguments
from tracekit.trace.roles import OPERATOR
from tracekit.trace.rows import Events, enclosing

LEAST_NS = 1_000_000
_SHORTER_NS = 100_000  # what is as short is no part of a hole's cause, whatever its name
_ODD = 20  # times the median of its name: an event that long is out of the ordinary
OFTEN = 0.5  # of the steps: what occurs so often is a normal part of a step
_FALLBACK = re.compile(r"fallback_function|TensorExpr.*", re.DOTALL)
_SIZES_LOOKED_AT = 200  # operators of the same name
_LOOKED_AT = 16  # starts of backward at which its line is looked up


def is_hole(pieces: Pieces) -> Bools:
    """The pieces of a slow host that last that long, each blamed on one event or on none."""
    return pieces.of(*SLOW_HOST) & (pieces.dur >= LEAST_NS)


class LongStretch(Struct, frozen=True):
    """One of them, and what is known about it."""

    piece: int  # its index among the pieces
    lasts_ns: int  # without the time that the host waits in a collective
    row: int  # the event that is blamed; −1 where nothing was recorded
    kind: int  # of `roles`: an operator, a runtime call, a Python function; −1 without an event
    name: str  # of that event; without one, the operators before and after
    near: tuple[int, ...]  # the operators before and after; of holes without an event
    # The median of the other events of that name at that line, of operators with inputs of the same sizes where these
    # were recorded; without an event, of the other times between two operators of these names. 0 where there is none.
    usual_ns: float
    dur_ns: int  # of the hole itself: what is recorded inside the event is not part of it
    first: bool  # it is a first use, or fills the allocator's cache right after one
    in_most_steps: bool  # a hole of that name occurs in most steps
    fused: bool  # TorchScript's fuser is at work
    in_python: bool  # the time counts as Python's
    line_known: bool  # a recording with stacks shows whose time it is
    unseen: bool  # what the GPU did meanwhile is unknown
    handover: bool  # backward passes from the calling thread to autograd's, or back
    other_threads_are_busy: bool  # other threads of the process work most of the time

    @property
    def is_outlier(self) -> bool:
        """Whether it takes far longer than the same elsewhere. Where neither an event nor a line is known, what goes on
        there may be something else each time."""
        return (self.row >= 0 or self.line_known) and self.dur_ns >= _ODD * self.usual_ns

    @property
    def outlier(self) -> bool:
        """Whether nothing but its length sets it apart: the same is shorter elsewhere, though not far shorter, and it
        is no part of most steps."""
        return (
            self.row < 0
            and self.line_known
            and not self.is_outlier
            and not self.in_most_steps
            and 0 < self.usual_ns < LEAST_NS
        )


class Holes:
    """The holes of the counted steps, except waits in collectives and in the time that other rules are about."""

    def __init__(self, profile: Profile, excluded: Union) -> None:
        self._profile, self._pieces = profile, profile.attribution.pieces
        is_candidate = is_hole(self._pieces) & profile.counted[self._pieces.step]
        indices = np.flatnonzero(is_candidate & ~excluded.covers(self._pieces.start))
        starts, ends = self._pieces.start[indices], self._pieces.end[indices]
        lasting = ends - starts - profile.waits_in_collectives.within(starts, ends)
        self._indices, self._lasting = indices[lasting >= LEAST_NS], lasting[lasting >= LEAST_NS]
        self._rows = self._pieces.event[self._indices].astype(np.int64)

    def __iter__(self) -> Iterator[LongStretch]:
        """In order of time."""
        if not len(self._indices):
            return
        trace, pieces = self._profile.trace, self._pieces
        names, frequent_names = self._names, self._frequent_names
        in_python = pieces.of("python")
        unseen = self._profile.unseen.covers(pieces.start[self._indices])
        kinds = trace.kinds[np.maximum(self._rows, 0)]
        for k, (piece, row) in enumerate(zip(self._indices.tolist(), self._rows.tolist(), strict=True)):
            usual = self._usual(k)
            yield LongStretch(
                piece=piece,
                lasts_ns=int(self._lasting[k]),
                row=row,
                kind=int(kinds[k]) if row >= 0 else -1,
                name=names[k],
                near=tuple(neighbour for neighbour in self._neighbours(k) if neighbour >= 0) if row < 0 else (),
                usual_ns=usual,
                dur_ns=int(pieces.end[piece] - pieces.start[piece]),
                first=bool(self._first[k]),
                in_most_steps=names[k] in frequent_names,
                fused=bool(self._fused[k]),
                in_python=bool(in_python[piece]),
                line_known=row < 0 and where_of_piece(self._profile, piece).file is not None,
                unseen=bool(unseen[k]),
                handover=row < 0 and self._is_handover(piece),
                other_threads_are_busy=0 < _ODD * usual <= pieces.end[piece] - pieces.start[piece]
                and self._is_crowded(piece, row),
            )

    def shorter(self, hole: LongStretch) -> Bools:
        """The pieces that are shorter than a hole only because the GPU has work for longer."""
        shorter: Bools = self._alike(hole.row, hole.piece) & ~is_hole(self._pieces)
        return shorter

    def _alike(self, row: int, piece: int) -> Bools:
        """The pieces of counted steps in which the host is as long at the same: an event of the same name and line, or
        what lies between the same operators. How much of it the GPU waits for differs."""
        trace, pieces = self._profile.trace, self._pieces
        alike: Bools = pieces.of(*SLOW_HOST) & (pieces.dur >= _SHORTER_NS) & ((pieces.event >= 0) == (row >= 0))
        indices = np.flatnonzero(alike & self._profile.counted[pieces.step])
        if row >= 0:
            events = pieces.event[indices].astype(np.int64)
            owners = self._profile.ownership.of_events(np.append(events, row))
            is_same = (trace.name_codes[events] == trace.name_codes[row]) & (owners[:-1] == owners[-1])
            is_same &= trace.dur_ns[events] >= LEAST_NS
        else:
            gaps = self._gaps[1]
            gap = np.searchsorted(self._operators.ts_ns, pieces.start[indices]) - 1
            is_same = self._pair_numbers(indices) == self._pair(piece)
            is_same &= np.append(gaps, 0)[gap] >= LEAST_NS
        alike = np.zeros(len(pieces.bucket), bool)
        alike[indices[is_same]] = True
        return alike

    def _pair_numbers(self, indices: Ints) -> Ints:
        """For each piece, a number for the names of the main thread's operators before and after it."""
        pieces, starts = self._pieces, self._operators.ts_ns
        before = self._names_around[np.searchsorted(starts, pieces.start[indices])]
        after = self._names_around[np.searchsorted(starts, pieces.end[indices]) + 1]
        return self._numbered(before, after)

    def _numbered(self, before: Ints, after: Ints) -> Ints:
        return before * (len(self._profile.trace.names) + 1) + after

    @cached_property
    def _names_around(self) -> Ints:
        """The names of these operators, counted from 1, with 0 before the first and after the last."""
        return np.concatenate(([0], self._operators.name_codes.astype(np.int64) + 1, [0]))

    def _pair(self, piece: int) -> int:
        """That number for a hole; at the start of the recording, that of the longest time before the same operator."""
        number, names = int(self._pair_numbers(np.array([piece]))[0]), len(self._profile.trace.names) + 1
        before, after = divmod(number, names)
        if before:
            return number
        numbers = self._nameless
        pairs = numbers[(numbers % names == after) & (numbers >= names)]
        return int(np.bincount(pairs).argmax()) if len(pairs) else number

    @cached_property
    def _nameless(self) -> Ints:
        """The numbers of the pieces of a slow host that are blamed on no event, if they are not too short."""
        pieces = self._pieces
        is_nameless = pieces.of(*SLOW_HOST) & (pieces.dur >= _SHORTER_NS) & (pieces.event < 0)
        return self._pair_numbers(np.flatnonzero(is_nameless & self._profile.counted[pieces.step]))

    @cached_property
    def _names(self) -> list[str]:
        """What each hole is blamed on: its event, or the operators before and after."""
        trace, names = self._profile.trace, []
        for row, piece in zip(self._rows.tolist(), self._indices.tolist(), strict=True):
            if row >= 0:
                names.append(trace.name(row))
                continue
            codes = divmod(self._pair(piece), len(trace.names) + 1)
            before, after = (
                plain(trace.names[code - 1]) if code else bound
                for code, bound in zip(codes, ("the start", "the end"), strict=True)
            )
            names.append(f"between {before} and {after}")
        return names

    @cached_property
    def _frequent_names(self) -> set[str]:
        """The names that recur in most steps, and in more than one; without an event, shorter ones count, too."""
        steps: dict[str, set[int]] = {}
        for name, step in zip(self._names, self._pieces.step[self._indices].tolist(), strict=True):
            steps.setdefault(name, set()).add(step)
        for name, k in {name: k for k, name in enumerate(self._names)}.items():
            alike = self._alike(int(self._rows[k]), int(self._indices[k]))
            steps[name] |= {*self._pieces.step[alike].tolist()}
        threshold = max(2, OFTEN * self._profile.counted_steps)
        return {name for name, numbers in steps.items() if len(numbers) >= threshold}

    @cached_property
    def _fused(self) -> Bools:
        trace = self._profile.trace
        fallback = trace.labels.fits(_FALLBACK)
        if not fallback.any():
            return np.zeros(len(self._rows), bool)
        itself: Bools = (self._rows >= 0) & fallback[trace.name_codes[np.maximum(self._rows, 0)]]
        fallbacks = enclosing(trace, self._rows, lambda part: (part.roles.kind == OPERATOR) & fallback[part.name_codes])
        fused: Bools = itself | (fallbacks >= 0)
        return fused

    @cached_property
    def _first(self) -> Bools:
        """Which are first uses; in the first step, allocations that follow a first call of the runtime are, too: the
        allocator's cache is still empty."""
        trace, pieces = self._profile.trace, self._pieces
        rows = np.maximum(self._rows, 0)
        first = (self._rows >= 0) & FirstUses(trace).of(rows)
        roles = trace.events_at(rows).roles
        started = np.maximum.accumulate(first & roles.runtime)
        filling: Bools = first | ((self._rows >= 0) & roles.alloc & started & (pieces.step[self._indices] == 0))
        return filling

    def _usual(self, k: int) -> float:
        """The median duration of the other events of a hole's name and `cat` at the same line, or of the other times
        between two operators with the names of those around it, ns; 0 for none."""
        trace, row = self._profile.trace, int(self._rows[k])
        if row < 0:
            pair, preceding = self._pair(int(self._indices[k])), self._neighbours(k)[0]
            pairs, order = self._pairs
            same = order[slice(*np.searchsorted(pairs, (pair, pair + 1)))]
            rows, gaps = self._gaps
            same_gaps = gaps[same[rows[same] != preceding]]
            return float(np.median(same_gaps)) if len(same_gaps) else 0.0
        rows, owners = self._of_kind[int(trace.name_codes[row]), int(trace.cat_codes[row])]
        siblings = rows[(rows != row) & (owners == owners[rows == row])]
        if not len(siblings):
            return 0.0
        usual = float(np.median(trace.dur_ns[siblings]))
        if trace.kinds[row] == OPERATOR and trace.dur_ns[row] >= _ODD * usual:
            near = siblings[np.argsort(np.abs(siblings - row))[:_SIZES_LOOKED_AT]]
            recorded = arguments(trace, np.append(near, row))
            if row in recorded and (inputs := recorded[row].inputs) is not None:
                recorded_siblings = [sibling for sibling in near.tolist() if sibling in recorded]
                alike = [trace.dur_ns[sibling] for sibling in recorded_siblings if recorded[sibling].inputs == inputs]
                return float(np.median(alike)) if alike else 0.0
        return usual

    @cached_property
    def _of_kind(self) -> dict[tuple[int, int], tuple[Ints, Ints]]:
        """The events with the name and `cat` of one that is blamed, by both, and their owners; gathered in one pass."""
        trace = self._profile.trace
        blamed = self._rows[self._rows >= 0]
        is_blamed_name = np.zeros(len(trace.names), bool)
        is_blamed_name[trace.name_codes[blamed]] = True
        rows = trace.where(lambda part: is_blamed_name[part.name_codes])
        names, cats = trace.name_codes[rows], trace.cat_codes[rows]
        owners = self._profile.ownership.of_events(rows)
        kinds = {*zip(trace.name_codes[blamed].tolist(), trace.cat_codes[blamed].tolist(), strict=True)}
        alike = {(name, cat): (names == name) & (cats == cat) for name, cat in kinds}
        return {kind: (rows[mask], owners[mask]) for kind, mask in alike.items()}

    @cached_property
    def _pairs(self) -> tuple[Ints, Ints]:
        """The numbers of the names on both sides of each time between two operators, in order, and which time it is."""
        names = self._names_around[1:-1]
        pairs = self._numbered(names[:-1], names[1:])
        order = np.argsort(pairs, kind="stable")
        return pairs[order], order

    @cached_property
    def _operators(self) -> Events:
        """The operators of the main thread that no other encloses."""
        return self._profile.trace.events_at(self._gaps[0])

    @cached_property
    def _gaps(self) -> tuple[Ints, Ints]:
        """The operators of the main thread that no other encloses, by start, and the time from the end of each to the
        start of the next, ns."""
        trace = self._profile.trace
        rows = trace.where(
            lambda part: (
                part.roles.host & ~part.roles.annotation & ~part.roles.runtime & (part.track == trace.threads.main)
            )
        )
        starts, ends = trace.ts_ns[rows], trace.ts_ns[rows] + trace.dur_ns[rows]
        outer = starts >= np.concatenate(([np.iinfo(np.int64).min], np.maximum.accumulate(ends)[:-1]))
        rows, starts, ends = rows[outer], starts[outer], ends[outer]
        return rows, starts[1:] - ends[:-1]

    def _is_handover(self, piece: int) -> bool:
        """Whether backward begins in autograd's thread where this ends; or has ended there where this begins, at the
        line that called it. Without lines, what follows backward may as well be Python's own work."""
        pieces, (starts, ends) = self._pieces, self._nodes
        if int(pieces.end[piece]) in starts:
            return True
        if int(pieces.start[piece]) not in ends:
            return False
        line = where_of_piece(self._profile, piece)
        return (line.file, line.line) in self._backward_lines

    @cached_property
    def _nodes(self) -> tuple[set[int], set[int]]:
        """When backward's nodes start and end in threads that help the main one, ns."""
        trace = self._profile.trace
        helpers = np.array(trace.threads.helpers, np.int64)
        rows = trace.where(lambda part: part.roles.backward_node & np.isin(part.track, helpers))
        events = trace.events_at(rows)
        return {*events.ts_ns.tolist()}, {*events.end_ns.tolist()}

    @cached_property
    def _backward_lines(self) -> set[tuple[str | None, int | None]]:
        """File and line of the calls of backward: those whose time ends as a node of it starts."""
        pieces, (starts, _) = self._pieces, self._nodes
        before = np.flatnonzero(pieces.of("python") & np.isin(pieces.end, np.array([*starts], np.int64)))
        lines = (where_of_piece(self._profile, piece) for piece in before[:_LOOKED_AT].tolist())
        return {(line.file, line.line) for line in lines if line.file is not None}

    def _is_crowded(self, piece: int, row: int) -> bool:
        """Whether threads of the process that have no part in it run operators or call the runtime most of the time."""
        trace, pieces, working = self._profile.trace, self._pieces, self._working
        track = trace.threads.main if row < 0 else trace.track[row]
        beside = working.track != track
        busy = Union.of(working.ts_ns[beside], working.end_ns[beside])
        start, end = pieces.start[piece : piece + 1], pieces.end[piece : piece + 1]
        return bool(busy.within(start, end)[0] >= (end - start)[0] / 2)

    @cached_property
    def _working(self) -> Events:
        """Operators and calls of threads other than the main one; a call that waits is no work."""
        trace = self._profile.trace

        def works(part: Events) -> Bools:
            roles = part.roles
            working: Bools = ((roles.kind == OPERATOR) & ~roles.annotation) | (roles.runtime & ~roles.sync_by_name)
            elsewhere: Bools = working & part.process & (part.track != trace.threads.main)
            return elsewhere

        return trace.events_at(trace.where(works))

    def _neighbours(self, k: int) -> tuple[int, int]:
        """The operators of the main thread before and after; −1 for none."""
        pieces, piece, operators, rows = self._pieces, self._indices[k], self._operators, self._gaps[0]
        before = int(np.searchsorted(operators.end_ns, pieces.start[piece], side="right"))
        after = int(np.searchsorted(operators.ts_ns, pieces.end[piece]))
        return int(rows[before - 1]) if before else -1, int(rows[after]) if after < len(rows) else -1
