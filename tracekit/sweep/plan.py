"""Which cells a sweep runs: those of its grid that are selected, except those that are already finished."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

import msgspec

from tracekit import installed
from tracekit import run as runs
from tracekit.errors import NoCellError, OtherOptionsError
from tracekit.run import Workload
from tracekit.study import Cell, Manifest, Study, is_study, read_study
from tracekit.study.cell import text_of, values_of
from tracekit.sweep.sweep_file import Grid, Sweep

FAILED = "failed"


def changed(sweep: Sweep, epochs: int | None, seeds: int | None, threads: int | None = None) -> Sweep:
    """The sweep with its file's epochs, seeds or threads replaced."""
    replaced = {name: value for name, value in (("epochs", epochs), ("threads", threads)) if value is not None}
    sweep = msgspec.structs.replace(sweep, options=msgspec.structs.replace(sweep.options, **replaced))
    if seeds is not None:
        grids = [msgspec.structs.replace(grid, seeds=None) for grid in sweep.grid]
        sweep = msgspec.structs.replace(sweep, seeds=[*range(seeds)], grid=grids)
    return sweep


def selected(sweep: Sweep, selection: Mapping[str, Sequence[str]]) -> list[Cell]:
    """The cells whose axes have the requested values. Raises NoCellError if there is none."""
    all_cells = cells(sweep)
    matching = [cell for cell in all_cells if cell.matches({name: [*values] for name, values in selection.items()})]
    if not matching:
        raise NoCellError(selection, values_of(all_cells))
    return matching


def is_due(outcome: str, retry: Sequence[str]) -> bool:
    """Whether a cell is to be run: it has not run yet, or it ended in a way that is to be retried."""
    return outcome == "planned" or outcome in retry or (FAILED in retry and outcome != "ok")


def planned(folder: Path, name: str, sweep: Sweep, selected_cells: Sequence[Cell], device: str) -> Study:
    """The study with these cells added to its plan. Raises OtherOptionsError if they could not be compared."""
    manifest = Manifest(
        created=runs.now(),
        tracekit=installed.version() or "0",
        sweep=name,
        device=device,
        options=sweep.options,
        cells=[*selected_cells],
    )
    if not is_study(folder):
        return Study(folder, manifest, [])
    earlier = read_study(folder)
    if earlier.finished:
        _refuse_other_options(folder, earlier.manifest, manifest)
    by_key = {cell.key: cell for cell in [*earlier.manifest.cells, *selected_cells]}
    manifest = msgspec.structs.replace(manifest, created=earlier.manifest.created, cells=[*by_key.values()])
    return Study(folder, manifest, earlier.results)


def _refuse_other_options(folder: Path, earlier: Manifest, now: Manifest) -> None:
    before, after = (
        {**msgspec.structs.asdict(manifest.options), "device": manifest.device} for manifest in (earlier, now)
    )
    different = [f"{name} {before[name]}, now {after[name]}" for name in after if before[name] != after[name]]
    if different:
        raise OtherOptionsError(folder, "; ".join(different))


_DEFAULT_VARIANTS = ["eager", "compiled"]


def cells(sweep: Sweep) -> list[Cell]:
    """Every combination, except those that are excluded or occur twice.

    Variants and seeds vary fastest, so that what will be compared is measured close together in time.
    """
    excluded = [{axis: _texts(value) for axis, value in row.items()} for row in sweep.exclude]
    by_key = {cell.key: cell for grid in sweep.grids for cell in _cells_of(grid)}
    return [cell for cell in by_key.values() if not any(cell.matches(row) for row in excluded)]


def _texts(value: object) -> list[str]:
    return [text_of(member) for member in (value if isinstance(value, list) else [value])]


def _cells_of(grid: Grid) -> Iterator[Cell]:
    programs = [(path, False) for path in grid.recipes or []] + [(path, True) for path in grid.scripts or []]
    interpreters = [*(grid.interpreters or {"": ""}).items()]
    params = grid.params or {}
    workloads: list[Workload] = grid.workloads or ["training"]
    settings = product(programs, interpreters, workloads, product(*params.values()))
    for (program, script), (label, python), workload, values in settings:
        for seed, variant in product(grid.seeds or [0], grid.variants or _DEFAULT_VARIANTS):
            yield Cell(
                program=program,
                script=script,
                arguments=list(grid.arguments or []) if script else [],
                params=dict(zip(params, values, strict=True)),
                variant=variant,
                seed=seed,
                interpreter=label,
                python=python,
                workload=workload,
                labels=dict(grid.labels or {}),
            )
