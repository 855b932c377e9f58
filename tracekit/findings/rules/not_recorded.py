"""Does the trace show everything, or is one side of the work missing, or nodes of the CUDA graphs it replays?"""

from collections.abc import Iterator

import numpy as np

from tracekit.findings import Finding, Where, evidence, rule
from tracekit.findings.queue_waits import graph_holes
from tracekit.intervals import Union
from tracekit.profile import Profile
from tracekit.profile.unrecorded import device_side_missing
from tracekit.trace import Trace
from tracekit.trace.roles import bare
from tracekit.units import count, duration

_CUDA_GRAPHS_PAGE = "https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs"


@rule("graph_nodes")
def graph_nodes(profile: Profile) -> Iterator[Finding]:
    """`graph_nodes_missing`, which is not one of `VERDICTS`: the GPU seems to idle equally long in each replay."""
    trace = profile.trace
    holes = graph_holes(profile)
    if not len(holes.calls):
        return
    yield Finding(
        "graph_nodes_missing",
        f"The trace lacks nodes of CUDA graphs, as {count(len(holes.calls))} replays show",
        why="The GPU seems to idle for "
        f"{duration(float(np.median(holes.ends - holes.starts)))} before the first recorded node of each.",
        claim=Union.of(holes.starts, holes.ends),
        where=Where(function=bare(trace.names[trace.name_codes[holes.calls[0]]])),
        evidence=evidence(profile, holes.calls),
        do="Do not trust idle time in these replays. Start the profiler before the graphs are captured, or warm it "
        "up for a few more steps.",
        link=_CUDA_GRAPHS_PAGE,
        confidence="inferred",
    )


_PROFILER_PAGE = "https://docs.pytorch.org/docs/stable/profiler.html#torch.profiler.profile"


@rule("not_recorded")
def not_recorded(profile: Profile) -> Iterator[Finding]:
    """`empty`, `host_side_missing` or `gpu_side_missing`: they have no cost, and cast doubt on everything else."""
    trace = profile.trace
    if not trace.census.any(lambda roles: roles.host | roles.gpu) or not len(trace.steps):
        yield Finding(
            "empty",
            "The trace is empty: no event has a duration",
            do="Check that the profiler was recording while the steps ran: its schedule may still have been waiting.",
            link=_PROFILER_PAGE,
        )
    elif trace.device == "gpu" and not _submits(trace):
        calls = "no call" if trace.threads.main is None else "no call of the training process"
        processes = _of_other_processes(trace)
        submitted_by = f" Process {', '.join(processes)} launched it." if processes else ""
        yield Finding(
            "host_side_missing",
            f"The host side is missing: {'another process' if processes else 'nothing says who'} submitted GPU work",
            why=f"The trace holds GPU work, but {calls} that submitted it.{submitted_by}",
            do="Record the training process with ProfilerActivity.CPU, too, and write the traces of different "
            "processes to different files: without the calls of that process it cannot be known why the GPU idles.",
            evidence=evidence(profile, trace.where(lambda part: part.roles.gpu)),
            link=_PROFILER_PAGE,
        )
    elif (submitted := device_side_missing(trace)) is not None:
        yield Finding(
            "gpu_side_missing",
            "The GPU side is missing: the device was not recorded",
            why=f"{submitted.description}, but the trace shows nothing of what came of it.",
            do="Record with ProfilerActivity.CUDA (or the activity of your device), and let the profiler warm up "
            "for a step. Until then it cannot be known what the device did, or whether it idled.",
            where=Where(function=submitted.function, operator=submitted.operator),
            evidence=evidence(profile, trace.where(lambda part: submitted.ask(part.roles))),
            link=_PROFILER_PAGE,
        )


def _of_other_processes(trace: Trace) -> list[str]:
    """The ids of the processes that do not train and whose calls have the correlation ids of GPU work."""
    work = trace.correlation[trace.where(lambda part: part.roles.gpu & (part.correlation != 0))]
    calls = trace.where(lambda part: part.roles.runtime & ~part.process & np.isin(part.correlation, work))
    return [str(trace.tracks["pid"][track]) for track in np.unique(trace.track[calls]).tolist()]


def _submits(trace: Trace) -> bool:
    """Whether the process that trains makes any runtime call."""
    census = trace.census
    return bool((census.roles.runtime & trace.threads.process[census.track]).any())
