"""Everything the screens show, worked out before anything is drawn; no Textual here.

`open_view_model` does the slow work, once; another baseline asks only for the differences anew.
"""

from dataclasses import dataclass
from pathlib import Path

from tracekit.faces.shared.wording import note_text
from tracekit.profile import open_subject
from tracekit.report import Report
from tracekit.report import report as make
from tracekit.report.blocks import Notes, Sentences
from tracekit.report.outline import outline
from tracekit.report.sections.step_series import lines
from tracekit.sanitize import sanitize
from tracekit.trace.reading.convert import Watch
from tracekit.tui.breakdown import Breakdown, breakdown
from tracekit.tui.chapters import VIEWS, Chapter, chapters
from tracekit.tui.pulse import Pulse


@dataclass(frozen=True)
class Remark:
    """One line of what to know, or of what the figures rest on: a label, empty for none, and its text."""

    label: str
    text: str


@dataclass(frozen=True)
class Overview:
    """The first room: how long, against what, and what makes the difference."""

    baseline: str
    sentences: list[str]
    breakdowns: dict[str, Breakdown]  # by view
    pulses: dict[str, list[Pulse]]  # by view
    notes: list[Remark]
    remarks: list[Remark]

    @property
    def view(self) -> str:
        """The one to begin with: wall time, unless only host time can be answered."""
        return next((view for view in VIEWS if self.breakdowns[view].lines), VIEWS[0])


@dataclass(frozen=True)
class ViewModel:
    """What was opened: the overview, and the report's other chapters."""

    report: Report
    overview: Overview
    chapters: list[Chapter]

    @property
    def variants(self) -> list[str]:
        """The names, as the report has them."""
        return [profile.name for profile in self.report.profiles]

    @property
    def about(self) -> str:
        """What ran, and on what, where a run says so."""
        run = self.report.subject.run
        return sanitize(f"{run.recipe} on {run.device}") if run is not None else ""

    def chapter(self, name: str) -> Chapter | None:
        """The chapter of that name."""
        return next((chapter for chapter in self.chapters if chapter.name == name), None)

    def next_baseline(self) -> str:
        """The variant after the present baseline, round and round."""
        return self.variants[(self.variants.index(self.report.baseline.name) + 1) % len(self.variants)]

    def against(self, baseline: str) -> "ViewModel":
        """The same variants against another of them."""
        return view_model(self.report.against(baseline))


def open_view_model(
    paths: list[Path], baseline: str | None = None, watch: Watch | None = None, infer_steps: bool = False
) -> ViewModel:
    """Read, attribute and ask everything. Raises TracekitError."""
    return view_model(make(open_subject(paths, watch, infer_steps=infer_steps).traced(paths[0]), baseline))


def view_model(report: Report) -> ViewModel:
    """The view model of a report."""
    return ViewModel(report, overview(report), chapters(report))


def overview(report: Report) -> Overview:
    """The overview of a report: the blocks that it has a place for."""
    outlined = outline(report, fold=True)
    entries = [entry for chapter in outlined.chapters for entry in chapter.entries]
    sentences = [block for entry in entries for block in entry.blocks if isinstance(block, Sentences)]
    notes = [note for entry in entries for block in entry.blocks if isinstance(block, Notes) for note in block.notes]
    quiet = [line for block in sentences if block.tone == "quiet" for line in block.lines]
    return Overview(
        baseline=sanitize(report.baseline.name),
        sentences=[sanitize(line) for block in sentences if block.tone == "lead" for line in block.lines],
        breakdowns={view: breakdown(report, view) for view in VIEWS},
        pulses={view: [Pulse(line) for line in lines(report, view)] for view in VIEWS},
        notes=[Remark(sanitize(note.kind), sanitize(note_text(note))) for note in notes],
        remarks=[Remark("", sanitize(line)) for line in (*quiet, *outlined.closing)],
    )
