"""The slow steps of a watch: by cause, one by one, at regular intervals; the traces taken after them; and its ranks."""

import shlex
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa

from tracekit.base.names import sanitize
from tracekit.base.units import count, duration, many
from tracekit.findings.late_batches import named
from tracekit.profile import Profile
from tracekit.profile.growth import Grown, in_words
from tracekit.profile.names import path_as_text
from tracekit.report import Report
from tracekit.report.blocks import Sentences, Table
from tracekit.report.section import Contents, of_watch
from tracekit.trace.schema import column
from tracekit.watched import Cause, Flag
from tracekit.watched.causes import NAMES
from tracekit.watched.reading import SlowStep, TakenTrace, Watched
from tracekit.watched.record import UNKNOWN, Step
from tracekit.watched.usual import LEAST_SHARE

CAUSES = pa.schema(
    [
        column("cause", pa.string(), "what made steps slow, as far as the watch knows", role="name"),
        column("steps", pa.int64(), "slow steps with this cause"),
        column("lost_ns", pa.int64(), "what they took beyond the usual, in all", "ns", title="lost"),
        column("explained_ns", pa.int64(), "how much of that the cause explains", "ns", title="explained"),
        column("longest_ns", pa.int64(), "the longest of them", "ns"),
        column("longest_at", pa.int64(), "its number", role="identity", title="at step"),
        column("why", pa.string(), "what happened in the longest", role="reason"),
    ]
)
SLOW = pa.schema(
    [
        column("step", pa.int64(), "number of the step", role="identity"),
        column("at", pa.string(), "when it began, UTC", role="identity"),
        column("began_unix_ns", pa.int64(), "the same, ns since 1970", role="plumbing"),
        column("step_ns", pa.int64(), "what it took", "ns", title="took"),
        column("usual_ns", pa.int64(), "what was usual then", "ns"),
        column("limit_ns", pa.int64(), "beyond which a step was slow then", "ns", role="detail"),
        column("lost_ns", pa.int64(), "what it took beyond the usual", "ns", title="lost"),
        column("cause", pa.string(), "what made it slow, as far as the watch knows", role="name"),
        column("explained_ns", pa.int64(), "how much of what it lost the cause explains", "ns", title="explained"),
        column("why", pa.string(), "what happened in it", role="reason"),
        column("late_rank", pa.int64(), "the rank that came late", role="identity"),
        column("worker", pa.int64(), "the loader's worker that made the late batch", role="identity"),
        column("file", pa.string(), "file of the line at which the worker was longest meanwhile", role="source"),
        column("line", pa.int64(), "line number in the file", role="source"),
        column("function", pa.string(), "function that the line is in", role="source"),
        column("traced", pa.bool_(), "whether the steps after it were traced", role="detail"),
    ]
)
PARTS = pa.schema(
    [
        column("part", pa.string(), "part of the steps, as the host saw it; parts may overlap", role="name"),
        column("total_ns", pa.int64(), "of the steps that are left one by one, as far as it was observed", "ns"),
        column("share", pa.float64(), "of the time of the steps in which it was observed", "share"),
        column("usual_ns", pa.int64(), "in a usual step", "ns"),
        column("most_ns", pa.int64(), "in the step that has most of it", "ns"),
        column("most_at", pa.int64(), "the number of that step", role="identity", title="at step"),
        column("times", pa.int64(), "how often it happened"),
    ]
)
TRACES = pa.schema(
    [
        column(
            "after", pa.int64(), "the step that made the watch trace the next ones", role="identity", title="after step"
        ),
        column("why", pa.string(), "why that step was slow, or what asked for the trace", role="name"),
        column("steps", pa.int64(), "steps in it"),
        column("median_ns", pa.int64(), "the median of these, which the profiler makes longer", "ns"),
        column("longest_ns", pa.int64(), "the longest of these", "ns"),
        column(
            "recurs", pa.bool_(), "whether one of them is slow, too; empty if that cannot be told", title="slow again"
        ),
        column("opened", pa.bool_(), "whether it is part of this report", role="detail"),
        column("command", pa.string(), "what opens it", role="setting"),
    ]
)
RANKS = pa.schema(
    [
        column("rank", pa.int64(), "its number", role="identity"),
        column("steps", pa.int64(), "steps that are left one by one"),
        column("usual_ns", pa.int64(), "its median step", "ns"),
        column("waited_ns", pa.int64(), "waits for batches in a usual step", "ns"),
        column("slow", pa.int64(), "its slow steps that are left"),
        column("late", pa.int64(), "slow steps of this report's rank for which it came late", title="came late"),
        column("record", pa.string(), "its record", role="setting"),
    ]
)
STEPS = pa.schema(
    [
        column(
            name,
            pa.string() if name == "cause" else pa.int64(),
            f"{name.removesuffix('_ns').removesuffix('_bytes').replace('_', ' ')} of the step, as the watch noted it",
            "ns" if name.endswith("_ns") and name != "began_ns" else "B" if name.endswith("_bytes") else "",
        )
        for name in Step._fields
    ]
)
_PARTS = (  # of a step: what it is called, the field with its time, and the one that counts it
    ("waiting for batches", "waited_ns", "batches"),
    ("compiling", "compile_ns", "compiles"),
    ("collecting garbage", "collect_ns", "collections"),
    ("waiting for a core", "queued_ns", None),
    ("running on a core", "processor_ns", None),
)


@of_watch("watch_causes", "What made steps slow", rank=-2, stage="lead")
def causes(_: Report, watched: Watched) -> Contents | None:
    """A row for each cause, the costliest first."""
    by_cause: dict[Cause, list[SlowStep]] = {}
    for slow in watched.slow:
        if slow.explanation.cause is not Cause.TREND:
            by_cause.setdefault(slow.explanation.cause, []).append(slow)
    rows = [
        {
            "cause": NAMES[cause],
            "steps": len(group),
            "lost_ns": sum(slow.explanation.beyond_ns for slow in group),
            "explained_ns": sum(slow.explanation.explained_ns for slow in group) if cause else None,
            "longest_ns": longest.step.step_ns,
            "longest_at": longest.step.number,
            "why": why(longest),
        }
        for cause, group in by_cause.items()
        for longest in [max(group, key=lambda slow: slow.step.step_ns)]
    ]
    periods = tuple(_periods(watched))
    if not rows and not periods:
        return None
    table = Table.of("watch_causes", sorted(rows, key=lambda row: -int(str(row["lost_ns"]))), CAUSES)
    said = (Sentences(periods),) if periods else ()
    return Contents((*((table,) if rows else ()), *said))


@of_watch("slow_steps", "Slow steps", rank=1)
def slow_steps(_: Report, watched: Watched) -> Contents | None:
    """A row for each slow step that is left, the costliest first, and for each trend."""
    slow = sorted(watched.slow, key=lambda slow: -slow.explanation.beyond_ns)
    steps = [_as_row(step) for step in watched.shown.steps]
    tables = {"watch_single_steps": lambda: pa.Table.from_pylist(steps, STEPS)} if steps else {}
    if not slow:
        return Contents((), status="absent", tables=tables) if tables else None
    rows = (_slow_row(one) for one in slow)
    return Contents((Table.of("watch_slow_steps", rows, SLOW),), worth=1.0, tables=tables)


def why(slow: SlowStep) -> str:
    """What happened in a slow step and, if its batch was late, at which line its worker made it."""
    late = slow.late_batch
    if late is None:
        return sanitize(slow.sentence)
    place = f", {duration(late.place_ns)} of them in {named(late.place)}" if late.place is not None else ""
    return f"{sanitize(slow.sentence)} Worker {late.worker} took {duration(late.making_ns)} to make it{place}."


def _slow_row(slow: SlowStep) -> dict[str, Any]:
    step, (cause, explained_ns, beyond_ns) = slow.step, slow.explanation
    place = slow.late_batch.place if slow.late_batch is not None else None
    return {
        "step": step.number,
        "at": time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(step.began_ns / 1e9)),
        "began_unix_ns": step.began_ns,
        "step_ns": step.step_ns,
        "usual_ns": _known(step.usual_ns),
        "limit_ns": _known(step.limit_ns),
        "lost_ns": beyond_ns,
        "cause": NAMES[cause],
        "explained_ns": explained_ns if cause not in (Cause.UNKNOWN, Cause.TREND) else None,
        "why": why(slow),
        "late_rank": slow.late_rank,
        "worker": _known(step.worker) if cause is Cause.BATCH else None,
        **({"file": place.file, "line": place.line, "function": place.function} if place is not None else {}),
        "traced": bool(step.flags & Flag.TRIGGERED),
    }


def _as_row(step: Step) -> dict[str, Any]:
    times = {name: None if value == UNKNOWN else int(value) for name, value in step._asdict().items()}
    return {**times, "cause": NAMES[step.cause] if step.flags & (Flag.SLOW | Flag.PERIODIC) else None}


def _known(value: int) -> int | None:
    return None if value == UNKNOWN else value


def _periods(watched: Watched) -> Iterator[str]:
    """What comes at one interval again and again, and would be slow by itself."""
    periodic = watched.periodic
    intervals = Counter(one.step.number - before.step.number for before, one in pairwise(periodic))
    for interval, times in intervals.most_common(1):
        longest = max(periodic, key=lambda one: one.step.step_ns)
        yield (
            f"Every {count(interval)} steps, one takes up to {duration(longest.step.step_ns)} ({times + 1} times). As "
            f"this is usual there, it does not count as slow. {why(longest)}"
        )


@of_watch("watch_parts", "What the watch saw in all steps", rank=2)
def parts(_: Report, watched: Watched) -> Contents | None:
    """A row for each part of the steps that was observed."""
    steps = watched.shown.alike
    rows = []
    for name, time_of, number_of in _PARTS:
        observed = [step for step in steps if getattr(step, time_of) != UNKNOWN]
        total_ns = sum(getattr(step, time_of) for step in observed)
        if not total_ns or watched.shown.typical is None:
            continue
        most = max(observed, key=lambda step: getattr(step, time_of))
        host_ns = sum(step.host_ns for step in observed)  # of short steps, the system is asked now and then
        rows.append(
            {
                "part": name,
                "total_ns": total_ns,
                "share": total_ns / host_ns if host_ns else None,
                "usual_ns": getattr(watched.shown.typical, time_of),
                "most_ns": getattr(most, time_of),
                "most_at": most.number,
                "times": sum(getattr(step, number_of) for step in observed) if number_of else None,
            }
        )
    if not rows:
        return None
    basis = f"Of the last {count(len(steps))} steps. Parts may overlap: work is done while garbage is collected."
    return Contents((Sentences((basis,), "quiet"), Table.of("watch_parts", rows, PARTS)), worth=0.9)


@of_watch("watch_traces", "Traces that the watch took", rank=-2, stage="lead")
def traces(report: Report, watched: Watched) -> Contents | None:
    """Whether the slow step recurs in those that were opened; and a row for each, the last first."""
    if not watched.traces:
        return None
    profiles = {capture.path: profile for profile in report.profiles for capture in profile.captures}
    rows = [_trace_row(watched, trace, profiles.get(trace.path)) for trace in reversed(watched.traces)]
    lines = [_recurrence(row) for row in rows if row["opened"]]
    lines += [f"Each step does more than those before: {in_words(growth)}." for growth in growths(report)]
    if unopened := sum(not row["opened"] for row in rows):
        lines.append(
            f"{many(unopened, 'more trace is', 'more traces are')} not opened here: --full lists the commands."
        )
    return Contents((Sentences(tuple(lines)), Table.of("watch_traces", rows, TRACES, detail=True)))


def growths(report: Report) -> list[tuple[Grown, ...]]:
    """The operators that steps call more and more often, if there are any: the same of all traces."""
    return [*{profile.growth for profile in report.profiles if profile.growth}]


def _recurrence(row: dict[str, Any]) -> str:
    after = f"After step {count(row['after'])} ({row['why']})"
    if "steps" not in row:
        return f"{after}, a trace was taken, in which no steps are marked."
    said = {True: "one was slow again.", False: "none was slow.", None: "whether one is slow cannot be told."}
    steps = many(row["steps"], "step was", "steps were")
    return f"{after}, {steps} traced, at most {duration(row['longest_ns'])}: {said[row['recurs']]}"


def _trace_row(watched: Watched, trace: TakenTrace, profile: Profile | None) -> dict[str, Any]:
    slow = next((slow for slow in watched.slow if slow.step.number == trace.after), None)
    asked = "a slow step that is no longer known" if trace.reason.startswith("slow") else "asked for"
    row: dict[str, Any] = {
        "after": trace.after,
        "why": NAMES[slow.explanation.cause] if slow is not None else asked,
        "opened": profile is not None,
        "command": shlex.join(["tracekit", "report", path_as_text(trace.path)]),
    }
    durations: list[int] = []
    if profile is not None and profile.trace.steps.annotated:
        durations = sorted(int(ns) for ns in profile.attribution.answered_view.step_ns.tolist())
    if not durations:
        return row
    median_ns, longest_ns = durations[len(durations) // 2], durations[-1]
    limit_ns = slow.step.limit_ns if slow is not None else UNKNOWN
    recurs = None if limit_ns == UNKNOWN or median_ns > limit_ns else _is_slow(longest_ns, median_ns, limit_ns)
    return row | {"steps": len(durations), "median_ns": median_ns, "longest_ns": longest_ns, "recurs": recurs}


def _is_slow(longest_ns: int, median_ns: int, limit_ns: int) -> bool:
    """Whether a step is slow among those of a trace: the profiler makes all of them longer."""
    return longest_ns > max(limit_ns, median_ns * (1 + LEAST_SHARE))


@of_watch("watch_ranks", "Ranks", rank=4)
def ranks(_: Report, watched: Watched) -> Contents | None:
    """A row for each rank of which there is a record."""
    if not watched.others:
        return None
    late = Counter(slow.late_rank for slow in watched.slow)
    records = sorted((watched.shown, *watched.others), key=lambda record: record.facts.rank)
    rows = [
        {
            "rank": record.facts.rank,
            "steps": len(record.steps),
            "usual_ns": record.typical.step_ns if record.typical is not None else None,
            "waited_ns": record.typical.waited_ns if record.typical is not None else None,
            "slow": record.number_of_slow,
            "late": late[record.facts.rank] if record is not watched.shown else None,
            "record": path_as_text(record.path),
        }
        for record in records
    ]
    text = f"Steps are those of rank {watched.facts.rank}."
    return Contents((Sentences((text,), "quiet"), Table.of("watch_ranks", rows, RANKS)), worth=0.8)
