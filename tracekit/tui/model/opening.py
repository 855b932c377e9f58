"""Reading what was named, with word of how far it is."""

import time
from dataclasses import dataclass, field
from pathlib import Path

from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.sanitize import sanitize
from tracekit.trace.reading.convert import Seen
from tracekit.tui.model.opened import Opened
from tracekit.units import count, size


@dataclass
class Reading:
    """How far reading is; written by the thread that reads, looked at by the one that draws."""

    began: float = field(default_factory=time.monotonic)
    files: list[str] = field(default_factory=list)
    file_began: float = 0.0
    seen: Seen | None = None
    asking: bool = False

    def opening(self, path: Path) -> None:
        """The next file."""
        self.files.append(sanitize(path.name, 60))
        self.file_began, self.seen = time.monotonic(), None

    def watch(self, seen: Seen) -> None:
        """More of it was read."""
        self.seen = seen

    def lines(self) -> list[str]:
        """What is done, and how far what is being done is."""
        if self.asking:
            return [*(f"{name}: read" for name in self.files), "asking every question"]
        return [*(f"{name}: read" for name in self.files[:-1]), *(self._now(name) for name in self.files[-1:])]

    def _now(self, name: str) -> str:
        seen = self.seen
        if seen is None:
            return f"{name}: opening"
        share = seen.done / max(seen.size, 1)
        if share >= 1:
            return f"{name}: {count(seen.events)} events, attributing them"
        took = time.monotonic() - self.file_began
        left = f", {took / share * (1 - share):.0f} s left" if took > 1 and share > 0.02 else ""
        return f"{name}: {100 * share:.0f} % of {size(seen.size)}, {count(seen.events)} events{left}"


def open_report(paths: list[Path], baseline: str | None, infer_steps: bool, reading: Reading) -> Opened:
    """Read, attribute and ask everything; of several files those that can be read. Raises TracekitError."""
    subject = open_subject(
        paths, reading.watch, infer_steps=infer_steps, opening=reading.opening, lenient=len(paths) > 1
    ).traced(paths[0])
    reading.asking = True
    opened = Opened(report(subject, baseline))
    _ = opened.outline  # every question, so that what follows is quick
    return opened
