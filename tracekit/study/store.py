"""The folder of a study: `study.json` with the cells that were planned – a recipe or a script at one setting, in one
variant – and a folder for each cell that is finished.

A cell runs in `running/` and is moved to `cells/` when it is finished, so that everything there is complete. Its
`cell.json` says how it ended; its `run.json` has the measurements, where there are any, and `memory.json` what its
recording says about memory (`tracekit.profile.memory_use`).
"""

import hashlib
import json
import os
import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path, PurePath
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Struct

from tracekit import run as runs
from tracekit.base.atomic import replacing
from tracekit.errors import TracekitError
from tracekit.errors.capturing import BadStudyError
from tracekit.run import Measured, Outcome, Run, Variant, Workload
from tracekit.run.settings import BACKEND, TIMEOUT_S, Count, Seconds, StepSettings

_KEY_DIGITS = 10
MANIFEST, CELLS, RUNNING = "study.json", "cells", "running"
RECORD, RUN, MEMORY = "cell.json", "run.json", "memory.json"  # of a cell
SCHEMA = "tracekit.study/1"
CELL_SCHEMA = "tracekit.cell/1"


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """What is run. Two cells are the same if all of these are equal, whatever else the sweep holds."""

    program: str  # the recipe or script, relative to the folder of the sweep file
    script: bool = False
    arguments: list[str] = []  # of a script
    params: dict[str, Any] = {}  # of a recipe; a script gets them as arguments: --NAME VALUE
    variant: str = "eager"
    seed: int = 0
    interpreter: str = ""  # its label in the sweep file; "" is the Python that runs the sweep
    python: str = ""  # its executable, relative to the folder of the sweep file
    workload: Workload = "training"
    labels: dict[str, str] = {}  # axes that the sweep file gives the cell: framework, a task …

    @property
    def recipe(self) -> str:
        """The program's name: `gat_pubmed`."""
        return PurePath(self.program).stem

    @property
    def key(self) -> str:
        """Ten hexadecimal digits that identify the cell."""
        content = json.dumps(msgspec.to_builtins(self), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:_KEY_DIGITS]

    @property
    def folder(self) -> str:
        """The name of its folder: readable, and unique by the key."""
        readable = re.sub(r"[^\w.-]+", "-", f"{self.recipe}-{self.variant}").strip("-.")
        return f"{readable[:80]}-{self.key}"

    @property
    def setting(self) -> dict[str, str]:
        """Everything but the variant and the seed, by axis: cells with the same setting are compared."""
        return {
            "recipe": self.recipe,
            "interpreter": self.interpreter,
            "workload": self.workload,
            **{name: text_of(value) for name, value in self.params.items()},
            **self.labels,
        }

    @property
    def axes(self) -> dict[str, str]:
        """Every axis by name, as `--only` and the sweep file's `exclude` select cells by it.

        The variant counts as a whole and by its parts: `mode`, and what comes after the colon.
        """
        base, _, suffix = self.variant.partition(":")
        settings = dict(piece.split("=", 1) for piece in suffix.split(",") if "=" in piece)
        mode = {"compiled": "default"}.get(base, base)
        return {
            "mode": mode,
            "dynamic": "auto",
            **settings,
            **self.setting,
            "variant": self.variant,
            "seed": str(self.seed),
        }

    def matches(self, selection: dict[str, list[str]]) -> bool:
        """Whether each of these axes has one of these values; an axis that the cell does not have never matches."""
        axes = self.axes
        return all(name in axes and axes[name] in values for name, values in selection.items())

    @property
    def script_arguments(self) -> list[str]:
        """The arguments of a script."""
        flags = [f"--{name}={text_of(value)}" for name, value in self.params.items()]
        return [*self.arguments, *flags]


def values_of(cells: Iterable[Cell]) -> dict[str, list[str]]:
    """Each axis with the values that occur, in order."""
    values: dict[str, dict[str, None]] = {}
    for cell in cells:
        for axis, value in cell.axes.items():
            values.setdefault(axis, {})[value] = None
    return {axis: [*occurring] for axis, occurring in values.items()}


def text_of(value: object) -> str:
    """A value as written for `--param` and `--only`: `true`, `8`, `gat`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


class Thoroughness(StepSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How thoroughly each cell is captured; what is not given is as in `tracekit capture`, but for the passes."""

    passes: Count = 8
    budget: Annotated[float, msgspec.Meta(ge=0)] | None = None
    timeout: Seconds = TIMEOUT_S
    backend: str = BACKEND


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of a study."""

    schema: str = SCHEMA
    created: str  # ISO 8601 with offset
    tracekit: str
    sweep: str  # name of the sweep file
    device: str  # as given: auto, cpu, cuda …
    options: Thoroughness = Thoroughness()
    cells: list[Cell] = []


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """How a cell ended."""

    schema: str = CELL_SCHEMA
    cell: Cell
    outcome: Outcome
    error: str | None = None  # one line
    started: str = ""  # ISO 8601 with offset
    seconds: float = 0  # from its start to its end


_Document = TypeVar("_Document", Manifest, Record)


class CellResult(Struct, frozen=True, dict=True):
    """A cell and its outcome; a cell that has not run yet has no record."""

    cell: Cell
    folder: Path
    record: Record | None = None

    @cached_property
    def run(self) -> Run | None:
        """Its run; None if nothing was measured, or the file cannot be read."""
        try:
            return runs.read(self.folder / RUN) if self.record is not None else None
        except TracekitError:
            return None

    @property
    def variant(self) -> Variant | None:
        """The only variant of its run."""
        return self.run.variants[0] if self.run is not None and self.run.variants else None

    @property
    def measured(self) -> Measured | None:
        """The measurement of its steps; None where there is none."""
        return self.variant.measured if self.variant is not None else None

    @property
    def outcome(self) -> str:
        """How the cell's capture ended; `planned` if it has not run yet."""
        return self.record.outcome if self.record is not None else "planned"


class Study(Struct, frozen=True, eq=False):
    """A study so far: `results` has the planned cells in order, followed by finished ones of earlier plans."""

    folder: Path
    manifest: Manifest
    results: list[CellResult]

    @property
    def cells(self) -> list[Cell]:
        """The cells of all results."""
        return [result.cell for result in self.results]

    @property
    def finished(self) -> list[CellResult]:
        """The cells that have run, whether they succeeded or failed."""
        return [result for result in self.results if result.record is not None]


def is_study(path: str | Path) -> bool:
    """Whether the path is a folder with a study in it."""
    return os.path.isfile(os.path.join(path, MANIFEST))


def read_study(folder: Path) -> Study:
    """Read a study without its runs, which are read on request. Raises BadStudyError."""
    manifest = _decode(folder / MANIFEST, Manifest, SCHEMA)
    records = {}
    for path in sorted((folder / CELLS).glob(f"*/{RECORD}")):
        record = _decode(path, Record, CELL_SCHEMA)
        records[record.cell.key] = CellResult(record.cell, path.parent, record)
    planned = [records.pop(cell.key, CellResult(cell, folder / CELLS / cell.folder)) for cell in manifest.cells]
    return Study(folder, manifest, [*planned, *records.values()])


def write_json(content: Manifest | Record, path: Path) -> None:
    """Write one of these files atomically, so that it survives a crash of the machine."""
    with replacing(path, durable=True) as part:
        part.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n")


def _decode(path: Path, kind: type[_Document], schema: str) -> _Document:
    try:
        content = msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadStudyError(path, str(error).splitlines()[0]) from None
    if content.schema != schema:
        raise BadStudyError(path, f"its schema is {content.schema}, this version reads {schema}")
    return content
