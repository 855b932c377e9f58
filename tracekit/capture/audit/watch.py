"""Counts what the emulated device sees, by the user's line, while the steps to be counted run."""

import linecache
from collections import Counter
from dataclasses import dataclass

from tracekit.capture.audit.lines import Line, running
from tracekit.capture.audit.rows import KINDS, Kind, Row


@dataclass(frozen=True)
class _Seen:
    kind: Kind
    operator: str
    at: Line
    why: str


class Watch:
    """Rows as they happen."""

    def __init__(self) -> None:
        self.counting = False
        self.steps = 0
        self.silent = 0  # above 0: what happens is not the user's
        self.notes: dict[str, None] = {}  # what the script asked and the emulation cannot know, in order
        self._counts: Counter[_Seen] = Counter()
        self._excused: dict[int, _Seen] = {}

    def begin(self) -> None:
        """Count anew: what was counted so far was none of the steps. What would crash is not forgotten."""
        self.steps = 0
        self._counts = Counter({seen: 0 for seen in self._counts if seen.kind == "mixed"})

    def see(self, kind: Kind, operator: str, why: str, at: Line | None = None) -> None:
        """One more of these, at the user's line that runs now."""
        if not self.silent:
            self._add(_Seen(kind, operator, at or running(), why))

    def see_mixed(self, operator: str, why: str, storages: list[int]) -> None:
        """Two devices in one operator. What follows is not reported: a run would have ended at the first."""
        if self.silent:
            return
        seen = _Seen("mixed", operator, running(), why)
        first = [self._excused.setdefault(storage, seen) for storage in storages]
        if seen in first:
            self._add(seen)

    def note(self, sentence: str) -> None:
        """Something that no emulation can answer."""
        if not self.silent:
            self.notes[sentence] = None

    def rows(self) -> list[Row]:
        """The most telling first. What only happened outside of the steps does not count, unless it would crash."""
        rows = [_row(seen, count / max(1, self.steps)) for seen, count in self._counts.items()]
        return sorted(rows, key=lambda row: (KINDS.index(row.kind), -row.per_step, row.file, row.line, row.operator))

    def _add(self, seen: _Seen) -> None:
        if self.counting:
            self._counts[seen] += 1
        elif seen.kind == "mixed":
            self._counts[seen] += 0


def _row(seen: _Seen, per_step: float) -> Row:
    at = seen.at
    return Row(
        kind=seen.kind,
        operator=seen.operator,
        file=at.file,
        line=at.line,
        function=at.function,
        per_step=round(per_step, 3),
        source=linecache.getline(at.file, at.line).strip(),
        via=at.via,
        why=seen.why,
    )
