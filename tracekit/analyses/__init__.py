"""One question per file. An analysis reads a profile's columns and answers with a sentence and a table.

To add one, write a file here with a function under `@analysis(...)`: every face finds it. One that lives elsewhere
registers itself the same way when it is imported.
"""

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracekit.intervals import Ints
from tracekit.profile import Profile

# `absent`: the question does not arise in this variant; `unanswered`: what was recorded cannot tell.
Status = Literal["answered", "absent", "unanswered"]


@dataclass(frozen=True)
class Answer:
    """What an analysis found in one variant.

    `table` is what faces show; the metadata of its fields says unit (`ns`, `B`, `share`, or nothing), meaning and role.
    `rows`, where there is more to keep, has one row per event behind it: exports carry it. `worth` is the share of a
    step that the answer speaks of, None where nobody can say: it orders the report, and a table of what is worth little
    is shown when all is asked for.
    """

    analysis: str
    title: str
    sentence: str
    table: pa.Table
    rows: pa.Table | None = None
    worth: float | None = None
    status: Status = "answered"
    rank: int = 1000  # as registered: it orders answers of one worth


Ask = Callable[[Profile], Answer]


@dataclass(frozen=True)
class Analysis:
    """A registered question; `rank` orders those of one worth."""

    name: str
    rank: int
    ask: Ask


_registered: dict[str, Analysis] = {}


def analysis(name: str, rank: int = 1000) -> Callable[[Ask], Ask]:
    """Register the function as the analysis of that name."""

    def register(ask: Ask) -> Ask:
        _registered[name] = Analysis(name, rank, ask)
        return ask

    return register


def unregister(name: str) -> None:
    """Forget an analysis again."""
    _registered.pop(name, None)


def analyses() -> list[Analysis]:
    """All of them, in the order in which faces show them."""
    for module in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    return sorted(_registered.values(), key=lambda entry: (entry.rank, entry.name))


def answers(profile: Profile) -> list[Answer]:
    """Every analysis, asked of one variant."""
    return [_asked(entry, profile) for entry in analyses()]


def _asked(entry: Analysis, profile: Profile) -> Answer:
    answer = replace(entry.ask(profile), rank=entry.rank)
    if not profile.trace.cut_short:
        return answer
    return replace(answer, sentence=f"Of what is left of the file: {answer.sentence}")


def summaries(profile: Profile) -> list[Answer]:
    """The same without the rows behind them; from the cache, where it has them."""
    from tracekit.analyses.cached import recall, remember

    found = []
    for entry in analyses():
        answer = recall(profile, entry)
        if answer is None:
            answer = _asked(entry, profile)
            remember(profile, entry, answer)
        found.append(answer)
    return found


def share_of_step(profile: Profile, *buckets: str) -> float:
    """Which part of a counted step these buckets take: of its wall time, or of its host time where that is unknown."""
    mean = profile.means["wall"] or profile.means["host"]
    if mean is None or not mean.step_ns:
        return 0.0
    return sum(mean.parts.get(key, 0.0) for key in buckets) / mean.step_ns


def of_ledger(profile: Profile) -> Status:
    """The status of a question that only the ledger of a compiled variant can answer."""
    if profile.variant is None:
        return "unanswered"
    return "answered" if profile.variant.requested.compile else "absent"


def table(schema: pa.Schema, columns: dict[str, Any]) -> pa.Table:
    """A table of this schema from arrays or lists; the schema's comments and units stay with it."""
    return pa.Table.from_arrays([_as(columns[field.name], field.type) for field in schema], schema=schema)


def _as(values: Any, kind: pa.DataType) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return values.cast(kind) if isinstance(values, pa.Array) else pa.array(values, kind)


def per_step(
    profile: Profile, rows: pa.Table, step: Ints, *, by: list[str], sums: list[str], lists: tuple[str, ...] = ()
) -> pa.Table:
    """Rows grouped by `by`; the group that takes most in a counted step comes first. `step` is each row's place among
    the steps, −1 for none (two steps may bear one number).

    Columns: `by`; `count` and each of `sums` over the whole trace; `per_step` how many, and `<name>_per_step` how
    much, in a counted step (null where every value of the group is); `<name>_list` all values of each of `lists`.
    """
    steps = float(max(int(profile.counted.sum()), 1))
    inside = pa.array(np.append(profile.counted, False)[step])
    columns = {name: rows[name].cast(pa.string()) for name in by}
    columns |= {name: rows[name] for name in (*sums, *lists)}
    columns["inside"] = inside.cast(pa.int64())
    for name in sums:
        none = pc.if_else(pc.is_null(rows[name]), None, pa.scalar(0, pa.int64()))
        columns[f"{name}_inside"] = pc.if_else(inside, rows[name], none)
    wanted: list[Any] = [([], "count_all"), ("inside", "sum")]
    wanted += [(name, "sum") for name in sums] + [(f"{name}_inside", "sum") for name in sums]
    grouped = pa.table(columns).group_by(by, use_threads=False).aggregate(wanted + [(name, "list") for name in lists])
    found = {name: grouped[name] for name in by} | {"count": grouped["count_all"]}
    found["per_step"] = pc.divide(grouped["inside_sum"].cast(pa.float64()), steps)
    for name in sums:
        found[name] = grouped[f"{name}_sum"]
        found[f"{name}_per_step"] = pc.divide(grouped[f"{name}_inside_sum"].cast(pa.float64()), steps)
    found |= {f"{name}_list": grouped[f"{name}_list"] for name in lists}
    order = [f"{name}_per_step" for name in sums] + sums + ["count"]
    keys = [(name, "descending") for name in order] + [(name, "ascending") for name in by]
    return pa.table(found).sort_by(keys)
