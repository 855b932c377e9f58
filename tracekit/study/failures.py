"""Why did cells fail, how many for each reason, and what would change that?"""

import re
import shlex
from collections.abc import Callable

from msgspec import Struct

from tracekit.study.store import Cell, CellResult, Study, text_of, values_of

ENDINGS = {
    "oom": "ran out of memory",
    "timeout": "timed out",
    "crash": "crashed",
    "error": "failed",
    "skipped": "was left out",
    "interrupted": "was interrupted",
}
_AXES_OF_VARIANTS = ("mode", "dynamic", "fullgraph")  # which the variant has already
_NUMBER = re.compile(r"\d+(\.\d+)?")
_CHANGES: dict[str, Callable[[Study], str]] = {
    "oom": lambda _: (
        "Make smaller what sets their size, use a device with more memory, or leave them out with [[sweep.exclude]]"
    ),
    "timeout": lambda study: (
        f"Raise timeout in [sweep.options] (it is {study.manifest.options.timeout:g} s), or leave "
        "them out with [[sweep.exclude]]"
    ),
    "skipped": lambda _: "Install what is missing, or leave them out with [[sweep.exclude]]",
    "interrupted": lambda _: "Let them run to their end",
}


class Reason(Struct, frozen=True):
    """Cells that ended in the same way, with the same error except for numbers in it."""

    outcome: str
    error: str  # of the first of them
    results: tuple[CellResult, ...]
    where: str  # the values of axes that they share and others do not have: `variant=compiled hidden=64|128`; "" is all
    change: str  # an imperative


def reasons(study: Study) -> list[Reason]:
    """Every reason, the most frequent first."""
    alike: dict[tuple[str, str], list[CellResult]] = {}
    for result in study.finished:
        if result.record is not None and result.outcome != "ok":
            alike.setdefault((result.outcome, _NUMBER.sub("#", result.record.error or "")), []).append(result)
    all_values = values_of(study.cells)
    found_reasons = []
    for (outcome, _), results in alike.items():
        first, change = results[0], _CHANGES.get(outcome)
        values = values_of(result.cell for result in results)
        common_values = " ".join(
            f"{axis}={'|'.join(occurring)}"
            for axis, occurring in values.items()
            if axis not in _AXES_OF_VARIANTS and len(occurring) < len(all_values[axis])
        )
        found_reasons.append(
            Reason(
                outcome,
                (first.record.error if first.record is not None else None) or "no reason was recorded",
                tuple(results),
                common_values,
                change(study) if change is not None else f"Run one by itself to see why: {_command(first.cell)}",
            )
        )
    return sorted(found_reasons, key=lambda reason: -len(reason.results))


def _command(cell: Cell) -> str:
    """The capture of a cell, as one would type it in the folder of the sweep file."""
    words = ["tracekit", "capture", *(["--script"] if cell.script else []), cell.program, "--variants", cell.variant]
    if cell.seed:
        words += ["--seed", str(cell.seed)]
    if cell.workload != "training":
        words += ["--workload", cell.workload]
    if cell.python:
        words += ["--python", cell.python]
    if cell.script:
        words += ["--", *cell.script_arguments] if cell.script_arguments else []
    else:
        words += [word for name, value in cell.params.items() for word in ("--param", f"{name}={text_of(value)}")]
    return shlex.join(words)
