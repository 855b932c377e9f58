"""Which rank do the others wait for, and why is it late? How fast is the communication between ranks, and how much of
it is exposed?
"""

from collections.abc import Iterator
from statistics import fmean
from typing import Any

import pyarrow as pa

from tracekit.base.units import bandwidth, count, duration, percent, size
from tracekit.engine.buckets import BUCKETS, WALL
from tracekit.profile import LEAST_SHARE, Profile
from tracekit.profile.names import rank_of
from tracekit.ranks import Collectives, RankColumns, rank_columns
from tracekit.ranks.communication import communication as table_of
from tracekit.ranks.communication import communication_ns, on_a_cpu
from tracekit.ranks.matching import doubles, listed, missing, shortcomings, with_sizes
from tracekit.ranks.straggler import straggler
from tracekit.report.blocks import Sentences, Table
from tracekit.report.model import Report
from tracekit.report.section import Contents, of_variant
from tracekit.trace.schema import column

_INTEGER, _REAL = pa.int64(), pa.float64()
_COMMUNICATION = "communication"  # the host's on a CPU, or the GPU's
RANKS = pa.schema(
    [
        column("rank", _INTEGER, "rank of the job", role="identity"),
        column("step_ns", _REAL, "wall time of a counted step", "ns"),
        column("largest", pa.string(), "bucket that takes most of it; communication on a CPU, too", title="mostly"),
        column("largest_ns", _REAL, "time in that bucket, per step", "ns", title="time of that"),
        column(
            "comm_ns",
            _REAL,
            "communication that nothing hides, per step; on a CPU inferred",
            "ns",
            title="exposed communication",
        ),
        column(
            "wait_ns", _REAL, "waiting for later ranks inside collectives, per step", "ns", title="waits for others"
        ),
        column("late", _INTEGER, "collectives at which it arrived last", title="times last"),
        column(
            "late_ns",
            _REAL,
            "how much later than the first it arrived because of what it did, per step",
            "ns",
            title="late by",
        ),
        column(
            "because",
            pa.string(),
            "what explains most of late_ns: a bucket, or an earlier wait for another rank; null where nothing does",
            title="late because of",
        ),
        column(
            "caused_ns",
            _REAL,
            "how long others wait for it, or for ranks that had waited for it, per step",
            "ns",
            role="detail",
            title="others wait for it",
        ),
        column(
            "clock_offset_ns", _INTEGER, "difference of its clock from the median of all ranks", "ns", role="detail"
        ),
        column("clock_error_ns", _INTEGER, "median error of that difference", "ns", role="detail"),
        column("unmatched", _INTEGER, "collectives that some ranks lack", role="detail"),
        *(column(f"{key}_ns", _REAL, f"per step: {BUCKETS[key].meaning}", "ns", role="detail") for key in WALL),
    ]
)
STRAGGLERS = pa.schema(
    [
        column("step", _INTEGER, "the N of ProfilerStep#N", role="identity"),
        column("rank", _INTEGER, "rank that makes the others wait most", role="identity"),
        column(
            "late_ns",
            _INTEGER,
            "lateness that it is to blame for, in all collectives of the step",
            "ns",
            title="late by",
        ),
        column(
            "because",
            pa.string(),
            "bucket that explains most of late_ns; null where none does",
            title="late because of",
        ),
    ]
)


@of_variant("ranks", "Ranks", rank=5)
def ranks(report: Report, profile: Profile) -> Contents | None:
    """A row per rank; behind them a row per collective and rank."""
    columns = report.ranks.get(profile.name)
    if columns is None:
        return None
    matched = report.collectives[profile.name]
    rows = [*_rows(columns, matched)]
    summary = _summary(profile.captures[0].rank, rows, matched)
    late_before = [
        f"Rank {rank} came {duration(late_ns)} later than the first to a collective because it came late to its "
        "first recorded step: why is not recorded, and its lateness leaves that out."
        for rank, late_ns in matched.late_before.items()
    ]
    sentences = Sentences((summary, *late_before, *_incomplete(report, columns, matched)))
    stragglers = []  # for each step, the rank that others wait for most; none where no rank is late
    for step, rank in matched.late_rank_of.items():
        caused = matched.caused_ns(rank, step)
        bucket = max(caused, key=lambda key: caused[key], default="")  # empty where it is unknown, too
        because = BUCKETS[bucket].label if bucket else None
        stragglers.append({"step": step, "rank": rank, "late_ns": matched.delay_ns(rank, step), "because": because})
    step_ns = max(row["step_ns"] or 0.0 for row in rows)
    worth = max(max(row["late_ns"], row["wait_ns"]) for row in rows) / step_ns if step_ns else None
    tables = (
        Table.of("ranks", rows, RANKS),
        Table.of("stragglers", stragglers, STRAGGLERS, detail=True),
        Table("collectives", matched.table, detail=True),
    )
    return Contents((sentences, *tables), worth=worth)


def _rows(columns: list[RankColumns], matched: Collectives) -> Iterator[dict[str, Any]]:
    steps = max(len(matched.steps), 1)
    late = matched.late["late_rank"].to_pylist()
    for rank in columns:
        mean = rank.means["wall"]
        communicates = communication_ns(rank)
        parts = dict(mean.parts) if mean is not None else {}
        if communicates and on_a_cpu(rank):
            parts |= {"python": parts["python"] - communicates, "gpu_comm": communicates}
        largest = max(parts, key=lambda key: parts[key], default=None)
        late_for = matched.late_for_ns[rank.rank]
        cause, bucket = max(late_for, key=lambda key: late_for[key], default=(rank.rank, ""))
        clock = matched.clocks[rank.rank]
        yield {
            "rank": rank.rank,
            "step_ns": mean.step_ns if mean is not None else None,
            "largest": _COMMUNICATION if largest == "gpu_comm" else BUCKETS[largest].label if largest else None,
            "largest_ns": parts[largest] if largest is not None else None,
            "comm_ns": communicates,
            "wait_ns": matched.wait_ns(rank.rank) / steps,
            "late": late.count(rank.rank),
            "late_ns": matched.late_ns(rank.rank) / steps,
            "because": f"waiting for rank {cause}" if cause != rank.rank else BUCKETS[bucket].label if bucket else None,
            "caused_ns": matched.delay_ns(rank.rank) / steps,
            "clock_offset_ns": clock.offset_ns,
            "clock_error_ns": clock.error_ns,
            "unmatched": matched.unmatched[rank.rank],
            **{f"{key}_ns": mean.parts.get(key) if mean is not None else None for key in WALL},
        }


def _summary(main: int, rows: list[dict[str, Any]], matched: Collectives) -> str:
    of_which = f"{len(rows)} ranks; all other figures are of rank {main}."
    if not len(matched):
        return f"{of_which} No collective was recorded on all of them, so it is unknown who waits for whom."
    error_text = f", within {duration(matched.error_ns)}" if matched.error_ns else ""
    aligned = f"Clocks are aligned by the collectives{error_text}."
    straggling = straggler(matched)
    if straggling is None:
        return f"{of_which} No rank is late at any of {count(len(matched))} collectives. {aligned}"
    if straggling.turns:
        return f"{of_which} {straggling.sentence()}. {aligned}"
    late = next(row for row in rows if row["rank"] == straggling.rank)
    worst = [*matched.late_rank_of.values()].count(straggling.rank)
    of_steps = f"{worst} of {len(matched.steps)} steps" if len(matched.steps) > 1 else "the only step"
    text = (
        f"{of_which} {straggling.sentence()}; it is last at {late['late']} of {count(len(matched))} collectives, and "
        f"causes the longest waits in {of_steps}."
    )
    # Other ranks that are late because they had waited for this one.
    passed_on = matched.passed_on(straggling.rank)
    if passed_on.ranks:
        waiting = listed(passed_on.ranks)
        per_step = duration(passed_on.late_ns / max(len(matched.steps), 1))
        inferred = " (inferred: Python in a collective is taken for waiting)" if passed_on.inferred else ""
        text += (
            f" {waiting[0].upper()}{waiting[1:]} had waited for it, and therefore came late to other collectives, "
            f"by {per_step} a step{inferred}."
        )
    return f"{text} {aligned}"


def _incomplete(report: Report, columns: list[RankColumns], matched: Collectives) -> Iterator[str]:
    """Which parts of the job the figures do not cover."""
    if absent := missing(columns):
        world = len(absent) + len(columns)
        verb = "is" if len(absent) == 1 else "are"
        yield (f"{len(absent)} of {world} ranks {verb} missing ({listed(absent)}): one of those may be later still.")
    taking_part = {*matched.table["rank"].to_pylist()}
    for rank, shortcoming in shortcomings(columns).items():
        excluded_note = "The others are compared without it, and it may be later still."
        common = "Only the collectives that all ranks have are compared."
        yield f"Rank {rank}: {shortcoming}. {common if rank in taking_part or not taking_part else excluded_note}"
    for name, rank in doubles(report.profiles, columns):
        yield f"{name} is labelled as rank {rank}, too: it is shown as a separate variant."


@of_variant("communication", "Communication", rank=6)
def communication(report: Report, profile: Profile) -> Contents | None:
    """A row for each kind, group and size of collective."""
    columns = report.ranks.get(profile.name, [])
    if not columns and len(profile.trace.communications):  # a trace of a single rank
        columns = with_sizes([rank_columns(profile, rank_of(profile)[0] or 0)], profile)
    if not any(len(rank.calls) for rank in columns):
        return None
    table = table_of(columns, report.collectives.get(profile.name))
    rows = table.to_pylist()
    if not rows:
        return None
    exposed, overlapped = (sum(row[name] for row in rows) for name in ("exposed_ns", "overlapped_ns"))
    if on_a_cpu(columns[0]):  # collectives run at the same time there, so that rows do not add up
        exposed, overlapped = fmean(communication_ns(rank) or 0.0 for rank in columns), 0.0
    mean = profile.means["wall"]
    worth = exposed / mean.step_ns if mean is not None and mean.step_ns else None
    lines = (_communication_sentence(rows, exposed, overlapped, alone=len(columns) == 1),)
    return Contents((Sentences(lines), Table("communication", table)), worth=worth)


def _communication_sentence(rows: list[dict[str, Any]], exposed: float, overlapped: float, *, alone: bool) -> str:
    hidden = f", and computation hides {duration(overlapped)}" if overlapped else ""
    share = f" ({percent(exposed / (exposed + overlapped))} of all communication)" if overlapped and exposed else ""
    subject = "This rank" if alone else "On average, a rank"
    waits = sum(row["wait_ns"] or 0.0 for row in rows)
    is_told = 0 < LEAST_SHARE * exposed <= waits <= exposed
    waiting = f", {duration(waits)} of it waiting for later ranks" if is_told else ""
    text = f"{subject} spends {duration(exposed)} a step in exposed communication{share}{waiting}{hidden}."
    fastest = max((row for row in rows if row["busbw"]), key=lambda row: row["bytes"], default=None)
    if fastest is not None:
        text += (
            f" The largest, {fastest['kind']} of {size(fastest['bytes'])} among {fastest['ranks']} ranks, reaches "
            f"a bus bandwidth of {bandwidth(fastest['busbw'])} (formulas of nccl-tests)."
        )
    if alone:
        text += " In a single rank's trace, the fastest call of each size is taken as the transfer."
    if any(row["bytes_inferred"] for row in rows):
        text += " Sizes are inferred from the same collectives in the recording with shapes: the trace gives no sizes."
    if any(row["group"] is None for row in rows):
        text += " The trace does not name process groups: calls are matched by step, kind and order."
    return text
