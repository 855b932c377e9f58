"""Does the trace show everything, or is one side of the work missing?"""

from collections.abc import Iterator

import numpy as np

from tracekit.base.intervals import distinct
from tracekit.base.pages import Cure
from tracekit.findings import Finding, FindingPage, Where, evidence, rule
from tracekit.profile import Profile
from tracekit.trace.facts.coverage import device_side_missing

_PROFILER_PAGE = "https://docs.pytorch.org/docs/stable/profiler.html#torch.profiler.profile"


_NO_COST = "It has no cost: it casts doubt on everything else, and is listed first."
_NOT_SLOW = "Nothing is said to be slow: the recording cannot answer that."
_EMPTY_PAGE = FindingPage(
    "empty",
    "The trace is empty",
    says="No event of the host or the GPU has a duration, or there is no step to speak of.",
    slow=_NOT_SLOW,
    cost=_NO_COST,
    limits="A file that was cut before its first event looks the same; the report then says that it was cut.",
    cures=(
        Cure(
            "Check that the profiler was recording while steps ran: call `prof.step()` often enough for its schedule.",
            "changes nothing",
        ),
    ),
    links=(_PROFILER_PAGE,),
    replayed=False,
)
_HOST_SIDE_PAGE = FindingPage(
    "host_side_missing",
    "The host side is missing",
    says="""The trace holds work of the GPU, but no call of the training process that submitted it. If another process
        of the file launched it, the finding names that.""",
    slow=f"{_NOT_SLOW} Why the GPU idles cannot be known without the calls of the host.",
    cost=_NO_COST,
    limits="What the GPU did is still right: kernels and copies are listed.",
    cures=(
        Cure("Record with `ProfilerActivity.CPU`, too.", "changes nothing"),
        Cure("Write the traces of different processes to different files.", "changes nothing"),
    ),
    links=(_PROFILER_PAGE,),
    replayed=False,
)
_GPU_SIDE_PAGE = FindingPage(
    "gpu_side_missing",
    "The GPU side is missing",
    says="""Work was submitted to a GPU or another accelerator, and none of it is in the trace. It is concluded from
        launches, from operators that only an accelerator has, or from reads of values that take as long as a wait for
        a device.""",
    slow=f"{_NOT_SLOW} The wall time of steps is withheld: what looks idle may have been busy.",
    cost=_NO_COST,
    limits="""What the host did is still right, but operators then only submit work, however long they take. On a CPU,
        a slow read of a value for another reason could be mistaken for a wait: it must take 0.2 ms on average, and 2 %
        of the recording.""",
    cures=(
        Cure(
            "Record with `ProfilerActivity.CUDA` (or that of your device), and let the profiler warm up for a step.",
            "changes nothing",
        ),
        Cure("Get the whole file, if it was cut.", "changes nothing"),
    ),
    links=(_PROFILER_PAGE,),
    replayed=False,
)


@rule("not_recorded", pages=(_EMPTY_PAGE, _HOST_SIDE_PAGE, _GPU_SIDE_PAGE))
def not_recorded(profile: Profile) -> Iterator[Finding]:
    """`empty`, `host_side_missing` or `gpu_side_missing`: they have no cost, and cast doubt on everything else."""
    trace, census = profile.trace, profile.trace.census
    if not census.any(lambda roles: roles.host | roles.gpu) or not len(trace.steps):
        yield Finding(
            "empty",
            "The trace is empty: no event has a duration",
            do="Check that the profiler was recording while the steps ran: its schedule may still have been waiting.",
            link=_PROFILER_PAGE,
        )
    elif trace.device == "gpu" and not (census.roles.runtime & trace.threads.process[census.track]).any():
        calls = "no call" if trace.threads.main is None else "no call of the training process"
        # The processes that do not train and whose calls have the correlation ids of GPU work.
        work = trace.correlation[trace.where(lambda part: part.roles.gpu & (part.correlation != 0))]
        foreign = trace.where(lambda part: part.roles.runtime & ~part.process & np.isin(part.correlation, work))
        processes = [str(trace.tracks["pid"][track]) for track in distinct(trace.track[foreign]).tolist()]
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
            f"The GPU side is missing: {'the file was cut' if trace.cut_short else 'the device was not recorded'}",
            why=f"{submitted.description}, but the trace shows nothing of what came of it.",
            do="Get the whole file. Until then it cannot be known what the device did, or whether it idled."
            if trace.cut_short
            else "Record with ProfilerActivity.CUDA (or the activity of your device), and let the profiler warm up "
            "for a step. Until then it cannot be known what the device did, or whether it idled.",
            where=Where(function=submitted.function, operator=submitted.operator),
            evidence=evidence(profile, submitted.rows),
            link=_PROFILER_PAGE,
        )
