"""Which cells a sweep runs: those selected, except those that are already finished."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from tracekit import installed
from tracekit import run as runs
from tracekit.errors import NoCellError, OtherOptionsError
from tracekit.study import Cell, Manifest, Study, is_study, read_study
from tracekit.study.cell import values_of
from tracekit.sweep.grid import cells
from tracekit.sweep.sweep_file import Sweep

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
