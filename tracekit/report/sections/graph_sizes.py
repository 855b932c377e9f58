"""How does a step depend on the size of its graph, how much is padding, and which size causes recompilations?"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from tracekit.base.names import sanitize
from tracekit.base.units import count, duration, percent
from tracekit.findings.tried import with_results
from tracekit.profile.graph_cost import GraphCost, changed_sizes, graph_cost, padding
from tracekit.report.blocks import Sentences, Table
from tracekit.report.model import Report
from tracekit.report.section import Contents, of_run
from tracekit.statistics.uncertainty import Interval
from tracekit.trace.schema import column

_THOUSAND = 1000
_ROWS = pa.schema(
    [
        column("variant", pa.string(), "the variant", role="name"),
        column("against", pa.string(), "the size that step times are fitted to: edges, or nodes where only these vary"),
        column("steps", pa.int64(), "number of steps in the fit"),
        column(
            "unprofiled",
            pa.bool_(),
            "whether these steps ran without the profiler; otherwise they are those of the trace",
        ),
        column("least", pa.int64(), "the smallest size"),
        column("median", pa.int64(), "the median size"),
        column("most", pa.int64(), "the largest size"),
        column(
            "fixed_ns",
            pa.float64(),
            "the part of a step that does not depend on its size; null where it cannot be determined",
            "ns",
        ),
        column("fixed_low_ns", pa.float64(), "lower end of its 95 % interval", "ns", role="detail"),
        column("fixed_high_ns", pa.float64(), "upper end of its 95 % interval", "ns", role="detail"),
        column("per_thousand_ns", pa.float64(), "what each thousand edges, or nodes, add", "ns"),
        column("per_thousand_low_ns", pa.float64(), "lower end of its 95 % interval", "ns", role="detail"),
        column("per_thousand_high_ns", pa.float64(), "upper end of its 95 % interval", "ns", role="detail"),
        column("explained", pa.float64(), "share of the variation between steps that their sizes explain", "share"),
    ]
)
_STEPS = pa.schema(
    [
        column("variant", pa.string(), "the variant"),
        column("pass", pa.int64(), "the unprofiled pass, from 0; all are 0 where the steps are those of the trace"),
        column("nodes", pa.int64(), "nodes of the step's graphs; null where unknown"),
        column("edges", pa.int64(), "edges of the step's graphs"),
        column("step_ns", pa.int64(), "duration of the step", "ns"),
    ]
)


@of_run("graph_sizes", "Step time and graph size", rank=34)
def graph_sizes(report: Report) -> Contents | None:
    """A sentence and a row for each variant whose graphs were seen."""
    costs = {member.name: cost for member in report.members if (cost := graph_cost(member)) is not None}
    if not costs:
        return None
    if all(cost.is_constant for cost in costs.values()) and len({int(cost.sizes[0]) for cost in costs.values()}) == 1:
        steps = next(iter(costs.values())).steps
        nodes = int(steps.nodes[0])
        size = " and ".join([*([f"{count(nodes)} nodes"] if nodes >= 0 else []), f"{count(int(steps.edges[0]))} edges"])
        sentence = f"Every step trains on {size}: what one of them costs cannot be known."
        return Contents((Sentences((sentence,)),), worth=0.0, status="absent")
    sentences = [*(_sentence(name, cost) for name, cost in costs.items()), *_of_padding(costs)]
    for member in report.members:
        changes = changed_sizes(member.variant) if member.variant is not None else []
        clauses = []
        for change in changes[:3]:
            size_text = f"a different number of {sanitize(change.size)}" if change.size else "a different size"
            place = f"({sanitize(change.tensor, 60)}, dimension {change.dimension})"
            clauses.append(f"{count(change.times)} {'is' if change.times == 1 else 'are'} due to {size_text} {place}")
        if clauses:
            is_repeated = sum(change.times for change in changes) > 1
            cure = " With dynamic=True, or graphs padded to one size, there would be none." if is_repeated else ""
            text = f"{sanitize(member.name)}: of its recompilations, {', '.join(clauses)}.{cure}"
            sentences.append(with_results(text, report.attempts.get(member.name, ())))
    growing = [cost.growing_share for cost in costs.values() if cost.line is not None and cost.growth == "grows"]
    return Contents(
        (Sentences(tuple(sentences)), Table.of("graph_sizes", _rows(costs), _ROWS)),
        worth=max(growing, default=None),
        tables={"graph_steps": lambda: _steps(costs)},
    )


def _steps(costs: dict[str, GraphCost]) -> pa.Table:
    tables = []
    for name, cost in costs.items():
        steps = cost.steps
        nodes = pa.array(steps.nodes, mask=steps.nodes < 0)
        names = pa.array([name] * len(steps.edges))
        tables.append(pa.table([names, steps.passes, nodes, steps.edges, steps.step_ns], schema=_STEPS))
    return pa.concat_tables(tables)


def _sentence(name: str, cost: GraphCost) -> str:
    variant = sanitize(name)
    smallest, largest = int(cost.sizes.min()), int(cost.sizes.max())
    span = count(smallest) if smallest == largest else f"{count(smallest)} … {count(largest)}"
    sizes = f"{span} {cost.dimension}, {count(len(cost.sizes))} steps"
    line = cost.line
    if line is None:
        return f"{variant}: what an edge costs cannot be known: {cost.why_not} ({sizes})."
    of_trace = "" if cost.steps.unprofiled else ", of the trace"
    growth = f"{duration(line.slope * _THOUSAND)} ({_ends(_scaled(line.slope_interval))}) per thousand {cost.dimension}"
    if cost.growth == "unclear":
        return (
            f"{variant}: what an edge costs cannot be known: the sizes ({sizes}) are too similar, given how much steps "
            f"vary. It may be anywhere in {_ends(_scaled(line.slope_interval))} per thousand {cost.dimension}."
        )
    if cost.growth == "flat":
        return (
            f"{variant}: a step takes {duration(cost.steps.typical_ns)} however large its graph is ({sizes}{of_trace})."
        )
    if not cost.knows_fixed:
        return (
            f"{variant}: a step takes {growth}; how much it takes apart from that cannot be known: the sizes "
            f"({sizes}{of_trace}) are too similar, given how much steps vary."
        )
    share = (
        "larger graphs cost disproportionately more"
        if line.fixed_interval[1] < 0
        else f"{percent(cost.growing_share)} of a step of median size grows with its graph"
    )
    return (
        f"{variant}: a step takes {duration(line.fixed)} ({_ends(line.fixed_interval)}) + {growth}; {share} "
        f"({sizes}{of_trace})."
    )


def _scaled(interval: Interval) -> Interval:
    return interval[0] * _THOUSAND, interval[1] * _THOUSAND


def _ends(interval: Interval) -> str:
    like = max(map(abs, interval))
    return " … ".join(duration(end_ns, signed=end_ns < 0, like=like) for end_ns in interval)


def _of_padding(costs: dict[str, GraphCost]) -> Iterator[str]:
    """How much of each variant's graphs is padding, and what that costs."""
    for name, cost in costs.items():
        padded = padding(cost, [(sibling, sibling_cost) for sibling, sibling_cost in costs.items() if sibling != name])
        if padded is None:
            continue
        nodes = f" and {percent(padded.nodes)} of its nodes" if padded.nodes is not None else ""
        room = "" if padded.sizes == 1 else f" to {count(padded.sizes)} sizes"
        text = (
            f"{sanitize(name)} pads{room}: {percent(padded.edges)} of its edges{nodes} are not in the graphs of "
            f"{sanitize(padded.sibling)} (inferred: both draw the same batches). "
        )
        if padded.cost_ns is None or padded.cost_interval is None:
            yield f"{text}What this padding costs cannot be known, because it is unknown what an edge costs."
        else:
            basis = f", by what an edge costs in {sanitize(padded.sibling)}" if padded.by_sibling else ""
            interval = _ends(padded.cost_interval)
            yield f"{text}This padding costs {duration(padded.cost_ns)} ({interval}) a step{basis}."


def _rows(costs: dict[str, GraphCost]) -> Iterator[dict[str, Any]]:
    for name, cost in costs.items():
        sizes, line = sorted(cost.sizes.tolist()), cost.line
        is_known = line is not None and cost.growth != "unclear"
        fixed = line if is_known and cost.knows_fixed else None
        slope = line if is_known else None
        yield {
            "variant": name,
            "against": cost.dimension,
            "steps": len(sizes),
            "unprofiled": cost.steps.unprofiled,
            "least": sizes[0],
            "median": sizes[len(sizes) // 2],
            "most": sizes[-1],
            "fixed_ns": fixed and fixed.fixed,
            "fixed_low_ns": fixed and fixed.fixed_interval[0],
            "fixed_high_ns": fixed and fixed.fixed_interval[1],
            "per_thousand_ns": slope and slope.slope * _THOUSAND,
            "per_thousand_low_ns": slope and slope.slope_interval[0] * _THOUSAND,
            "per_thousand_high_ns": slope and slope.slope_interval[1] * _THOUSAND,
            "explained": slope and slope.explained,
        }
