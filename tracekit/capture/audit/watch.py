"""Counts what happens on the emulated device, by the user's line, while the counted steps run."""

import linecache
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tracekit.capture.audit.lines import Line, asked_by_us, running
from tracekit.capture.audit.rows import KINDS, Kind, Row


@dataclass(frozen=True)
class _Seen:
    kind: Kind
    operator: str
    at: Line
    why: str
    loading: bool = False


class Watch:
    """Collects rows as events happen."""

    def __init__(self) -> None:
        self.counting = False
        self.steps = 0
        self.loading = False  # whether a DataLoader makes a batch in this process
        self._silences = 0  # how many `silenced` contexts are open
        self.notes: dict[str, None] = {}  # questions of the script that the emulation cannot answer, in order
        self._counts: Counter[_Seen] = Counter()
        self._steps: defaultdict[_Seen, set[int]] = defaultdict(set)  # those in which it happened
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
        self._steps.clear()

    def see(self, kind: Kind, operator: str, why: str, at: Line | None = None) -> None:
        """Count an event at the line of the user's that is running."""
        if not self.silent and not asked_by_us():
            self._add(_Seen(kind, operator, at or running(), why, self.loading))

    def see_mixed(self, operator: str, why: str, storages: list[int]) -> None:
        """Record two devices in one operator. Later ones are not reported: a run would have ended at the first."""
        if self.silent:
            return
        seen = _Seen("mixed", operator, running(), why)
        first = [self._excused.setdefault(storage, seen) for storage in storages]
        if seen in first:
            self._add(seen)

    def note(self, sentence: str) -> None:
        """Note a question of the script's that no emulation can answer."""
        if not self.silent and not asked_by_us():
            self.notes[sentence] = None

    def rows(self) -> list[Row]:
        """The rows, the most important first. Events outside the steps do not count, unless they would crash."""
        rows = [self._row(seen, count) for seen, count in self._counts.items()]
        return sorted(rows, key=lambda row: (KINDS.index(row.kind), -row.per_step, row.file, row.line, row.operator))

    def _add(self, seen: _Seen) -> None:
        if self.counting:
            self._counts[seen] += 1
            self._steps[seen].add(self.steps)
        elif seen.kind == "mixed":
            self._counts[seen] += 0

    def _row(self, seen: _Seen, count: int) -> Row:
        at = seen.at
        return Row(
            kind=seen.kind,
            operator=seen.operator,
            file=at.file,
            line=at.line,
            function=at.function,
            per_step=round(count / max(1, self.steps), 3),
            count=count,
            in_steps=len(self._steps[seen]),
            loading=seen.loading,
            source=linecache.getline(at.file, at.line).strip(),
            via=at.via,
            why=seen.why,
        )
