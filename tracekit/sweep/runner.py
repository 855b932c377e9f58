"""Runs a sweep, and says on the terminal how far it is: each cell is captured in a separate folder, which is moved into
the study when it is complete.

A lock, which the operating system releases however its holder ends, keeps a second sweep out of the folder. What
holds the memory of a cell is worked out once and stored beside its run.
"""

import os
import shutil
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from msgspec import Struct, field

from tracekit import run as runs
from tracekit.base import interruption
from tracekit.base.units import duration, many
from tracekit.capture import messages as capture_messages
from tracekit.capture.guardian import folder_lock
from tracekit.capture.harness import Options, capture
from tracekit.capture.preparation import check_options
from tracekit.catalogue import located
from tracekit.errors import TracekitError
from tracekit.errors.asking import OutputError
from tracekit.errors.capturing import NoInterpreterError, NothingCapturedError, RecipeFailedError, StudyInUseError
from tracekit.run import Outcome
from tracekit.run.settings import values_of
from tracekit.study import Cell, CellResult, Record, Study, read_study
from tracekit.study.store import CELLS, MANIFEST, MEMORY, RECORD, RUN, RUNNING, Thoroughness, text_of, write_json
from tracekit.sweep.sweep_file import Sweep, changed, is_due, planned, read_sweep, selected

_LEAST_FREE_BYTES = 64 << 20  # with less, a cell may fail for lack of space, not because of its setting
_LOCK = ".lock"
_LISTED = 200  # cells that a dry run names


class SweepOptions(Struct, frozen=True):
    """What to sweep, and the folder for the study."""

    file: Path
    out: Path
    only: Mapping[str, Sequence[str]] = field(default_factory=dict)
    retry: Sequence[str] = ()  # outcomes to try again, or "failed" for all but "ok"
    devices: Sequence[str] = ("auto",)
    dry_run: bool = False
    epochs: int | None = None  # replaces the number in the file
    seeds: int | None = None  # a number of seeds, from 0 on, which replace those in the file
    threads: int | None = None  # replaces the number in the file
    tell: Callable[[str], None] = capture_messages.on_stderr


def label(cell: Cell) -> str:
    """`gat_pubmed model=gat seed=0: compiled`."""
    plain = {"recipe": cell.recipe, "interpreter": "", "workload": "training"}
    setting = [f"{name}={value}" for name, value in cell.setting.items() if plain.get(name) != value]
    return f"{' '.join([cell.recipe, *setting, f'seed={cell.seed}'])}: {cell.variant}"


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


def sweep(options: SweepOptions) -> int:
    """Run every cell that is not finished; returns 1 if any failed. After Ctrl-C, the finished cells remain."""
    swept = changed(read_sweep(options.file), options.epochs, options.seeds, options.threads)
    cells = selected(swept, options.only)
    device = ",".join(options.devices)
    if options.dry_run:
        study = planned(options.out, options.file.name, swept, cells, device)
        for line in dry_run(study, cells, _due(study, cells, options)):
            options.tell(line)
        return 0
    for cell in cells:
        check_options(_options_of_cell(cell, swept, options, options.devices[0]))
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        with interruption.by_any_signal(), folder_lock(), locked(options.out):
            study = planned(options.out, options.file.name, swept, cells, device)
            shutil.rmtree(options.out / RUNNING, ignore_errors=True)  # left by a sweep that was killed
            (options.out / CELLS).mkdir(exist_ok=True)
            write_json(study.manifest, options.out / MANIFEST)
            due = _due(study, cells, options)
            progress = Progress(study, cells, due, options.tell, len(options.devices))
            progress.resume()
            _run_all(due, swept, options, progress)
            summarize_memory(read_study(options.out).finished, options.tell)  # of earlier sweeps
    except OSError as error:
        raise OutputError(options.out, error.strerror or str(error)) from None
    finished = read_study(options.out)
    for line in ending(finished, options.out):
        options.tell(line)
    keys = {cell.key for cell in cells}
    return int(any(result.outcome != "ok" for result in finished.results if result.cell.key in keys))


def _due(study: Study, cells: Sequence[Cell], options: SweepOptions) -> list[Cell]:
    outcomes = {result.cell.key: result.outcome for result in study.results}
    return [cell for cell in cells if is_due(outcomes.get(cell.key, "planned"), options.retry)]


def _run_all(due: list[Cell], swept: Sweep, options: SweepOptions, progress: Progress) -> None:
    """Run the cells one after another on each device, and in parallel on several devices."""
    if len(options.devices) == 1:
        for cell in due:
            _run(cell, swept, options, options.devices[0], progress)
        return
    remaining, free = iter(due), [*options.devices]
    with ThreadPoolExecutor(len(options.devices)) as pool, interruption.reaching_threads():
        running: dict[Future[None], str] = {}
        while True:
            while free and (cell_due := next(remaining, None)) is not None:
                device = free.pop()
                running[pool.submit(_run, cell_due, swept, options, device, progress)] = device
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                free.append(running.pop(future))
                future.result()


def _run(cell: Cell, swept: Sweep, options: SweepOptions, device: str, progress: Progress) -> None:
    """Capture the cell and move it into the study. A failure of the cell is its result; a full disk is not."""
    if shutil.disk_usage(options.out).free < _LEAST_FREE_BYTES:
        raise OutputError(options.out, f"less than {_LEAST_FREE_BYTES >> 20} MiB are free")
    folder = options.out / RUNNING / cell.folder
    folder.mkdir(parents=True)
    progress.begin(cell)
    started, began = runs.now(), time.monotonic()
    outcome, error = _capture(_options_of_cell(cell, swept, options, device, folder / RUN))
    seconds = round(time.monotonic() - began, 3)
    record = Record(cell=cell, outcome=outcome, error=error, started=started, seconds=seconds)
    write_json(record, folder / RECORD)
    target = options.out / CELLS / cell.folder
    shutil.rmtree(target, ignore_errors=True)  # an earlier attempt, which is being retried
    os.rename(folder, target)
    summarize_memory([CellResult(cell, target, record)], options.tell)
    progress.end(record)


def _capture(options: Options) -> tuple[Outcome, str | None]:
    try:
        variant = capture(options).variants[0]
    except OutputError:
        raise
    except NothingCapturedError as error:
        return cast("Outcome", error.outcome), error.why
    except RecipeFailedError as error:
        return cast("Outcome", error.outcome), str(error)
    except NoInterpreterError as error:
        return "skipped", str(error)
    except TracekitError as error:
        return "error", str(error)
    return variant.outcome, variant.error


def _options_of_cell(
    cell: Cell, swept: Sweep, options: SweepOptions, device: str, run_file: Path = Path(RUN)
) -> Options:
    base, settings = options.file.resolve().parent, values_of(swept.options, Thoroughness)
    if cell.script or cell.workload != "training":
        del settings["epochs"]
    if cell.script:
        settings["arguments"] = cell.script_arguments
    else:
        settings["params"] = {name: text_of(value) for name, value in cell.params.items()}
        del settings["step_at"], settings["step_every"]
    return Options(
        **settings,
        program=located(cell.program, base),
        variants=[cell.variant],
        device=device,
        seed=cell.seed,
        seeds=1,
        is_script=cell.script,
        workload=cell.workload,
        python=str(base / cell.python) if cell.python else "",
        out=run_file,
        tell=lambda _: None,
    )


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """A context that holds the lock of the folder. Raises StudyInUseError if another sweep holds it."""
    import fcntl

    handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise StudyInUseError(folder) from None
        yield
    finally:
        os.close(handle)


def summarize_memory(results: Iterable[CellResult], tell: Callable[[str], None]) -> None:
    """Write the summary of each cell that has a recording but no summary yet."""
    for result in results:
        if (result.folder / MEMORY).is_file():
            from tracekit.profile.memory_use import read_summary  # imported only here, where traces are read

            if read_summary(result.folder) is not None:
                continue
        run, variant = result.run, result.variant
        try:
            if run is None or variant is None or not run.trace_path(result.folder / RUN, variant, "detail"):
                continue
        except TracekitError:
            continue
        from tracekit.profile.memory_use import write_summary

        try:
            write_summary(result.folder / RUN)
        except Exception as error:  # whatever a recording holds, it must not end a sweep of many hours
            unknown = f"what holds the memory of {label(result.cell)} is unknown"
            tell(f"  {unknown}: {type(error).__name__}: {error}")
