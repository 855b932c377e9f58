"""An attribution, from the cache if the same rules have attributed the same trace before."""

from typing import Any

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from tracekit.engine.attribution import Attribution, attribute
from tracekit.engine.buckets import HOST, WALL
from tracekit.trace import Breach, Trace
from tracekit.trace.model import Summary
from tracekit.trace.schema import values
from tracekit.trace.steps import StepTable
from tracekit.trace.storing.cache import recall_table, remember_table, result_name

_TIMES = ("issued", "returned", "until", "begin", "done")
_FLAGS = ("host_known", "wall_known", "compiles")


def known_attribution(trace: Trace, *, with_pieces: bool = False) -> Attribution:
    """The attribution of a trace; a report can use it without reading the events. `with_pieces` says that its pieces
    will be asked for, too, unless they were before."""
    if trace.entry is None:
        return attribute(trace, with_pieces=with_pieces)
    name = result_name("attribution", __name__)
    cached = recall_table(trace.entry, name)
    if cached is not None:
        return _restored(trace, *cached)
    attribution = attribute(trace, with_pieces=with_pieces)
    steps = attribution.trace.steps
    columns: dict[str, Any] = {"number": [str(number) for number in steps.number]}
    columns |= {time: getattr(steps, time) for time in _TIMES}
    columns |= {flag: getattr(attribution, flag) for flag in _FLAGS}
    columns["whole"] = np.ones(len(steps), bool) if steps.whole is None else steps.whole
    columns |= {f"host:{key}": attribution.host[:, index] for index, key in enumerate(HOST)}
    columns |= {f"wall:{key}": attribution.wall[:, index] for index, key in enumerate(WALL)}
    facts = {
        "annotated": steps.annotated,
        "inferred": steps.inferred,
        "own_end": steps.own_end,
        "device": trace.device,
        "has_stacks": trace.has_stacks,
        "health": [breach.stored() for breach in trace.health],
        "cannot_answer": attribution.cannot_answer,
    }
    by_step = pa.table({column_name: pa.array(column) for column_name, column in columns.items()})
    remember_table(trace.entry, name, by_step, facts)
    return attribution


def _restored(trace: Trace, table: pa.Table, facts: dict[str, Any]) -> Attribution:
    flags = {name: np.array(table[name].to_pylist(), bool) for name in _FLAGS}
    totals = {
        view: np.stack([values(table[f"{view}:{key}"]) for key in keys], axis=1)
        for view, keys in (("host", HOST), ("wall", WALL))
    }
    times = {name: values(table[name]) for name in _TIMES}
    numbers = [int(number) for number in table["number"].to_pylist()]
    summary = Summary(
        steps=StepTable(
            numbers,
            **times,
            annotated=facts["annotated"],
            inferred=facts["inferred"],
            whole=np.array(table["whole"].to_pylist(), bool),
            own_end=(facts["own_end"][0], facts["own_end"][1]),
        ),
        device=facts["device"],
        has_stacks=facts["has_stacks"],
        health=[*map(Breach.restored, facts["health"])],
    )
    return Attribution(
        trace=replace(trace, summary=summary),
        cannot_answer=facts["cannot_answer"],
        host=totals["host"],
        wall=totals["wall"],
        host_known=flags["host_known"],
        wall_known=flags["wall_known"],
        compiles=flags["compiles"],
    )
