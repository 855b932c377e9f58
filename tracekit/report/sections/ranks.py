"""Which rank do the others wait for, and why is it late?"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from tracekit.engine.buckets import BUCKETS
from tracekit.profile import Profile
from tracekit.ranks import Collectives
from tracekit.report.blocks import Sentences, Table
from tracekit.report.model import Report
from tracekit.report.registry import of_variant
from tracekit.report.section import Contents
from tracekit.trace.schema import column
from tracekit.units import count, duration

_WHOLE, _REAL = pa.int64(), pa.float64()
RANKS = pa.schema(
    [
        column("rank", _WHOLE, "rank of the job", role="identity"),
        column("step_ns", _REAL, "wall time of a counted step", "ns"),
        column("largest", pa.string(), "bucket that takes most of it"),
        column("largest_ns", _REAL, "how much, per step", "ns"),
        column("comm_ns", _REAL, "communication that nothing hides, per step", "ns"),
        column("wait_ns", _REAL, "waiting for later ranks inside collectives, per step", "ns"),
        column("late", _WHOLE, "collectives to which it came last"),
        column("late_ns", _REAL, "by how much it came later than the first, per step", "ns"),
        column("because", pa.string(), "bucket that explains most of that; null where none does"),
        column("clock_offset_ns", _WHOLE, "its clock against the median of all", "ns", role="detail"),
        column("clock_error_ns", _WHOLE, "median error of that", "ns", role="detail"),
        column("unmatched", _WHOLE, "collectives that not all ranks have", role="detail"),
    ]
)
COLLECTIVES = pa.schema(
    [
        column("step", _WHOLE, "the N of ProfilerStep#N", role="identity"),
        column("kind", pa.string(), "all_reduce, all_to_all …, by the kernel's name"),
        column("seq", _WHOLE, "its place among those of its kind in the step", role="identity"),
        column("rank", _WHOLE, "rank", role="identity"),
        column("transfer_ns", _WHOLE, "what the last rank to arrive sees of it", "ns"),
        column("wait_ns", _WHOLE, "what this rank sees beyond that", "ns"),
        column("late_rank", _WHOLE, "rank that came last", role="identity"),
        column("late_ns", _WHOLE, "by how much it came later than the first", "ns"),
        column("late_bucket", pa.string(), "where it spent more time than the others since the collective before"),
    ]
)


@of_variant("ranks", "Ranks", rank=5)
def ranks(report: Report, profile: Profile) -> Contents | None:
    """A row per rank; behind them a row per collective and rank."""
    profiles = profile.per_rank
    if not profiles:
        return None
    matched = report.collectives[profile.name]
    rows = [*_rows(profiles, matched)]
    table = pa.Table.from_pylist(rows, RANKS)
    per_call = pa.Table.from_pylist([*_calls(matched)], COLLECTIVES)
    sentences = Sentences((_said(profile, rows, matched),))
    blocks = (sentences, Table("ranks", table), Table("collectives", per_call, detail=True))
    step = max(row["step_ns"] or 0.0 for row in rows)
    worth = max(row["late_ns"] for row in rows) / step if step else None
    return Contents(blocks, worth=worth)


def _rows(profiles: dict[int, Profile], matched: Collectives) -> Iterator[dict[str, Any]]:
    steps = max(matched.steps, 1)
    for rank, profile in profiles.items():
        mean = profile.means["wall"]
        parts = mean.parts if mean is not None else {}
        largest = max(parts, key=lambda key: parts[key], default=None)
        caused = matched.caused_ns(rank)
        clock = matched.clocks[rank]
        yield {
            "rank": rank,
            "step_ns": mean.step_ns if mean is not None else None,
            "largest": BUCKETS[largest].label if largest is not None else None,
            "largest_ns": parts[largest] if largest is not None else None,
            "comm_ns": parts.get("gpu_comm"),
            "wait_ns": sum(each.wait_ns[rank] for each in matched.matched) / steps,
            "late": len(matched.late(rank)),
            "late_ns": sum(caused.values()) / steps,
            "because": _cause(caused),
            "clock_offset_ns": clock.offset_ns,
            "clock_error_ns": clock.error_ns,
            "unmatched": matched.unmatched[rank],
        }


def _cause(caused: dict[str, int]) -> str | None:
    key = max(caused, key=lambda each: caused[each], default="")
    return BUCKETS[key].label if key else None


def _calls(matched: Collectives) -> Iterator[dict[str, Any]]:
    for each in matched.matched:
        for rank in matched.ranks:
            yield {
                "step": each.step,
                "kind": each.kind,
                "seq": each.nth,
                "rank": rank,
                "transfer_ns": each.transfer_ns,
                "wait_ns": each.wait_ns[rank],
                "late_rank": each.late_rank,
                "late_ns": each.late_ns,
                "late_bucket": each.late_bucket,
            }


def _said(profile: Profile, rows: list[dict[str, Any]], matched: Collectives) -> str:
    of_which = f"{len(rows)} ranks; all other figures are of rank {rows[0]['rank']}."
    if not matched.matched:
        return f"{of_which} No collective was recorded on all of them, so that who waits for whom cannot be answered."
    late = max(rows, key=lambda row: row["late_ns"])
    why = f", mostly because of {late['because']}" if late["because"] else ""
    missing = _missing(profile, [row["rank"] for row in rows])
    return (
        f"{of_which} Rank {late['rank']} is the one to wait for: it arrives {duration(late['late_ns'])} a step "
        f"later than the first{why}, last at {late['late']} of {count(len(matched.matched))} collectives. "
        f"Clocks are aligned by these, within {duration(matched.error_ns)}.{missing}"
    )


def _missing(profile: Profile, ranks: list[int]) -> str:
    told = profile.trace.meta.get("distributedInfo")
    world = told.get("world_size") if isinstance(told, dict) else None
    if not isinstance(world, int) or not len(ranks) < world <= 1 << 20:
        return ""
    return f" {world - len(ranks)} of {world} ranks are missing: one of those may be later still."
