"""Are both sides there: what the host did, and what the GPU did?"""

from collections.abc import Iterator

import numpy as np

from tracekit.base.intervals import NO_INTS
from tracekit.base.units import count, duration, many
from tracekit.trace.facts.coverage import device_side_missing
from tracekit.trace.facts.law import Broken, law
from tracekit.trace.model import Trace
from tracekit.trace.reading.ascend import HARDWARE

_COLLECTIVES = {"Communication", "HCCL"}  # processes in which Ascend's profiler draws collectives
_LOST_WITH_THE_REST = "it may be in the part of the file that is missing"
_NO_ID = 1 << 62  # beyond any correlation id


@law("no_gpu_side", "refusal", touches=("gpu work", "gpu idle"))
def no_gpu_side(trace: Trace) -> Iterator[Broken]:
    """Launches, but no GPU activity at all.

    Holds: What is launched leaves work of the GPU in the trace.
    Breaks: There are launch calls, and no activity of a GPU at all.
    Then: There is no wall view, only a host view.
    Do: Record with `ProfilerActivity.CUDA`, or the activity of your device; in a container, the profiler may lack
        the right to record it.
    """
    launches = trace.census.count(lambda roles: roles.launch)
    if launches and trace.device != "gpu":
        why = _LOST_WITH_THE_REST if trace.cut_short else "the GPU side was not recorded"
        yield Broken(f"{many(launches, 'launch call')}, but no GPU activity: {why}.", launches)


@law("several_processes", "refusal", touches=("gpu work", "gpu idle", "steps"))
def several_processes(trace: Trace) -> Iterator[Broken]:
    """Several processes launch work: whose steps the GPU works for cannot be told.

    Holds: One process launches the work of a file.
    Breaks: Several processes make launch calls in it.
    Do: Write a file for each process, and give them all to `tracekit report`.
    """
    processes = len(trace.processes_with(lambda roles: roles.launch))
    if processes > 1:
        yield Broken(
            f"{count(processes)} processes launch work in this file: whose work the GPU does cannot be told.",
            processes,
        )


@law("another_device", "refusal", touches=("gpu work", "gpu idle", "host time"))
def another_device(trace: Trace) -> Iterator[Broken]:
    """Work ran on a device that was not recorded: an operator only submitted it.

    Holds: Work of an accelerator is in the trace.
    Breaks: Operators that only an accelerator has, collectives of its library, events of its categories, or reads of
        values that wait for it, but no launch and no work.
    Then: How long the work took is unknown: operators only submitted it.
    Do: Record with the activity of your device (`ProfilerActivity.XPU`, `PrivateUse1`, …).
    """
    submitted = device_side_missing(trace)
    if submitted is not None and not trace.census.any(lambda roles: roles.launch):
        why = f"but none of its work is in the trace: {_LOST_WITH_THE_REST}"
        if not trace.cut_short:
            why = "and that device was not recorded: operators only submit work to it"
        yield Broken(f"{submitted.description}, {why}.", worst=int(submitted.rows[0]))


@law("calls_unknown", "doubt", touches=("gpu idle", "steps"))
def calls_unknown(trace: Trace) -> Iterator[Broken]:
    """GPU work, but no calls of the training process that could have submitted it.

    Holds: Calls of the runtime are named like those of CUDA, ROCm or XPU.
    Breaks: There is work of a GPU, but no call of the training process, or none whose name is known; the latter is a
        note.
    Then: Launches and syncs cannot be identified, so that idle time has no cause.
    Do: Record with `ProfilerActivity.CPU`, too.
    """
    if why := why_calls_unknown(trace):
        called = trace.census.any(lambda roles: roles.runtime)
        yield Broken(
            f"{why[:1].upper()}{why[1:]}, so launches and syncs cannot be identified.",
            severity="note" if called else None,
        )


@law("no_operators", "doubt", touches=("lines",))
def no_operators(trace: Trace) -> Iterator[Broken]:
    """GPU work and calls, but no operator.

    Holds: Operators are recorded.
    Breaks: There is work of a GPU and there are calls, but no operator; with Python stacks it is a note.
    Then: What the host does between calls is unknown or, with stacks, counts as Python; no line is named.
    Do: Record with `ProfilerActivity.CPU`; with nsys, `--pytorch=autograd-nvtx`.
    """
    if trace.device == "gpu" and not why_calls_unknown(trace) and not has_operators(trace):
        yield Broken(
            "No operators were recorded: what the host does between calls of the runtime "
            f"{'counts as Python, whatever it is' if trace.has_stacks else 'is not known'}.",
            severity="note" if trace.has_stacks else None,
        )


@law("no_host_side", "doubt", touches=("host time", "steps", "causes"))
def no_host_side(trace: Trace) -> Iterator[Broken]:
    """On a CPU, neither operators nor Python frames: there is nothing that figures could be of.

    Holds: On a CPU, operators or Python frames are recorded.
    Breaks: There are neither, and no work of a GPU.
    Do: Record with `ProfilerActivity.CPU`.
    """
    recorded = trace.census.any(lambda roles: roles.host & ~roles.annotation)
    if trace.device == "cpu" and not recorded and device_side_missing(trace) is None and not trace.cut_short:
        yield Broken(
            "Neither operators nor Python frames nor work of a GPU were recorded: what the host did is not known."
        )


@law("ascend", "note")
def ascend(trace: Trace) -> Iterator[Broken]:
    """The words are those of CUDA, although the device is another one.

    Holds: A trace is PyTorch's own, of CUDA, ROCm or XPU.
    Breaks: Ascend's profiler wrote it.
    Then: Collectives are not counted.
    Do: Nothing: read “GPU” as the NPU.
    """
    processes = set(trace.tracks["process"].to_pylist())
    if HARDWARE in processes:
        uncounted = ", and the time in which it only communicates as idle" if processes & _COLLECTIVES else ""
        yield Broken(
            "Ascend's profiler wrote this trace: what is called GPU is its NPU, and calls of CANN count as dispatch"
            f"{uncounted}."
        )


@law("unlinked_gpu", "note")
def unlinked_gpu(trace: Trace) -> Iterator[Broken]:
    """GPU work without a launch call.

    Holds: Work of the GPU has a launch call in the trace.
    Breaks: Activities have none, mostly because they were launched before the recording began or after the host's
        ended.
    Then: They count as work of the GPU; where no launch of a step is known, they belong to no step.
    Do: Warm up in the profiler's schedule, so that the recording begins between steps.
    """
    gpu = trace.census.count(lambda roles: roles.gpu)
    unlinked = gpu - len(trace.links.activities) - len(trace.impossible.before_call)
    if unlinked > 0 and trace.threads.main is not None and not trace.impossible.two_clocks:
        sentence = (
            f"{count(unlinked)} of {count(gpu)} GPU activities {'has' if unlinked == 1 else 'have'} no launch call"
        )
        if unlinked == gpu:
            sentence = f"All {count(gpu)} GPU activities lack" if gpu > 1 else "The only GPU activity lacks"
            sentence += " a launch call"
        yield Broken(f"{sentence} {_submitted(trace)}.", unlinked)


@law("backlog", "note")
def backlog(trace: Trace) -> Iterator[Broken]:
    """The GPU still works on earlier launches when the first step is issued.

    Holds: The first step finds an idle GPU.
    Breaks: When it is issued, the GPU still works on what was launched before.
    Then: That time belongs to no step.
    Do: Nothing: it is counted out.
    """
    steps = trace.steps
    late = int(steps.begin[0] - steps.issued[0]) if steps.annotated and len(steps) else 0
    if late and trace.device == "gpu" and not why_calls_unknown(trace):
        yield Broken(
            f"When the first step is issued, the GPU is busy with earlier launches for another {duration(late)}: that "
            "time belongs to no step."
        )


@law("several_devices", "note")
def several_devices(trace: Trace) -> Iterator[Broken]:
    """The work of several devices counts as that of one.

    Holds: A process uses one device.
    Breaks: Work of several devices is in the trace.
    Then: The GPU counts as busy while any of them is: time in which only one works is not idle.
    Do: Train with one process for each device.
    """
    devices = len(trace.processes_with(lambda roles: roles.gpu))
    if devices > 1 and trace.threads.main is not None:
        yield Broken(
            f"The trace holds the work of {devices} devices: the GPU counts as busy while any of them is.", devices
        )


def why_calls_unknown(trace: Trace) -> str | None:
    """Why launches and syncs cannot be identified in a trace that shows GPU work; None if they can."""
    census, process = trace.census, trace.threads.process
    if not census.any(lambda roles: roles.gpu):
        return None
    if not (census.roles.runtime & process[census.track]).any():
        return "the trace holds GPU activity, but no runtime call of the training process"
    if not census.any(lambda roles: roles.launch | roles.sync_by_name | roles.alloc):
        return "the runtime calls in this trace are not named like those of CUDA or ROCm"
    return None


def has_operators(trace: Trace) -> bool:
    """Whether operators were recorded, which tell dispatch from Python."""
    return trace.census.any(lambda roles: roles.operator)


def _submitted(trace: Trace) -> str:
    """Where there is no call, and which activities were launched before or after the host was recorded, judged by the
    ascending ids of calls."""
    first_id, last_id, ids = _NO_ID, -_NO_ID, [NO_INTS]
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
