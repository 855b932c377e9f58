"""The sweep file: which programs, parameters, variants, seeds and interpreters to combine. Written by hand in TOML.

[sweep]
recipes = ["../gat_pubmed.py"]          # or "gat_pubmed"; or scripts, whose parameters become arguments: --NAME=VALUE
variants = ["eager", "compiled", "max-autotune"]
seeds = [0, 1]                          # default: 0
workloads = ["training", "inference"]   # default: training

[sweep.params]
model = ["gcn", "gat"]

[sweep.interpreters]                    # default: the Python that runs the sweep
dgl = "envs/dgl/bin/python"

[sweep.options]                         # as in tracekit capture
steps = 20

[[sweep.grid]]                          # optional: several grids, each of which may replace the lists above
recipes = ["../twins/dgl_gat_pubmed.py"]
labels = { framework = "dgl", recipe = "gat_pubmed" }   # axes of your own; these may replace the recipe's name

[[sweep.exclude]]                       # optional: cells to leave out, by their axes
model = "gat"
dataset = ["products", "reddit"]

Paths are relative to the folder of the file.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from pathlib import Path
from typing import Annotated, Any

import msgspec

from tracekit import installed
from tracekit import run as runs
from tracekit.catalogue import located, recipes, similar, sweeps
from tracekit.errors.capturing import NoCellError, NoSuchRecipeError, OtherOptionsError, SweepFileError
from tracekit.errors.reading import UnreadableFileError
from tracekit.run import Workload
from tracekit.study import Cell, Manifest, Study, Thoroughness, is_study, read_study
from tracekit.study.store import text_of, values_of

_Value = str | int | float | bool
_Values = Annotated[list[_Value], msgspec.Meta(min_length=1)]
FAILED = "failed"
MOST_CELLS = 100_000  # of a minute each, they take two months
_DEFAULT_VARIANTS = ["eager", "compiled"]


class Grid(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Lists to combine; None if the grid uses the list of `[sweep]`."""

    recipes: list[str] | None = None
    scripts: list[str] | None = None
    arguments: list[str] | None = None
    variants: Annotated[list[str], msgspec.Meta(min_length=1)] | None = None
    seeds: Annotated[list[int], msgspec.Meta(min_length=1)] | None = None
    workloads: Annotated[list[Workload], msgspec.Meta(min_length=1)] | None = None
    interpreters: dict[str, str] | None = None
    params: dict[str, _Values] | None = None
    labels: dict[str, str] | None = None


class Sweep(Grid, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table `[sweep]`. `exclude` lists what to leave out: for each axis, a value or a list of values."""

    options: Thoroughness = Thoroughness()
    grid: list[Grid] = []
    exclude: list[dict[str, _Value | _Values]] = []

    @property
    def grids(self) -> list[Grid]:
        """The grids with all defaults filled in."""
        filled = []
        for grid in self.grid or [Grid()]:
            names = [field for field in Grid.__struct_fields__ if getattr(grid, field) is None]
            if grid.recipes is not None or grid.scripts is not None:  # they replace each other
                names = [name for name in names if name not in ("recipes", "scripts")]
            filled.append(msgspec.structs.replace(grid, **{name: getattr(self, name) for name in names}))
        return filled


class _File(msgspec.Struct, forbid_unknown_fields=True):
    sweep: Sweep


def read_sweep(path: Path) -> Sweep:
    """Read and check a sweep file. Raises NoSuchRecipeError, UnreadableFileError or SweepFileError."""
    try:
        with path.open("rb") as file:
            content: dict[str, Any] = tomllib.load(file)
    except FileNotFoundError:
        raise NoSuchRecipeError(path, similar(path, sweeps()), "sweep file") from None
    except OSError as error:
        raise UnreadableFileError(path, error.strerror or "failed") from None
    except (ValueError, RecursionError) as error:  # ValueError also of numbers with thousands of digits
        raise SweepFileError(path, f"it is not TOML ({error})") from None
    try:
        sweep = msgspec.convert(content, _File).sweep
    except msgspec.ValidationError as error:
        # msgspec's sentence with keys as in TOML: `$.sweep.seeds[0]` becomes `sweep.seeds[0]`.
        problem, _, key = str(error).partition(" - at `$.")
        problem = problem[0].lower() + problem[1:]
        raise SweepFileError(path, f"{problem}, at {key.removesuffix('`')}" if key else problem) from None
    for grid in sweep.grids:
        programs = [*(grid.recipes or []), *(grid.scripts or [])]
        if not programs:
            raise SweepFileError(path, "it runs nothing: name files in sweep.recipes or sweep.scripts")
        for program in programs:
            if not located(program, path.parent).is_file():
                meant = similar(program, recipes())
                hint = f"; there is {meant}" if meant else ""
                raise SweepFileError(
                    path,
                    f"there is no file {program} (relative to the folder of the sweep file), and no recipe of that "
                    f"name{hint}",
                )
    if (count := sum(map(_size, sweep.grids))) > MOST_CELLS:
        raise SweepFileError(path, f"it asks for {count:,} cells, more than {MOST_CELLS:,}: leave out some values")
    return sweep


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
    before, after = (
        {**msgspec.structs.asdict(plan.options), "device": plan.device} for plan in (earlier.manifest, manifest)
    )
    different = [f"{name} {before[name]}, now {after[name]}" for name in after if before[name] != after[name]]
    if earlier.finished and different:
        raise OtherOptionsError(folder, "; ".join(different))
    by_key = {cell.key: cell for cell in [*earlier.manifest.cells, *selected_cells]}
    manifest = msgspec.structs.replace(manifest, created=earlier.manifest.created, cells=[*by_key.values()])
    return Study(folder, manifest, earlier.results)


def cells(sweep: Sweep) -> list[Cell]:
    """Every combination, except those that are excluded or occur twice.

    Variants and seeds vary fastest, so that what will be compared is measured close together in time.
    """
    excluded = [
        {axis: [*map(text_of, value)] if isinstance(value, list) else [text_of(value)] for axis, value in row.items()}
        for row in sweep.exclude
    ]
    by_key = {cell.key: cell for grid in sweep.grids for cell in _cells_of(grid)}
    return [cell for cell in by_key.values() if not any(cell.matches(row) for row in excluded)]


def _size(grid: Grid) -> int:
    """How many cells a grid has, including those that are excluded."""
    axes = (grid.interpreters, grid.workloads, grid.seeds, grid.variants or _DEFAULT_VARIANTS)
    programs = len(grid.recipes or []) + len(grid.scripts or [])
    return programs * prod(len(values) or 1 for values in (*axes, *(grid.params or {}).values()) if values is not None)


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
