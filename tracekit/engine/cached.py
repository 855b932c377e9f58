"""An attribution, from the cache where the same rules made it of the same trace before."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from tracekit.engine.attribution import Attribution, attribute
from tracekit.engine.buckets import HOST, WALL
from tracekit.trace import Health, Trace
from tracekit.trace.columns import values
from tracekit.trace.model import Summary
from tracekit.trace.steps import StepTable
from tracekit.trace.storing.results import result_name

_TIMES = ("issued", "returned", "until", "begin", "done")
_FLAGS = ("host_known", "wall_known", "steady")


def attributed(trace: Trace) -> Attribution:
    """The attribution of a trace; a report can use it without reading the events."""
    if trace.entry is None:
        return attribute(trace)
    name = result_name("attribution", __name__)
    content = trace.entry.recall(name)
    cost = _restored(trace, content) if content is not None else None
    if cost is None:
        cost = attribute(trace)
        trace.entry.remember(name, _written(cost))
    return cost


def _written(cost: Attribution) -> bytes:
    """One row per step; what applies to the whole trace is in the schema's metadata."""
    trace, steps = cost.trace, cost.trace.steps
    columns: dict[str, Any] = {"number": [str(number) for number in steps.number]}
    columns |= {name: getattr(steps, name) for name in _TIMES}
    columns |= {name: getattr(cost, name) for name in _FLAGS}
    columns |= {f"host:{key}": cost.host[:, index] for index, key in enumerate(HOST)}
    columns |= {f"wall:{key}": cost.wall[:, index] for index, key in enumerate(WALL)}
    facts = {
        "annotated": steps.annotated,
        "inferred": steps.inferred,
        "device": trace.device,
        "has_stacks": trace.has_stacks,
        "health": [[entry.code, entry.message] for entry in trace.health],
        "cannot_answer": cost.cannot_answer,
    }
    table = pa.table(
        {name: pa.array(column) for name, column in columns.items()}, metadata={"facts": json.dumps(facts)}
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _restored(trace: Trace, content: bytes) -> Attribution | None:
    try:
        table = pa.ipc.open_stream(content).read_all().combine_chunks()
        facts = json.loads(table.schema.metadata[b"facts"])
        times = {name: values(table[name]) for name in _TIMES}
        flags = {name: np.array(table[name].to_pylist(), bool) for name in _FLAGS}
        numbers = [int(number) for number in table["number"].to_pylist()]
        totals = {
            view: np.stack([values(table[f"{view}:{key}"]) for key in keys], axis=1)
            for view, keys in (("host", HOST), ("wall", WALL))
        }
        summary = Summary(
            steps=StepTable(numbers, **times, annotated=facts["annotated"], inferred=facts["inferred"]),
            device=facts["device"],
            has_stacks=facts["has_stacks"],
            health=[Health(code, message) for code, message in facts["health"]],
        )
    except (pa.ArrowInvalid, OSError, ValueError, KeyError, TypeError):
        return None
    return Attribution(
        trace=replace(trace, summary=summary),
        cannot_answer=facts["cannot_answer"],
        host=totals["host"],
        wall=totals["wall"],
        host_known=flags["host_known"],
        wall_known=flags["wall_known"],
        steady=flags["steady"],
    )
