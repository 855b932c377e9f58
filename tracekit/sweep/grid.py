"""From a sweep file to the list of its cells."""

from collections.abc import Iterator
from itertools import product

from tracekit.run import Workload
from tracekit.study.cell import Cell, text_of
from tracekit.sweep.sweep_file import Grid, Sweep

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
