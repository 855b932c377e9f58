"""The sweep file: which programs, parameters, variants, seeds and interpreters to combine. Written by hand in TOML.

[sweep]
recipes = ["../gat_pubmed.py"]          # or scripts, whose parameters become arguments: --NAME=VALUE
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
from pathlib import Path
from typing import Annotated, Any

import msgspec

from tracekit.errors import NoSuchFileError, SweepFileError, UnreadableFileError
from tracekit.run import Workload
from tracekit.study import Thoroughness

_Value = str | int | float | bool
_Values = Annotated[list[_Value], msgspec.Meta(min_length=1)]


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
        return [self._filled(grid) for grid in self.grid or [Grid()]]

    def _filled(self, grid: Grid) -> Grid:
        names = [field for field in Grid.__struct_fields__ if getattr(grid, field) is None]
        if grid.recipes is not None or grid.scripts is not None:  # they replace each other
            names = [name for name in names if name not in ("recipes", "scripts")]
        return msgspec.structs.replace(grid, **{name: getattr(self, name) for name in names})


class _File(msgspec.Struct, forbid_unknown_fields=True):
    sweep: Sweep


def read_sweep(path: Path) -> Sweep:
    """Read and check a sweep file. Raises NoSuchFileError, UnreadableFileError or SweepFileError."""
    try:
        with path.open("rb") as file:
            content: dict[str, Any] = tomllib.load(file)
    except FileNotFoundError:
        raise NoSuchFileError(path) from None
    except OSError as error:
        raise UnreadableFileError(path, error.strerror or "failed") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SweepFileError(path, f"it is not TOML ({error})") from None
    try:
        sweep = msgspec.convert(content, _File).sweep
    except msgspec.ValidationError as error:
        raise SweepFileError(path, _in_toml(str(error))) from None
    for grid in sweep.grids:
        _check_programs(path, grid)
    return sweep


def _check_programs(path: Path, grid: Grid) -> None:
    programs = [*(grid.recipes or []), *(grid.scripts or [])]
    if not programs:
        raise SweepFileError(path, "it runs nothing: name files in sweep.recipes or sweep.scripts")
    for program in programs:
        if not (path.parent / program).is_file():
            raise SweepFileError(path, f"there is no file {program} (relative to the folder of the sweep file)")


def _in_toml(error: str) -> str:
    """msgspec's sentence with keys as in TOML: `$.sweep.seeds[0]` becomes `sweep.seeds[0]`."""
    problem, _, key = error.partition(" - at `$.")
    problem = problem[0].lower() + problem[1:]
    return f"{problem}, at {key.removesuffix('`')}" if key else problem
