"""How long does each kind of communication take, how fast is it, and how much of it is hidden by computation?

The bandwidths are those of nccl-tests, so that they can be compared with what nccl-tests measures on the same machine
(github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md and the `GetBw` functions in src): `algbw` is the size divided by the
time of the transfer; `busbw` is `algbw` times how often each byte crosses a link, for comparison with the hardware's
peak.
"""

from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from tracekit.engine.buckets import CODES, ON_THE_GPU
from tracekit.ranks.collectives import Collectives
from tracekit.ranks.columns import RankColumns
from tracekit.trace.collectives import role_of
from tracekit.trace.schema import column, values

_INTEGER, _REAL = pa.int64(), pa.float64()
_ONE_WAY = ("all_gather", "reduce_scatter", "all_to_all", "gather", "scatter")
_STRAIGHT = ("broadcast", "reduce", "send_recv")
COMMUNICATION = pa.schema(
    [
        column("kind", pa.string(), "all_reduce, all_to_all …", role="identity"),
        column("group", pa.string(), "process group; null where the trace does not name it", role="identity"),
        column(
            "parallelism",
            pa.string(),
            "what the group is for, by its name, or inferred from what it does and marked so",
        ),
        column("ranks", _INTEGER, "number of ranks that take part"),
        column("bytes", _INTEGER, "size of one of them, as nccl-tests counts it", "B"),
        column(
            "bytes_inferred",
            pa.bool_(),
            "whether the size was taken from the same collective in the recording with shapes",
            role="detail",
        ),
        column("calls", _REAL, "calls per rank and step"),
        column("transfer_ns", _REAL, "how long one of them takes once all have arrived, median", "ns"),
        column("algbw", _REAL, "algorithm bandwidth: bytes divided by transfer_ns", "GB/s"),
        column("busbw", _REAL, "bus bandwidth, by the formulas of nccl-tests", "GB/s"),
        column("exposed_ns", _REAL, "time that no computation overlaps, per step and rank", "ns"),
        column("overlapped_ns", _REAL, "time that computation overlaps, per step and rank", "ns"),
        column(
            "wait_ns",
            _REAL,
            "time spent waiting for the last rank to arrive, per step and rank; null for a single rank",
            "ns",
        ),
    ]
)


def bus_factor(kind: str, ranks: int) -> float | None:
    """The factor by which nccl-tests multiplies the algorithm bandwidth; None for collectives that it has no formula
    for."""
    if ranks < 1:
        return None
    if kind == "all_reduce":
        return 2 * (ranks - 1) / ranks
    if kind in _ONE_WAY:
        return (ranks - 1) / ranks
    return 1.0 if kind in _STRAIGHT else None


class _Call(Struct, frozen=True):
    transfer_ns: int
    exposed_ns: int
    length_ns: int
    wait_ns: int | None


def communication(columns: Sequence[RankColumns], matched: Collectives | None) -> pa.Table:
    """A row for each kind, group and size, the longest exposed first, as `COMMUNICATION` describes it.

    For a single rank, the fastest call of each kind is taken as the transfer, because how long it waits is unknown.
    """
    by_key: dict[Any, list[_Call]] = {}
    names = ["kind", "group", "ranks", "bytes"]
    if matched is not None:
        steps, names = len(matched.steps), [*names, "transfer_ns", "wait_ns", "exposed_ns"]
        for *key, transfer, wait, exposed in zip(*(matched.table[name].to_pylist() for name in names), strict=True):
            call = _Call(transfer, exposed, max(transfer + wait, exposed), wait)
            by_key.setdefault(tuple(key), []).append(call)
    else:
        of_rank, is_steady = columns[0].calls, columns[0].steps["steady"].to_pylist()
        steady = {
            step for step, of_step in zip(columns[0].steps["step"].to_pylist(), is_steady, strict=True) if of_step
        }
        steps, names = sum(is_steady) or len(is_steady), [*names, "step", "exposed_ns"]
        lengths = (values(of_rank["end_ns"]) - values(of_rank["start_ns"])).tolist()
        for *key, step, exposed, length in zip(*(of_rank[name].to_pylist() for name in names), lengths, strict=True):
            if step in steady or not steady:
                by_key.setdefault(tuple(key), []).append(_Call(length, exposed, length, None))
    rank_steps = max(steps * len(columns), 1)
    kinds: dict[str | None, set[str]] = {}
    for kind, group, *_ in by_key:
        kinds.setdefault(group, set()).add(kind)
    inferred = any(rank_columns.sizes_inferred for rank_columns in columns)
    rows = [
        _row(key, calls, kinds[key[1]], rank_steps) | {"bytes_inferred": inferred and key[-1] is not None}
        for key, calls in by_key.items()
    ]
    return pa.Table.from_pylist(sorted(rows, key=lambda row: -row["exposed_ns"]), COMMUNICATION)


def _row(key: Any, calls: list[_Call], kinds: set[str], rank_steps: int) -> dict[str, Any]:
    kind, group, ranks, size = key
    waits = [call.wait_ns for call in calls if call.wait_ns is not None]
    transfer = float(median(call.transfer_ns for call in calls) if waits else min(call.transfer_ns for call in calls))
    algbw = size / transfer if size and transfer else None  # bytes per ns equal GB/s
    factor = bus_factor(kind, ranks or 0)
    role, inferred = role_of(group, kinds)
    exposed = sum(call.exposed_ns for call in calls)
    return {
        "kind": kind,
        "group": group,
        "parallelism": f"{role}, inferred" if inferred else role,
        "ranks": ranks,
        "bytes": size,
        "calls": len(calls) / rank_steps,
        "transfer_ns": transfer,
        "algbw": algbw,
        "busbw": algbw * factor if algbw is not None and factor is not None else None,
        "exposed_ns": exposed / rank_steps,
        "overlapped_ns": (sum(call.length_ns for call in calls) - exposed) / rank_steps,
        "wait_ns": sum(waits) / rank_steps if waits else None,
    }


def communication_ns(columns: RankColumns) -> float | None:
    """Communication that nothing hides, per counted step; None where no step is counted.

    On a CPU it is the Python during collectives, which is how a host waits for them.
    """
    mean = columns.means["wall"]
    if mean is None or not on_a_cpu(columns):
        return mean.parts.get("gpu_comm") if mean is not None else None
    steps = columns.steps["step"].to_numpy()[columns.steps["steady"].to_numpy()]
    steps = steps if len(steps) else columns.steps["step"].to_numpy()
    calls = columns.calls.filter(np.isin(values(columns.calls["step"]), steps))
    waited = until = 0
    # How much Python had run before and after each.
    python = (
        [spent[CODES["python"]] for spent in calls[name].to_pylist()]
        for name in ("spent_at_start_ns", "spent_at_end_ns")
    )
    for before, after in sorted(zip(*python, strict=True)):
        waited += max(after - max(before, until), 0)  # what ran until the latest end so far has been counted
        until = max(until, after)
    return waited / max(len(steps), 1)


def on_a_cpu(columns: RankColumns) -> bool:
    """Whether nothing ran on a GPU."""
    return not any(values(columns.steps[f"{key}_ns"]).any() for key in ON_THE_GPU)
