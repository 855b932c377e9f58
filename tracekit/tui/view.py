"""Everything the screens show, worked out before anything is drawn; no Textual here.

`open_view` does the slow work, once; another baseline asks only for the differences anew.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from tracekit.faces.shared.wording import note_text
from tracekit.profile import open_subject
from tracekit.report import Report, report
from tracekit.report.blocks import Note
from tracekit.report.headline import headline
from tracekit.report.notes import merged
from tracekit.report.sections.headline import basis
from tracekit.run_facts import described
from tracekit.sanitize import sanitize
from tracekit.trace.reading.convert import Watch
from tracekit.tui.answers_view import Asked, asked
from tracekit.tui.breakdown import Breakdown, breakdown
from tracekit.tui.pulse import Pulse, pulses

CLOCKS = ("wall", "host")


@dataclass(frozen=True)
class Fact:
    """One line of the run's conditions, or of what to know: a label, empty for none, and its text."""

    label: str
    text: str


@dataclass(frozen=True)
class Overview:
    """The first room: how long, against what, and what makes the difference."""

    baseline: str
    sentences: list[str]
    breakdowns: dict[str, Breakdown]  # by clock
    pulses: dict[str, list[Pulse]]  # by clock
    notes: list[Fact]
    facts: list[Fact]

    @property
    def clock(self) -> str:
        """The one to begin with: wall time, unless only host time can be answered."""
        return next((clock for clock in CLOCKS if self.breakdowns[clock].lines), CLOCKS[0])


@dataclass(frozen=True)
class View:
    """What was opened: the overview against one baseline, and every analysis, which no baseline changes."""

    found: Report
    overview: Overview
    asked: list[Asked]

    @property
    def variants(self) -> list[str]:
        """The names, as the report has them."""
        return [profile.name for profile in self.found.profiles]

    @property
    def about(self) -> str:
        """What ran, and on what, where a run says so."""
        run = self.found.subject.run
        return sanitize(f"{run.recipe} on {run.device}") if run is not None else ""

    def next_baseline(self) -> str:
        """The variant after the present baseline, round and round."""
        return self.variants[(self.variants.index(self.found.baseline.name) + 1) % len(self.variants)]

    def against(self, baseline: str) -> "View":
        """The same variants against another of them."""
        found = report(self.found.subject, baseline)
        return replace(self, found=found, overview=overview(found))


def open_view(paths: list[Path], baseline: str | None = None, watch: Watch | None = None) -> View:
    """Read, attribute and ask everything. Raises TracekitError."""
    return view(report(open_subject(paths, watch), baseline))


def view(found: Report) -> View:
    """The view of a report."""
    return View(found, overview(found), asked(found))


def overview(found: Report) -> Overview:
    """The overview of a report."""
    return Overview(
        baseline=sanitize(found.baseline.name),
        sentences=[sanitize(sentence) for sentence in headline(found)],
        breakdowns={clock: breakdown(found, clock) for clock in CLOCKS},
        pulses={clock: pulses(found, clock) for clock in CLOCKS},
        notes=[_note(note) for note in merged(found.notes, [profile.name for profile in found.profiles])],
        facts=_facts(found),
    )


def _note(note: Note) -> Fact:
    return Fact(sanitize(note.kind), sanitize(note_text(note)))


def _facts(found: Report) -> list[Fact]:
    said = [("", basis(found))]
    said += [entry for run in found.subject.runs.values() for entry in described(run)]
    said += [(profile.name, str(profile.trace.path)) for profile in found.profiles]
    return [Fact(sanitize(label), sanitize(text)) for label, text in said]
