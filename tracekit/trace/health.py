"""What limits the answers that a trace can give? One entry for each thing that is missing, broken or unusual in it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracekit.trace.reading.ascend import HARDWARE
from tracekit.trace.roles import OPERATOR
from tracekit.trace.steps import find_iterations, find_repetition
from tracekit.units import count, duration, many, percent

if TYPE_CHECKING:
    from tracekit.trace.model import Trace

_NO_ID = 1 << 62  # beyond any correlation id
_COLLECTIVES = {"Communication", "HCCL"}  # processes in which Ascend's profiler draws collectives
_TOLD = 0.01  # of a recording: what lasts less at either end is not mentioned


@dataclass(frozen=True)
class Limitation:
    """One thing that limits the answers of a trace: a stable code, and the sentence to show."""

    code: str
    message: str


def examine(trace: "Trace") -> list[Limitation]:
    """Everything that limits the answers of this trace, worst first."""
    return list(_examine(trace))


def why_calls_unknown(trace: "Trace") -> str | None:
    """Why launches and syncs cannot be identified in a trace that shows GPU work; None if they can."""
    census, process = trace.census, trace.threads.process
    if not census.any(lambda roles: roles.gpu):
        return None
    if not (census.roles.runtime & process[census.track]).any():
        return "the trace holds GPU activity, but no runtime call of the training process"
    if not census.any(lambda roles: roles.launch | roles.sync_by_name | roles.alloc):
        return "the runtime calls in this trace are not named like those of CUDA or ROCm"
    return None


def has_operators(trace: "Trace") -> bool:
    """Whether operators were recorded, which tell dispatch from Python."""
    return trace.census.any(lambda roles: (roles.kind == OPERATOR) & ~roles.annotation)


def _examine(trace: "Trace") -> Iterator[Limitation]:
    if trace.cut_short:
        yield Limitation(
            "cut_short",
            f"The file is truncated ({trace.cut_short}); the events before that point are used.",
        )
    elif trace.damage:
        yield Limitation(
            "damaged", f"{trace.damage[:1].upper()}{trace.damage[1:]}; the events before that point are used."
        )
    processes = set(trace.tracks["process"].to_pylist())
    if HARDWARE in processes:
        uncounted = ", and the time in which it only communicates as idle" if processes & _COLLECTIVES else ""
        yield Limitation(
            "ascend",
            "Ascend's profiler wrote this trace: what is called GPU is its NPU, and calls of CANN count as dispatch"
            f"{uncounted}.",
        )
    if trace.process is not None:
        yield Limitation(
            "merged_file",
            f"One of several processes in the file ({trace.process}); events without a process, such as the profiler's "
            "own overhead, are left out.",
        )
    if trace.header_lost:
        yield Limitation("lost_header", "The header before the events is too long, and was not read.")
    if trace.lost:
        yield Limitation(
            "lost_events",
            f"{count(trace.lost)} event{_s(trace.lost)} could not be read, and {'is' if trace.lost == 1 else 'are'} "
            "excluded from all figures.",
        )
    if trace.mended:
        yield Limitation(
            "mended_events",
            f"{many(trace.mended, 'event')} {'was' if trace.mended == 1 else 'were'} repaired: an unescaped quote in a "
            "name, a value of the wrong type, or a negative duration (which counts as 0).",
        )
    gpu = trace.census.count(lambda roles: roles.gpu)
    launches = trace.census.count(lambda roles: roles.launch)
    if launches and not gpu:
        yield Limitation(
            "no_gpu_side",
            f"{count(launches)} launch calls, but no GPU activity: the GPU side was not recorded.",
        )
    if why_unknown := why_calls_unknown(trace):
        yield Limitation(
            "calls_unknown", f"{why_unknown[:1].upper()}{why_unknown[1:]}, so launches and syncs cannot be identified."
        )
    elif gpu and not has_operators(trace):
        yield Limitation(
            "no_operators",
            "No operators were recorded: what the host does between calls of the runtime "
            f"{'counts as Python, whatever it is' if trace.has_stacks else 'is not known'}.",
        )
    if gpu and trace.threads.main is not None:
        linked = len(trace.links.activities)
        if linked < gpu:
            yield Limitation(
                "unlinked_gpu",
                f"{count(gpu - linked)} of {count(gpu)} GPU activities {'has' if gpu - linked == 1 else 'have'} no "
                f"launch call {_submitted(trace)}.",
            )
        if not why_unknown:
            yield from _backlog(trace)
        if (devices := _devices(trace)) > 1:
            yield Limitation(
                "several_devices",
                f"The trace holds the work of {devices} devices: the GPU counts as busy while any of them is.",
            )
    if trace.threads.main is not None and not trace.steps.annotated:
        yield _without_steps(trace)
    if trace.has_stacks:
        yield Limitation(
            "stacks", "Python stacks were recorded, which slows Python down: without them it takes less time."
        )
    if _whole_microseconds(trace):
        yield Limitation("whole_microseconds", "Times are whole microseconds: anything shorter appears as zero.")


def _submitted(trace: "Trace") -> str:
    """Where there is no call, and which activities were launched before or after the host was recorded, judged by the
    ascending ids of calls."""
    first_id, last_id, ids = _NO_ID, -_NO_ID, [np.zeros(0, np.int64)]
    for part in trace.parts():
        tied = part.correlation != 0
        if (part.roles.runtime & ~part.process).any():
            return "of the training process"  # another one may have submitted them
        calls = part.correlation[tied & part.roles.runtime]
        first_id, last_id = int(calls.min(initial=first_id)), int(calls.max(initial=last_id))
        rows = part.rows(tied & part.roles.gpu)
        ids.append(trace.correlation[rows[trace.links.launch(rows) < 0]])
    unlinked = np.concatenate(ids)
    before, after = int((unlinked < first_id).sum()), int((unlinked > last_id).sum())
    if first_id > last_id:
        return "in the trace"
    ends = {"before the recording": before, "after the recording of the host ended": after}
    parts = [f"{count(n)} {'was' if n == 1 else 'were'} submitted {phase}" for phase, n in ends.items() if n]
    return f"in the trace: {', '.join(parts)}" if parts else "in the trace"


def _backlog(trace: "Trace") -> Iterator[Limitation]:
    steps = trace.steps
    late = int(steps.begin[0] - steps.issued[0]) if steps.annotated and len(steps) else 0
    if late:
        yield Limitation(
            "backlog",
            f"When the first step is issued, the GPU is busy with earlier launches for another "
            f"{duration(late)}: that time belongs to no step.",
        )


def _devices(trace: "Trace") -> int:
    tracks = np.flatnonzero(trace.census.by_track(lambda roles: roles.gpu, len(trace.tracks)))
    return len({trace.tracks["pid"][int(track)].as_py() for track in tracks})


def _without_steps(trace: "Trace") -> Limitation:
    steps = trace.steps
    if steps.inferred is not None:
        sentence = f"No ProfilerStep annotations: {len(steps)} steps are inferred from {steps.inferred}."
        cut = "" if steps.whole is None or steps.whole.all() else " One that was cut off is left out of means."
        return Limitation("inferred_steps", f"{sentence} Their boundaries are not exact{_outside(trace)}.{cut}")
    if (iterations := find_iterations(trace)) is not None:
        offered = f"--steps infer finds {len(iterations.starts)} steps, by {iterations.basis}."
    elif (repetition := find_repetition(trace)) is not None:
        offered = f"What repeats covers only {percent(repetition.coverage)} of it ({repetition.basis})."
    else:
        offered = "Nothing in the trace repeats as iterations do."
    sentence = "No ProfilerStep annotations: figures are of the whole recording."
    return Limitation("no_steps", f"{sentence} {offered} Call prof.step() in the loop.")


def _outside(trace: "Trace") -> str:
    """What is recorded before the first inferred step and after the last, which no figure per step covers."""
    (low, high), (first, last) = trace.as_told(infer_steps=False).steps.window, trace.steps.window
    parts = [
        f"{duration(time)} {side}"
        for time, side in ((first - low, "before the first"), (high - last, "after the last"))
        if time >= _TOLD * (high - low)
    ]
    return f", and {' and '.join(parts)} {'belongs' if len(parts) == 1 else 'belong'} to none" if parts else ""


def _whole_microseconds(trace: "Trace") -> bool:
    if any((part.ts_ns % 1000 != 0).any() for part in trace.parts()):
        return False
    return any((part.roles.host & ~part.lasting).any() for part in trace.parts())


def _s(number: int) -> str:
    return "" if number == 1 else "s"
