"""All of it together: the owners of a variant's steady trace, and what each costs.

Lines are those that the interpreter marked in the trace itself. The recording with stacks tells the rest – libraries,
modules, phases –, and the lines of a trace without marks.
"""

from collections.abc import Collection
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import NO_INTS, Ints, StepFunction
from tracekit.engine import Attribution
from tracekit.errors import TracekitError
from tracekit.lines.owners import Owners
from tracekit.trace import Trace
from tracekit.vocabulary import lines_file
from tracekit.vocabulary.lines_file import Graph, LinesFile

# Modules that work with a recording are imported only if there is one: a report of a bare trace starts without them.
if TYPE_CHECKING:
    from tracekit.lines.blame import Blame, Costs
    from tracekit.lines.carry import Carried
    from tracekit.lines.compiled import Compiled
    from tracekit.lines.main_thread import Recording
    from tracekit.lines.marked import MarkedLines
    from tracekit.lines.spans import Spans
    from tracekit.lines.threads import Thread

MOST_EVENTS = 2_000_000  # of a bare trace in a report: owners need all of it in memory; `tracekit lines` has no limit
_NEVER = StepFunction(NO_INTS, NO_INTS, 0)
_NO_STACKS = (
    "the trace holds no Python stacks, and there are neither marks of lines nor a recording with stacks beside it"
)


class Ownership(Struct, frozen=True, dict=True):
    """Who owns the time of a trace. If there is no recording, `reason` says why, and no time has an owner."""

    attribution: Attribution
    detail: Path | None = None  # the recording with stacks of the same variant; None: the trace's own stacks
    mine: tuple[str, ...] = ()  # packages, folders and files that are the user's, where no lines file shows it
    graphs: tuple[Graph, ...] = ()  # compiled graphs that no lines file has

    @staticmethod
    def of(
        attribution: Attribution, detail: Path | None, mine: Collection[str] = (), graphs: Collection[Graph] = ()
    ) -> "Ownership":
        """The ownership of a trace, from the variant's detailed recording or the trace's own stacks."""
        return Ownership(attribution, None if attribution.trace.has_stacks else detail, tuple(mine), tuple(graphs))

    @cached_property
    def _read(self) -> "Recording | str":
        """The recording with stacks, or why there is none; read on first use."""
        if self.attribution.trace.has_stacks:
            return _recording(self.attribution.trace, self.mine)
        if self.detail is None:
            return _NO_STACKS
        try:
            return _recording(Trace.load(self.detail).as_told(), self.mine)
        except TracekitError as error:
            return str(error)

    @property
    def recording(self) -> "Recording | None":
        """The recording with stacks."""
        return None if isinstance(self._read, str) else self._read

    @property
    def reason(self) -> str | None:
        """Why nothing is known."""
        return self._read if isinstance(self._read, str) and not self.marked else None

    @cached_property
    def source_lines(self) -> LinesFile | None:
        """What is known about lines: beside the trace itself, or else beside the recording."""
        return self._own_lines or (self.recording.lines if self.recording is not None else None)

    @cached_property
    def _own_lines(self) -> LinesFile | None:
        return lines_file.read(self.attribution.trace.path)

    @cached_property
    def marked(self) -> "dict[int, MarkedLines]":
        """The lines that were marked in the trace itself, by thread."""
        from tracekit.lines.marked import marked_lines

        trace = self.attribution.trace
        marked = marked_lines(trace, self._own_lines, self.owners)
        if (path := lines_file.marked_path(trace.path)).is_file() and not marked:
            with suppress(TracekitError):
                marked = self._carried_marks(Trace.load(path).as_told())
        return marked

    def _carried_marks(self, others: Trace) -> "dict[int, MarkedLines]":
        """The lines that were marked in other steps, read as if they had been marked in these."""
        from tracekit.lines.carry import carried
        from tracekit.lines.marked import MarkedLines, marked_lines

        main, trace = others.threads.main, self.attribution.trace
        marks = marked_lines(others, lines_file.read(others.path), self.owners).get(-1 if main is None else main)
        if marks is None or trace.threads.main is None:
            return {}
        read = carried(trace, others, marks.groups)
        return {trace.threads.main: MarkedLines(read.owners, read.divided)}

    @cached_property
    def owners(self) -> Owners:
        """Every owner that occurs; filled by asking for `threads`."""
        return Owners()

    @cached_property
    def carried(self) -> "Carried | None":
        """How the recording was carried over to the trace; None if they are the same, or there is none."""
        if self.recording is None or self.recording.trace is self.attribution.trace:
            return None
        from tracekit.lines.carry import carried

        return carried(self.attribution.trace, self.recording.trace, self._recorded_owners)

    @cached_property
    def _recorded_owners(self) -> StepFunction:
        """The owner of each moment of the recording's main thread."""
        from tracekit.lines.main_thread import main_thread_owners
        from tracekit.lines.threads import Thread

        assert self.recording is not None
        owners = main_thread_owners(self.recording, self.owners)
        regions = self.regions_without_lines
        of_no_line = self.owners.of_group(owners.at(regions.starts), 0)
        return Thread(owners, _NEVER).overlaid(regions, of_no_line).owners

    @cached_property
    def regions_without_lines(self) -> "Spans":
        """What a backend other than Inductor runs in a capture, by its recording: it keeps no lines.

        In recordings of others, and where graphs are known, the line that calls a graph stands for the rest.
        """
        from tracekit.lines.compiled import nameless_regions
        from tracekit.lines.spans import Spans

        if self.recording is None or self.recording.lines is None or self.recording.lines.graphs or self.graphs:
            return Spans.of(self.attribution.trace, NO_INTS)
        return nameless_regions(self.recording.trace)

    @property
    def by_calls(self) -> bool:
        """Whether lines are known of calls only: the interpreter marked none."""
        lines = self.source_lines
        return lines is not None and bool(lines.call_start_ns) and not lines.marks and not self.marked

    @property
    def unproven(self) -> list[str]:
        """Packages that may be the user's: nothing in the recording says."""
        return sorted(self.recording.frames.unproven) if self.recording is not None else []

    def rows_in_recording(self, rows: Ints) -> Ints:
        """For each of these events, the row of the event in the recording that it was matched with; −1 for none."""
        if self.recording is None:
            return np.full(len(rows), -1, np.int64)
        if self.carried is None:
            return rows
        matched = np.maximum(self.carried.detailed, self._of_other_threads)
        return np.where(rows >= 0, matched[rows], -1)

    @cached_property
    def _of_other_threads(self) -> Ints:
        from tracekit.lines.carry import of_other_threads

        assert self.recording is not None
        return of_other_threads(self.attribution.trace, self.recording.trace)

    @cached_property
    def main(self) -> "Thread":
        """The main thread, as the recording has it."""
        from tracekit.lines.threads import Thread

        main = Thread(_NEVER, _NEVER)
        if self.carried is not None:
            main = Thread(self.carried.owners, self.carried.divided)
        elif self.recording is not None:
            main = Thread(self._recorded_owners, _NEVER)
        marks = self.marked.get(self.attribution.trace.threads.main or 0)
        return main if marks is None else main.of_lines(marks, self.owners)

    @cached_property
    def threads(self) -> "dict[int, Thread]":
        """Every driving thread, compiled kernels included."""
        return self.compiled.threads

    @cached_property
    def compiled(self) -> "Compiled":
        """The owners of compiled kernels."""
        from tracekit.lines.compiled import compiled
        from tracekit.lines.graph_calls import graph_calls
        from tracekit.lines.threads import DetailedTrace, threads

        trace, lines = self.attribution.trace, self.recording.lines if self.recording is not None else None
        detailed = None
        if self.carried is not None and self.recording is not None:
            detailed = DetailedTrace(self.recording.trace, self._recorded_owners, self.carried.detailed)
        by_track = threads(trace, self.main, self.owners, detailed, self.marked)
        return compiled(trace, self.launch, by_track, graph_calls(lines, self.graphs), self.owners)

    @cached_property
    def launch(self) -> Ints:
        """For each event the call that submitted it; −1 for none."""
        trace = self.attribution.trace
        rows, launch = np.flatnonzero(trace.roles.gpu), np.full(len(trace.ts_ns), -1, np.int64)
        launch[rows] = trace.links.launch(rows)
        return launch

    @cached_property
    def blame(self) -> "dict[str, Blame | None]":
        """The owner of each moment, by view."""
        from tracekit.lines.blame import Linked, blame

        linked = Linked(self.launch, self.compiled.gpu)
        views = [view for view in ("wall", "host") if view not in self.attribution.cannot_answer]
        return {view: blame(self.attribution, view, self.threads, linked) for view in views}

    def of_events(self, rows: Ints) -> Ints:
        """The owner of each of some events, at its start or, for work of the GPU, at its launch.

        Events of threads that do not drive the training, events outside the steps, and −1 have no owner.
        """
        trace = self.attribution.trace
        if not len(rows) or self.reason is not None:
            return np.zeros(len(rows), np.int64)
        from tracekit.lines.threads import owners_at

        fused = np.where(rows >= 0, self.compiled.gpu[rows], -1)
        calls = np.where(trace.events_at(rows).roles.gpu, self.launch[rows], rows)
        is_asked = (calls >= 0) & (rows >= 0) & np.isin(trace.track[calls], trace.threads.driving)
        owner = np.zeros(len(rows), np.int64)
        owner[is_asked], _ = owners_at(self.threads, trace.track[calls[is_asked]], trace.ts_ns[calls[is_asked]])
        return np.where(fused >= 0, fused, owner)

    def at(self, track: Ints, moments: Ints) -> Ints:
        """The owner of a thread at each moment; none for a thread that does not drive the training."""
        if self.reason is not None or not self.threads:
            return np.zeros(len(track), np.int64)
        from tracekit.lines.threads import owners_at

        owner, _ = owners_at(self.threads, track, moments)
        return np.where(np.isin(track, self.attribution.trace.threads.driving), owner, 0)

    def of_buffers(self, track: Ints, moments: Ints) -> Ints:
        """The owner of memory that a thread allocates at each moment: of a compiled graph, the lines that it is for."""
        owners = self.at(track, moments)
        for thread, fills in self.compiled.fills.items() if self.reason is None and self.threads else ():
            mask = track == thread
            owners[mask] = fills.of_buffers(moments[mask], owners[mask])
        return owners

    @cached_property
    def costs(self) -> "dict[str, Costs]":
        """What each owner costs in each step, by view."""
        from tracekit.lines.blame import costs

        return {view: costs(self.attribution, view, blamed) for view, blamed in self.blame.items()}


def _recording(trace: Trace, mine: Collection[str]) -> "Recording":
    from tracekit.lines.frames import Frames
    from tracekit.lines.main_thread import Recording

    lines = lines_file.read(trace.path)
    return Recording(trace, lines, Frames(lines, mine, trace.names))
