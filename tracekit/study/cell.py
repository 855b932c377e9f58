"""One cell of a study: a recipe or a script at one setting, in one variant."""

import hashlib
import json
import re
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

import msgspec

from tracekit.run import Workload

_KEY_DIGITS = 10


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
