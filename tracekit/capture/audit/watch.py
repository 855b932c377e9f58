"""Counts what happens on the emulated device, by the user's line, while the counted steps run."""

import linecache
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tracekit.capture.audit.lines import Line, asked_by_us, running
from tracekit.capture.audit.rows import KINDS, Kind, Row


@dataclass(frozen=True)
class _Sighting:
    kind: Kind
    operator: str
    line: Line
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
        self._counts: Counter[_Sighting] = Counter()
        self._steps: defaultdict[_Sighting, set[int]] = defaultdict(set)  # those in which it happened
        self._excused: dict[int, _Sighting] = {}

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
        self._counts = Counter({sighting: 0 for sighting in self._counts if sighting.kind == "mixed"})
        self._steps.clear()

    def see(self, kind: Kind, operator: str, why: str, line: Line | None = None) -> None:
        """Count an event at the line of the user's that is running."""
        if not self.silent and not asked_by_us():
            self._add(_Sighting(kind, operator, line or running(), why, self.loading))

    def see_mixed(self, operator: str, why: str, storages: list[int]) -> None:
        """Record two devices in one operator. Later ones are not reported: a run would have ended at the first."""
        if self.silent:
            return
        sighting = _Sighting("mixed", operator, running(), why)
        first = [self._excused.setdefault(storage, sighting) for storage in storages]
        if sighting in first:
            self._add(sighting)

    def note(self, sentence: str) -> None:
        """Note a question of the script's that no emulation can answer."""
        if not self.silent and not asked_by_us():
            self.notes[sentence] = None

    def rows(self) -> list[Row]:
        """The rows, the most important first. Events outside the steps do not count, unless they would crash."""
        rows = [self._row(sighting, count) for sighting, count in self._counts.items()]
        return sorted(rows, key=lambda row: (KINDS.index(row.kind), -row.per_step, row.file, row.line, row.operator))

    def _add(self, sighting: _Sighting) -> None:
        if self.counting:
            self._counts[sighting] += 1
            self._steps[sighting].add(self.steps)
        elif sighting.kind == "mixed":
            self._counts[sighting] += 0

    def _row(self, sighting: _Sighting, count: int) -> Row:
        line = sighting.line
        return Row(
            kind=sighting.kind,
            operator=sighting.operator,
            file=line.file,
            line=line.line,
            function=line.function,
            per_step=round(count / max(1, self.steps), 3),
            count=count,
            in_steps=len(self._steps[sighting]),
            loading=sighting.loading,
            source=linecache.getline(line.file, line.line).strip(),
            via=line.via,
            why=sighting.why,
        )
