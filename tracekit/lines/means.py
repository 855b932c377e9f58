"""What each owner costs in a counted step: the rows of the table `lines`."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np
import pyarrow as pa

from tracekit.engine.buckets import KEYS
from tracekit.intervals import Bools
from tracekit.lines.owners import PHASES, Group
from tracekit.lines.ownership import Ownership
from tracekit.trace.schema import LABEL, column

LINES = pa.schema(
    [
        column("file", LABEL, "your file; null for groups and for what has no line of yours", role="place"),
        column("line", pa.int64(), "line in it; null where only the function is known, and for groups", role="place"),
        column("lines", pa.list_(pa.string()), "the lines as FILE:LINE: one, or those that were fused", role="place"),
        column("function", LABEL, "your function", role="place"),
        column("library", LABEL, "the library that works for the line", role="name"),
        column("module", LABEL, "the modules around it, outermost first", role="name"),
        column("phase", LABEL, "data, forward, backward, optimizer, eval or other", role="name"),
        column("view", LABEL, "wall or host", role="name"),
        column("bucket", LABEL, "where the time counts", role="name"),
        column("row", LABEL, "the lines it is set side by side with other variants as", role="name"),
        column("step_ns", pa.float64(), "mean per counted step; the rows add up to the bucket", "ns"),
        column("divided_ns", pa.float64(), "of this, estimated: several lines share a stretch without a mark", "ns"),
    ]
)


@dataclass(frozen=True)
class Mean:
    """What one owner costs in one bucket of a counted step."""

    view: str
    bucket: str
    owner: int
    step_ns: float
    divided_ns: float


def means(ownership: Ownership, counted: dict[str, Bools]) -> list[Mean]:
    """Over the counted steps of each view; a view in which no step counts has none."""
    rows = []
    for view, costs in ownership.costs.items():
        chosen = counted[view]
        if not chosen.any():
            continue
        inside = chosen[costs.step]
        keys, inverse = np.unique(costs.owner[inside] * len(KEYS) + costs.bucket[inside], return_inverse=True)
        ns, shared = (np.zeros(len(keys), np.int64) for _ in range(2))
        np.add.at(ns, inverse.reshape(-1), costs.ns[inside])
        np.add.at(shared, inverse.reshape(-1), costs.divided_ns[inside])
        steps = int(chosen.sum())
        for key, total, estimated in zip(keys.tolist(), ns.tolist(), shared.tolist(), strict=True):
            owner, bucket = divmod(key, len(KEYS))
            rows.append(Mean(view, KEYS[bucket], owner, total / steps, estimated / steps))
    return rows


def by_group(ownership: Ownership, rows: list[Mean], view: str) -> dict[Group, float]:
    """What each line and group costs in a view."""
    costs: dict[Group, float] = {}
    for mean in rows:
        if mean.view == view:
            group = ownership.owners.group_of(mean.owner)
            costs[group] = costs.get(group, 0.0) + mean.step_ns
    return costs


def table(ownership: Ownership, rows: list[Mean], row_of: Callable[[Group], Group]) -> pa.Table:
    """As exports write it, most expensive first."""
    owners, columns = ownership.owners, {field.name: [] for field in LINES}  # type: ignore[var-annotated]
    for mean in sorted(rows, key=lambda each: (each.view != "wall", -each.step_ns, each.owner)):
        group, library, module, phase = owners.rows[mean.owner]
        lines = owners.groups[group]
        single = lines[0] if len(lines) == 1 else None
        values = {
            "file": single.file if single else None,
            "line": single.line if single and not single.whole else None,
            "lines": [line.text for line in lines],
            "function": ", ".join(dict.fromkeys(line.function for line in lines)) or None,
            "library": owners.libraries[library] or None,
            "module": " · ".join(owners.modules[module]) or None,
            "phase": PHASES[phase],
            "view": mean.view,
            "bucket": mean.bucket,
            "row": ", ".join(line.text for line in row_of(lines)) or None,
            "step_ns": mean.step_ns,
            "divided_ns": mean.divided_ns,
        }
        for name, value in values.items():
            columns[name].append(value)
    arrays = [_array(columns[field.name], field.type) for field in LINES]
    return pa.Table.from_arrays(arrays, schema=LINES)


def _array(values: list[object], kind: pa.DataType) -> pa.Array:
    return pa.array(values, pa.string()).dictionary_encode() if kind == LABEL else pa.array(values, kind)


def short(lines: Group) -> str:
    """`model.py:12`, `model.py:12, 14`: the lines of a row as people read them."""
    files: dict[str, list[int]] = {}
    for line in sorted(lines):
        files.setdefault(line.file, []).append(line.line)
    names = _distinct([*files])
    return ", ".join(f"{names[file]}:{', '.join(map(str, numbers))}" for file, numbers in files.items())


def _distinct(files: list[str]) -> dict[str, str]:
    names = {file: PurePath(file).name for file in files}
    twice = {name for name in names.values() if [*names.values()].count(name) > 1}
    return {file: file if name in twice else name for file, name in names.items()}
