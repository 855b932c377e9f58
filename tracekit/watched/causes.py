"""Why was this step slow? Each part of it is compared with what is usual for that part.

The cause is what explains most of the time that the step took beyond the usual, if that is at least half of it. What
was measured itself comes first: waits, compilations, collections, the queue for a core. Then comes what follows from an
event or from the size of the batch, and last where the thread was. A cause in another rank needs the record of that.
"""

from typing import NamedTuple

from tracekit.base.units import count, duration, many, percent
from tracekit.watched.record import UNKNOWN, Cause, Step

LEAST_SHARE = 0.5  # of the time beyond the usual, that a cause explains
_TOLD_QUEUE = 0.05  # of the time in which a usual step could run, in which it waits for a core: less is not told

NAMES = {
    Cause.UNKNOWN: "unknown",
    Cause.BATCH: "late batch",
    Cause.COMPILATION: "compilation",
    Cause.COLLECTION: "garbage collection",
    Cause.MEMORY: "memory freed",
    Cause.LARGER: "larger batch",
    Cause.RANK: "late rank",
    Cause.OFF_PROCESSOR: "off the processor",
    Cause.QUEUED: "waited for a core",
    Cause.LONGER_WORK: "longer work",
    Cause.TREND: "trend",
}


class Explanation(NamedTuple):
    """A cause, and how much of the time beyond the usual it explains."""

    cause: Cause
    explained_ns: int
    beyond_ns: int  # what the step took beyond the usual


def cause_of(step: Step, usual: Step) -> Cause:
    """What made a step slow, where a usual step is like `usual`."""
    return explain(step, usual).cause


def explain(step: Step, usual: Step) -> Explanation:
    """The cause, with what it explains. Of MEMORY that is what nothing else explains, and of LARGER what the step would
    take longer if its work grew with its batch: both are inferred, not measured."""
    beyond = _beyond_usual_ns(step, usual)
    for explained in _explained_ns(step, usual):
        cause, explained_ns = max(explained.items(), key=lambda item: item[1])
        if beyond and explained_ns >= LEAST_SHARE * beyond:
            return Explanation(cause, min(explained_ns, beyond), beyond)
    return Explanation(Cause.UNKNOWN, 0, beyond)


def explanation_of(cause: Cause, step: Step, usual: Step) -> Explanation:
    """What a cause explains that was found when the step ended."""
    beyond = _beyond_usual_ns(step, usual)
    explained = {known: ns for group in _explained_ns(step, usual) for known, ns in group.items()}
    return Explanation(cause, min(explained.get(cause, 0), beyond), beyond)


def _beyond_usual_ns(step: Step, usual: Step) -> int:
    return max(step.step_ns - (usual.step_ns if step.usual_ns == UNKNOWN else step.usual_ns), 0)


def _explained_ns(step: Step, usual: Step) -> tuple[dict[Cause, int], ...]:
    """How much each cause explains: those that were measured, those that follow from something, and where the thread
    was."""
    measured = {
        Cause.BATCH: _beyond(step.waited_ns, usual.waited_ns),
        Cause.COMPILATION: _beyond(step.compile_ns, usual.compile_ns),
        Cause.COLLECTION: _beyond(step.collect_ns, usual.collect_ns),
        Cause.QUEUED: _beyond(step.queued_ns, int(_usual_queue(usual) * max(step.processor_ns, 0))),
    }
    rest = max(_beyond_usual_ns(step, usual) - sum(measured.values()), 0)
    inferred = {
        Cause.MEMORY: rest if step.retries > usual.retries else 0,
        Cause.LARGER: min(rest, int((_growth(step, usual) - 1) * max(usual.step_ns - usual.waited_ns, 0))),
    }
    computed = measured[Cause.COMPILATION] + measured[Cause.COLLECTION]
    seen = {
        Cause.OFF_PROCESSOR: _beyond(_off_processor_ns(step), _off_processor_ns(usual)),
        # Longer work also waits longer for its core, where that is usual.
        Cause.LONGER_WORK: max(
            int(_beyond(step.processor_ns, usual.processor_ns) * (1 + _usual_queue(usual))) - computed, 0
        ),
    }
    return measured, inferred, seen


def _beyond(ns: int, usual_ns: int) -> int:
    return max(ns - usual_ns, 0) if UNKNOWN not in (ns, usual_ns) else 0


def _usual_queue(usual: Step) -> float:
    """How long a usual step waits for a core for each ns in which it has one; 0 where that is not known."""
    return max(usual.queued_ns, 0) / max(usual.processor_ns, 1)


def _growth(step: Step, usual: Step) -> float:
    """How many times as large as usual its batch was, at least 1."""
    sizes = ((step.nodes, usual.nodes), (step.edges, usual.edges))
    return max([1.0, *(size / usual_size for size, usual_size in sizes if size > 0 and usual_size > 0)])


def _off_processor_ns(step: Step) -> int:
    """How long its thread neither ran nor was ready to run nor waited for a batch."""
    if UNKNOWN in (step.processor_ns, step.queued_ns):
        return UNKNOWN
    return max(step.host_ns - step.processor_ns - step.queued_ns - step.waited_ns, 0)


def sentence(step: Step, usual: Step, explanation: Explanation, on_gpu: bool) -> str:
    """The cause in words, without what it explains."""
    match explanation.cause:
        case Cause.BATCH:
            worker = f", made by worker {step.worker}" if step.worker >= 0 else ""
            return f"It waited {duration(step.waited_ns)} for its batch{worker} (usually {duration(usual.waited_ns)})."
        case Cause.COMPILATION:
            return f"{many(step.compiles, 'compilation')} took {duration(step.compile_ns)}."
        case Cause.COLLECTION:
            return f"Python collected garbage for {duration(step.collect_ns)}."
        case Cause.MEMORY:
            return f"The allocator freed its cache {many(step.retries, 'time')} to get memory from the device."
        case Cause.LARGER:
            what, size, usual_size = (
                ("edges", step.edges, usual.edges)
                if step.edges > 0 < usual.edges
                else ("nodes", step.nodes, usual.nodes)
            )
            return f"Its batch was larger: {count(size)} {what}, usually {count(usual_size)}."
        case Cause.QUEUED:
            return f"Its thread was ready for {duration(step.queued_ns)}, but other work had its core."
        case Cause.OFF_PROCESSOR:
            off_ns = duration(_off_processor_ns(step))
            return f"Its thread did not run for {off_ns}: it slept, read, or waited for a lock or another process."
        case Cause.LONGER_WORK:
            waits = " or waited for the GPU" if on_gpu else ""
            queue = _usual_queue(usual) / (1 + _usual_queue(usual))
            as_usual = f" Of the time in which it could run, it usually waits for a core for {percent(queue)}." * (
                queue > _TOLD_QUEUE
            )
            return (
                f"Its thread computed{waits} for {duration(step.processor_ns)}, usually {duration(usual.processor_ns)}."
                f"{as_usual}"
            )
        case Cause.TREND:
            return "Steps have become longer than they were."
        case Cause.RANK:
            return "Another rank came late."
        case _:
            return "Its cause is unknown: nothing that the watch sees explains half of it."
