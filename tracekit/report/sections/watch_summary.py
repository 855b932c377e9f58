"""A watch at a glance: what was watched, what a step usually takes, what made steps slow, and what to do next."""

import shlex
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from tracekit.base.names import sanitize
from tracekit.base.units import count, duration, many, percent
from tracekit.findings.finding import as_clause
from tracekit.findings.late_batches import named
from tracekit.loading.record import Place
from tracekit.profile.growth import advice
from tracekit.profile.names import path_as_text
from tracekit.profile.opening import as_shown
from tracekit.report import Report
from tracekit.report.blocks import Block, Line, Mark, Note, Notes, Sentences, Series, Table
from tracekit.report.section import Contents, of_watch
from tracekit.trace.schema import column
from tracekit.watched import Cause, Flag
from tracekit.watched.causes import NAMES
from tracekit.watched.course import course
from tracekit.watched.reading import OfRank, SlowStep, Watched
from tracekit.watched.record import UNKNOWN
from tracekit.watched.usual import FIRST_STEPS

_HOUR_S, _MINUTE_S = 3600, 60
_MOST_CAUSES = 3  # that the first sentences name
ADVICE = {
    Cause.BATCH: "give the loader more workers, or let them prefetch more (num_workers, prefetch_factor), and keep "
    "them between epochs (persistent_workers=True)",
    Cause.COMPILATION: "find out what is compiled anew, and why, by a capture",
    Cause.COLLECTION: "call gc.freeze() before the loop, or gc.disable() in it and gc.collect() between epochs",
    Cause.MEMORY: "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or make the largest batches smaller",
    Cause.LARGER: "limit batches by their nodes or edges instead of the number of graphs in them",
    Cause.RANK: "look at the rank that comes late",
    Cause.QUEUED: "leave cores to this process: start fewer workers or threads, and no other work beside it",
}
MINUTES = pa.schema(
    [
        column("began_unix_ns", pa.int64(), "when its first step began, ns since 1970", role="plumbing"),
        column("first", pa.int64(), "its first step", role="identity"),
        column("steps", pa.int64(), "steps that ended in it"),
        column("least_ns", pa.int64(), "the shortest step", "ns"),
        column("median_ns", pa.int64(), "the median step", "ns"),
        column("most_ns", pa.int64(), "the longest step", "ns"),
        column("most_number", pa.int64(), "number of the longest step", role="identity"),
        column("slow", pa.int64(), "slow steps"),
        column("waited_ns", pa.int64(), "waits for batches, of all its steps", "ns"),
        column("compile_ns", pa.int64(), "compilations, of all its steps", "ns"),
    ]
)
FACTS = pa.schema(
    [
        column("fact", pa.string(), "what is told", role="name"),
        column("value", pa.string(), "what the record says", role="setting"),
    ]
)


@of_watch("watch", "The watch", rank=-3, stage="lead")
def summary(report: Report, watched: Watched) -> Contents:
    """What was watched, what a step takes, which steps were slow; and a command that leads on."""
    growth = next((profile.growth for profile in report.profiles if profile.growth), ())
    lines = [*_pace(watched), *_slow(watched), f"Next: {as_clause(advice(growth)) or _next(watched)}"]
    blocks: list[Block] = [Sentences(tuple(map(sanitize, lines)), "lead")]
    if notes := [Note("warning", (), sanitize(text)) for text in _warnings(watched)]:
        blocks.append(Notes(tuple(notes)))
    return Contents(tuple(blocks))


def _pace(watched: Watched) -> Iterator[str]:
    facts, record = watched.facts, watched.shown
    name = facts.device_name and f" ({facts.device_name})"
    where = f"{program(watched)} on {facts.device}{name}"
    if not record.steps:
        yield f"No step of {where} has ended yet."
        return
    yield f"{many(watched.number_of_steps, 'step')} of {where} in {lasting(watched.lasted_ns)}."
    durations = sorted(step.step_ns for step in record.alike)
    if durations:
        quarter, median, three = (durations[len(durations) * part // 4] for part in (1, 2, 3))
        longest = max(record.alike, key=lambda step: step.step_ns)
        half = f"{duration(quarter)} to {duration(three)} for the middle half"
        yield (
            f"In the last {count(len(durations))}, a step usually took {duration(median)} ({half}), and at most "
            f"{duration(longest.step_ns)} (step {count(longest.number)})."
        )


def _slow(watched: Watched) -> Iterator[str]:
    slow = [slow for slow in watched.slow if slow.explanation.cause is not Cause.TREND]
    if not slow and (alike := watched.shown.alike):
        if all(step.limit_ns == UNKNOWN for step in alike):
            yield f"No step was judged: nothing is said of the first {FIRST_STEPS}."
        else:
            after = f" after the first {FIRST_STEPS}" if alike[0].number < FIRST_STEPS else ""
            yield f"No step{after} was slow."
    if slow:
        by_cause: dict[Cause, list[SlowStep]] = {}
        for one in slow:
            by_cause.setdefault(one.explanation.cause, []).append(one)
        costly = sorted(by_cause.items(), key=lambda item: -_lost_ns(item[1]))
        named = [
            f"{NAMES[cause]} {len(group)} × ({duration(_lost_ns(group))})" for cause, group in costly[:_MOST_CAUSES]
        ]
        rest = sum(len(group) for _, group in costly[_MOST_CAUSES:])
        others = [f"{rest} by other causes"] if rest else []
        total_ns = _lost_ns(slow)
        share = f" ({percent(total_ns / watched.lasted_ns)} of the time)" if watched.lasted_ns > total_ns else ""
        told = f"{many(len(slow), 'step was', 'steps were')} slow, and lost {duration(total_ns)}{share}"
        if watched.shown.had_more_slow:  # the time of all is no measure of the last ones
            told = f"More steps were slow than are left: the last {count(len(slow))} lost {duration(total_ns)}"
        yield f"{told}: {', '.join([*named, *others])}."
    for one in watched.slow:
        if one.explanation.cause is Cause.TREND:
            yield f"Noticed at step {count(one.step.number)}: {one.sentence}"


def _slow_line(steps: list[SlowStep]) -> Place | None:
    """The line at which workers were for most of the time of late batches; None if that is not known, or no one."""
    spent: Counter[Place] = Counter()
    late = [slow.late_batch for slow in steps if slow.late_batch is not None]
    for batch in late:
        if batch.place is not None:
            spent[batch.place] += batch.place_ns
    ((place, spent_ns),) = spent.most_common(1) or ((None, 0),)
    return place if 2 * spent_ns > sum(batch.making_ns for batch in late) > 0 else None


def _lost_ns(steps: list[SlowStep]) -> int:
    return sum(slow.explanation.beyond_ns for slow in steps)


def _next(watched: Watched) -> str:
    """What to do about the costliest cause, or how to learn more."""
    by_cause: dict[Cause, list[SlowStep]] = {}
    for slow in (*watched.slow, *watched.periodic):
        by_cause.setdefault(slow.explanation.cause, []).append(slow)
    cause, group = max(by_cause.items(), key=lambda item: _lost_ns(item[1]), default=(None, []))
    after = [trace for slow in group if (trace := watched.trace_after(slow.step.number)) is not None]
    traces = after or watched.traces
    if cause is Cause.RANK:
        path = next(record.path for record in watched.others if record.facts.rank == group[0].late_rank)
        return f"look at rank {group[0].late_rank}, which came late: {_command('report', path)}"
    if cause is Cause.BATCH and (place := _slow_line(group)) is not None:
        return f"look at {named(place)}, where workers spend most of the time for which batches are late."
    if cause in ADVICE:
        command = (
            f": {_command('capture', watched.facts.script)}" if cause is Cause.COMPILATION and script(watched) else ""
        )
        return f"{ADVICE[cause]}{command or '.'}"
    if traces:
        return f"see what the steps after step {count(traces[-1].after)} did: {_command('report', traces[-1].path)}"
    if cause is not None:
        return f"trace some steps while it trains: tracekit snap {watched.facts.process}"
    if script(watched):
        return f"see where the time of a step goes: {_command('capture', watched.facts.script)}"
    return "see where the time of a step goes, by a trace: tracekit.trace_handler, or tracekit capture SCRIPT"


def _command(verb: str, path: str | Path) -> str:
    return shlex.join(["tracekit", verb, path_as_text(path)])


def _warnings(watched: Watched) -> Iterator[str]:
    if left_out := watched.shown.left_out:
        yield f"{many(left_out, 'entry of the record is', 'entries of the record are')} damaged, and left out."
    yield from (as_shown(error, path) for path, error in watched.unreadable.items())
    missing = watched.facts.ranks - 1 - len(watched.others)
    if watched.others and missing > 0:
        yield f"There is no record of {many(missing, 'other rank')}: who came late may be unknown."


@of_watch("watch_steps", "Steps over time", rank=-2, stage="lead")
def over_time(_: Report, watched: Watched) -> Contents | None:
    """Two lines: the longest step of each stretch, and its median."""
    stretches = course(watched.shown)
    if not stretches:
        return None
    numbers = tuple(stretch.first for stretch in stretches)
    span = f"steps {count(stretches[0].first)}–{count(stretches[-1].last)}"
    unmarked: list[Mark] = [""] * len(numbers)
    marks = tuple(unmarked)
    lines = [
        Line("longest", numbers, tuple(stretch.most_ns for stretch in stretches), marks, span=span),
        Line("median", numbers, tuple(stretch.median_ns for stretch in stretches), marks, span=span),
    ]
    longest = max(stretch.last + 1 - stretch.first for stretch in stretches)
    text = f"Each place stands for up to {many(longest, 'step')}, and is as high as the longest of them."
    basis = (Sentences((text,), "quiet"),) if longest > 1 else ()
    return Contents((Series("watch_steps", tuple(lines)), *basis))


@of_watch("watch_facts", "The record", rank=95, stage="end")
def facts(_: Report, watched: Watched) -> Contents:
    """A line for each fact; its minutes are a table for exports."""
    rows = ({"fact": fact, "value": value} for fact, value in _facts(watched, watched.shown))
    minutes = [minute._asdict() for minute in watched.shown.minutes]
    tables = {
        "watch_minutes": lambda: pa.Table.from_pylist(
            [{**minute, "began_unix_ns": minute["began_ns"]} for minute in minutes], MINUTES
        )
    }
    return Contents((Table.of("watch_facts", rows, FACTS, detail=True),), tables=tables)


def _facts(watched: Watched, record: OfRank) -> Iterator[tuple[str, str]]:
    facts = record.facts
    yield "record", path_as_text(record.path)
    yield "began", time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(facts.began_ns / 1e9))
    yield "process", str(facts.process)
    if script(watched):
        yield "script", script(watched)
    yield "device", facts.device
    if facts.device_name:
        yield "name of the device", facts.device_name
    yield "clock of steps", facts.clock
    if facts.step:
        yield "a step is", facts.step
    yield "rank", f"{facts.rank} of {facts.ranks}"
    yield from facts.versions.items()
    yield "steps left one by one", count(len(record.steps))
    yield "of these, traced", count(sum(bool(step.flags & Flag.TRACED) for step in record.steps))
    yield "slow steps left", count(record.number_of_slow)
    if watched.earlier:
        yield "records of earlier jobs in the folder", count(watched.earlier)


def script(watched: Watched) -> str:
    """The path of the program; empty if it is unknown, as in a confidential report."""
    return path_as_text(watched.facts.script) if watched.facts.script else ""


def program(watched: Watched) -> str:
    """What the program is called."""
    return Path(script(watched)).name or "a program"


def lasting(ns: int) -> str:
    """`3 h 12 min`, `12 min`, `45 s`."""
    seconds = round(ns / 1e9)
    hours, minutes = seconds // _HOUR_S, seconds % _HOUR_S // _MINUTE_S
    return f"{count(hours)} h {minutes} min" if hours else f"{minutes} min" if minutes else duration(ns)
