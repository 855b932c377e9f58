"""Counts what happens on the emulated device, by the user's line, while the counted steps run."""

import linecache
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
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
    """Collects rows as events happen."""

    def __init__(self) -> None:
        self.counting = False
        self.steps = 0
        self._silences = 0  # how many `silenced` contexts are open
        self.notes: dict[str, None] = {}  # questions of the script that the emulation cannot answer, in order
        self._counts: Counter[_Seen] = Counter()
        self._excused: dict[int, _Seen] = {}

    @property
    def silent(self) -> bool:
        """Whether nothing is recorded."""
        return self._silences > 0

    @contextmanager
    def silenced(self) -> Iterator[None]:
        """A context in which nothing is recorded, because what happens is not the user's doing."""
        self._silences += 1
        try:
            yield
        finally:
            self._silences -= 1

    def begin(self) -> None:
        """Start counting again, because what was counted so far was not in a counted step; crashes stay recorded."""
        self.steps = 0
        self._counts = Counter({seen: 0 for seen in self._counts if seen.kind == "mixed"})

    def see(self, kind: Kind, operator: str, why: str, at: Line | None = None) -> None:
        """Count an event at the line of the user's that is running."""
        if not self.silent:
            self._add(_Seen(kind, operator, at or running(), why))

    def see_mixed(self, operator: str, why: str, storages: list[int]) -> None:
        """Record two devices in one operator. Later ones are not reported: a run would have ended at the first."""
        if self.silent:
            return
        seen = _Seen("mixed", operator, running(), why)
        first = [self._excused.setdefault(storage, seen) for storage in storages]
        if seen in first:
            self._add(seen)

    def note(self, sentence: str) -> None:
        """Note a question that no emulation can answer."""
        if not self.silent:
            self.notes[sentence] = None

    def rows(self) -> list[Row]:
        """The rows, the most important first. Events outside the steps do not count, unless they would crash."""
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
