"""The messages on the terminal while a sweep runs."""

import statistics
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tracekit.base.units import duration, many
from tracekit.study import Cell, Record, Study

_LISTED = 200  # cells that a dry run names


def label(cell: Cell) -> str:
    """`gat_pubmed model=gat seed=0: compiled`."""
    plain = {"recipe": cell.recipe, "interpreter": "", "workload": "training"}
    setting = [f"{name}={value}" for name, value in cell.setting.items() if plain.get(name) != value]
    return f"{' '.join([cell.recipe, *setting, f'seed={cell.seed}'])}: {cell.variant}"


def no_memory(cell: Cell, error: Exception) -> str:
    """A recording that does not show what holds its memory."""
    return f"  what holds the memory of {label(cell)} is unknown: {type(error).__name__}: {error}"


def dry_run(study: Study, cells: Sequence[Cell], due: Sequence[Cell]) -> Iterator[str]:
    """The cells, and how long they will take, if similar ones were timed."""
    finished = {result.cell.key: result for result in study.finished}
    keys = {cell.key for cell in due}
    for cell in cells[:_LISTED]:
        state = "to run" if cell.key in keys else finished[cell.key].outcome
        yield f"  {label(cell)}  ({state})"
    if len(cells) > _LISTED:
        yield f"  … and {len(cells) - _LISTED} more"
    seconds = _expected_seconds([result.record for result in study.finished if result.record is not None], due)
    estimate = f"; about {duration(seconds * 1e9)}, judging by those that are finished" if seconds is not None else ""
    yield f"{len(cells)} cells, {len(due)} of them to run{estimate}."


def _expected_seconds(records: Sequence[Record], due: Sequence[Cell]) -> float | None:
    """The sum over the cells of the mean time of their recipe and variant or, where these have not been together, of
    their recipe, as much longer as the variant takes elsewhere. A cell that failed says little, for it ended early."""
    counted = [record for record in records if record.outcome == "ok"] or records
    if not counted:
        return None
    took: dict[tuple[str, str], list[float]] = {}
    for record in counted:
        for kind in _kinds(record.cell):
            took.setdefault(kind, []).append(record.seconds)
    means = {kind: statistics.fmean(times) for kind, times in took.items()}
    overall_mean = means["", ""]

    def expected(cell: Cell) -> float:
        both, recipe, variant, _ = _kinds(cell)
        factor = means.get(variant, overall_mean) / overall_mean if overall_mean else 1.0
        return means[both] if both in means else means.get(recipe, overall_mean) * factor

    return sum(map(expected, due))


def _kinds(cell: Cell) -> tuple[tuple[str, str], ...]:
    """The groups of cells that it resembles, the narrowest first."""
    return (cell.recipe, cell.variant), (cell.recipe, ""), ("", cell.variant), ("", "")


class Progress:
    """Reports each cell as it begins and ends, with the remaining time. May be called from several threads."""

    def __init__(
        self, study: Study, cells: Sequence[Cell], due: Sequence[Cell], tell: Callable[[str], None], devices: int = 1
    ) -> None:
        self._left = {cell.key: cell for cell in due}
        self._records = [result.record for result in study.finished if result.record is not None]
        self._total, self._devices, self._tell = len(cells), devices, tell
        self._begun = len(cells) - len(due)
        self._lock = threading.Lock()

    def resume(self) -> None:
        """The sweep starts: what an earlier one has done, and what remains."""
        if self._begun:
            self._tell(f"{self._begun} of {many(self._total, 'cell')} done already{self._remaining()}.")

    def begin(self, cell: Cell) -> None:
        """A cell starts."""
        with self._lock:
            self._begun += 1
            number = self._begun
        self._tell(f"[{number}/{self._total}] {label(cell)} …")

    def end(self, record: Record) -> None:
        """A cell has ended."""
        with self._lock:
            self._left.pop(record.cell.key, None)
            self._records.append(record)
            remaining = self._remaining()
        how = record.outcome if record.outcome == "ok" else f"{record.outcome} ({record.error})"
        self._tell(f"  {how}, {duration(record.seconds * 1e9)}{remaining}")

    def _remaining(self) -> str:
        """`; 3 cells left, about 12.3 s`, judging by the cells that have run; nothing if none is left."""
        if not self._left:
            return ""
        seconds = _expected_seconds(self._records, [*self._left.values()])
        time_left = f", about {duration(seconds * 1e9 / self._devices)}" if seconds is not None else ""
        return f"; {many(len(self._left), 'cell')} left{time_left}"


def ending(study: Study, folder: Path) -> Iterator[str]:
    """How the cells ended, and what to do next."""
    counts = Counter(result.outcome for result in study.results)
    yield f"{len(study.results)} cells: {', '.join(f'{count} {outcome}' for outcome, count in counts.most_common())}."
    if any(outcome not in ("ok", "planned") for outcome in counts):
        yield "Failures are part of the study; --retry failed runs them again."
    yield f"See the results: tracekit report {folder}"
