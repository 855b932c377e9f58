"""Records as a watch would write them, for tests that read them."""

import random
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.watched.planted_steps import a_step
from tracekit.watched import Cause, Facts, Flag, Minute, Record, Step
from tracekit.watched.causes import cause_of
from tracekit.watched.usual import Usual

MS = 1_000_000
BEGAN_NS = 1_780_000_000_000_000_000
FACTS = Facts(
    process=7,
    began_ns=BEGAN_NS,
    script="/home/ada/secret/train.py",
    device_name="A Processor",
    step="1 step of Adam",
    job="one",
    versions={"torch": "2.13.0"},
)


def steps(number: int, slow: Mapping[int, Mapping[str, int]], usual_ns: int = 10 * MS, seed: int = 1) -> list[Step]:
    """Steps in which little happens, but for those given: their parts, of which `step_ns` is what they take longer."""
    source, made, began_ns = random.Random(seed), [], BEGAN_NS
    for index in range(number):
        parts = {**slow.get(index, {})}
        took_ns = int(source.gauss(1, 0.01) * usual_ns) + parts.pop("step_ns", 0)
        parts = {"host_ns": took_ns, "waited_ns": MS // 2, "processor_ns": usual_ns, "queued_ns": 0, **parts}
        made.append(a_step(index, took_ns)._replace(began_ns=began_ns, batches=1, **parts))
        began_ns += took_ns
    return made


def write(folder: Path, written: Iterable[Step], facts: Facts = FACTS, minute_steps: int = 1_000) -> Path:
    """The record of these steps, judged as a watch judges them; some steps make a minute."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{facts.stem}.watch"
    record, usual, minute = Record.create(path, facts), Usual(), []
    for step in written:
        verdict = usual.judge(step) if not step.flags else None
        judged = step
        if verdict is not None:
            flags = Flag.SLOW if verdict.slow else Flag.PERIODIC if verdict.period else Flag(0)
            cause = Cause.TREND if verdict.trend else cause_of(step, usual.typical) if flags else Cause.UNKNOWN
            judged = step._replace(usual_ns=verdict.usual_ns, limit_ns=verdict.limit_ns, flags=flags, cause=cause)
            if verdict.slow or verdict.trend:
                record.slow.append(judged)
        record.steps.append(judged)
        minute.append(judged)
        if len(minute) == minute_steps:
            record.minutes.append(_minute(minute))
            minute = []
    record.close()
    return path


def _minute(minute: list[Step]) -> Minute:
    durations = sorted(step.step_ns for step in minute)
    return Minute(
        minute[0].began_ns,
        minute[0].number,
        len(minute),
        durations[0],
        durations[len(durations) // 2],
        durations[-1],
        max(minute, key=lambda step: step.step_ns).number,
        sum(bool(step.flags & Flag.SLOW) for step in minute),
        sum(step.waited_ns for step in minute),
        sum(step.compile_ns for step in minute),
    )
