"""The norms of gradients on their way from the check pass to the run file: a file beside the traces of the variant."""

import math
from pathlib import Path

import msgspec
from msgspec.structs import replace

from tracekit.capture.job import Job
from tracekit.run import Variant, divergence


class Noted(msgspec.Struct, frozen=True):
    """What one check pass noted; a recipe trains twice in it, the second time with sums that round differently."""

    norms: list[float | None]
    rounded: list[float | None] = []


def note(job: Job, norms: list[float | None], rounded: list[float | None] | None = None) -> None:
    """Leave them in the folder of the job, of whose ranks the first one speaks."""
    if norms and job.rank == 0:
        path = Path(job.folder) / _name(job.rounded)
        path.write_bytes(msgspec.json.encode(Noted(norms, rounded or [])))


def with_gradients(variant: Variant, traces_folder: Path) -> Variant:
    """The variant with its norms, and how far rounding moves them; none where its losses cannot be compared either."""
    checked, again = _taken(traces_folder / _name(False)), _taken(traces_folder / _name(True))
    if checked is None or not variant.losses:
        return variant
    moved = divergence(checked.norms, checked.rounded or (again.norms if again is not None else []))
    drift = moved if moved is not None and math.isfinite(moved) else None
    return replace(variant, gradients=checked.norms, gradient_drift=drift)


def _name(rounded: bool) -> str:
    return f"gradients{'-rounded' if rounded else ''}.json"


def _taken(path: Path) -> Noted | None:
    if not path.exists():
        return None
    noted = msgspec.json.decode(path.read_bytes(), type=Noted)
    path.unlink()
    return noted
