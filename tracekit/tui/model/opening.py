"""Reading the inputs, and reporting progress."""

import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct, field

from tracekit.base.names import sanitize
from tracekit.base.units import count, size
from tracekit.findings.choice import ALL, Choice
from tracekit.profile import Subject, open_subject
from tracekit.report import report
from tracekit.trace.reading.convert import Seen
from tracekit.tui.model.opened import OpenReport
from tracekit.tui.model.panes import all_panes

_LONG_S = 1.0  # of reading, after which the app shows what it has so far


class Reading(Struct):
    """The progress of reading, which the reading thread writes and the drawing thread reads."""

    began: float = field(default_factory=time.monotonic)
    files: list[str] = field(default_factory=list)
    file_began: float = 0.0
    progress: Seen | None = None
    asking: bool = False

    def opening(self, path: Path) -> None:
        """Begin with the next file."""
        self.files.append(sanitize(path.name, 60))
        self.file_began, self.progress = time.monotonic(), None

    def watch(self, progress: Seen) -> None:
        """Note that more of the file has been read."""
        self.progress = progress

    def lines(self) -> list[str]:
        """What has been done, and the progress of what is being done."""
        if self.asking:
            return [*(f"{name}: read" for name in self.files), "answering every question"]
        return [*(f"{name}: read" for name in self.files[:-1]), *(self._now(name) for name in self.files[-1:])]

    @property
    def brief(self) -> str:
        """What is being read now, in a few words."""
        if self.asking or not self.files:
            return "answering every question" if self.asking else ""
        progress = self.progress
        share = f", {100 * progress.bytes_read / max(progress.size, 1):.0f} %" if progress is not None else ""
        return f"reading {sanitize(self.files[-1], 24)}{share}"

    def _now(self, name: str) -> str:
        progress = self.progress
        if progress is None:
            return f"{name}: opening"
        share = progress.bytes_read / max(progress.size, 1)
        if share >= 1:
            return f"{name}: {count(progress.events)} events, attributing them"
        took = time.monotonic() - self.file_began
        remaining = f", {took / share * (1 - share):.0f} s left" if took > 1 and share > 0.02 else ""
        return f"{name}: {100 * share:.0f} % of {size(progress.size)}, {count(progress.events)} events{remaining}"


def open_report(
    paths: list[Path],
    baseline: str | None,
    infer_steps: bool,
    reading: Reading,
    arrived: Callable[[OpenReport], None] = lambda opened: None,
    *,
    choice: Choice = ALL,
) -> OpenReport:
    """Read, attribute and analyse the inputs; if there are several files, those that can be read. Raises TracekitError.

    `arrived` gets what can be shown meanwhile: if reading takes long, the variants read so far, whenever the next one
    begins; in the end all of them, before the questions are answered that the first screen does not need.
    """
    so_far: list[Subject] = []
    shown_at_s = time.monotonic()

    def opening(path: Path) -> None:
        nonlocal shown_at_s
        reading.opening(path)
        if so_far and time.monotonic() - shown_at_s > _LONG_S:
            latest = so_far[-1]
            so_far.clear()
            arrived(_opened(latest, baseline, choice, strict=False))
            shown_at_s = time.monotonic()

    lenient = len(paths) > 1
    subject = open_subject(
        paths, reading.watch, infer_steps=infer_steps, opening=opening, arrived=so_far.append, lenient=lenient
    ).traced(paths[0])
    reading.asking = True
    opened = _opened(subject, baseline, choice)
    arrived(opened)
    import pyarrow.compute  # noqa: F401 - for sorting and filtering, now that the first screen has been drawn

    _ = opened.outline
    return opened


def _opened(subject: Subject, baseline: str | None, choice: Choice, strict: bool = True) -> OpenReport:
    """What has been read, with its panes prepared. Unless `strict`, the baseline need not have been read yet."""
    is_there = strict or baseline in [profile.name for profile in subject.profiles]
    opened = OpenReport(report(subject, baseline if is_there else None, choice))
    all_panes(opened)  # derives what panes need in this thread, and not in the one that handles keys
    return opened
