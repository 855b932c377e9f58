"""Are CUDA graphs recorded anew in each step, where they should only be replayed?"""

import re
from collections.abc import Iterator

from tracekit.base.intervals import NO_TIME, Ints, Union
from tracekit.base.units import duration, many, times
from tracekit.engine.buckets import ON_THE_GPU
from tracekit.findings import Finding, evidence, rule
from tracekit.findings.culprits import where_of_event
from tracekit.findings.holes import OFTEN
from tracekit.findings.kernels import time_of
from tracekit.profile import Profile
from tracekit.profile.once import once
from tracekit.trace.facts.coverage import graph_recordings

_INSTANTIATES = re.compile(r"(?:cuda|hip|cu)GraphInstantiate.*")
_MAX_REPLAYS = 2  # of a recorded graph: recording one that is replayed more often may pay
_LINK = "https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html"


@rule("recorded_graphs", timed=True)
def recorded_graphs(profile: Profile) -> Iterator[Finding]:
    """`graphs_recorded`: the GPU's idle time while graphs are recorded and instantiated in most steps."""
    pieces = profile.attribution.pieces
    recording = time_of_recording(profile)
    claim = recording.common(pieces.union(~pieces.of(*ON_THE_GPU, "gpu_gap")))
    if not claim.total():
        return
    steps = profile.counted_steps
    begins, replays = _counted_calls(profile)
    replayed = "none replayed twice" if replays <= len(begins) else f"each replayed at most {times(_MAX_REPLAYS)}"
    yield Finding(
        "graphs_recorded",
        f"{many(len(begins), 'CUDA graph')} recorded in {many(steps, 'step')}, {replayed}",
        why="From the begin of its recording until it is instantiated, a graph runs nothing, and the GPU idles for "
        f"{duration(claim.common(pieces.union(profile.counted[pieces.step])).total() / steps)} a step.",
        do="Pad batches to a few sizes, so that graphs that are recorded once are replayed, or use no CUDA graphs "
        "where sizes vary. This saves at most {saving} a step.",
        where=where_of_event(profile, int(begins[0])),
        evidence=evidence(profile, begins),
        link=_LINK,
        claim=claim,
    )


@once
def time_of_recording(profile: Profile) -> Union:
    """When graphs are recorded or instantiated; no time where most steps record none, or replay each often."""
    trace = profile.trace
    recorded, replays = _counted_calls(profile)
    if not len(recorded) or len(recorded) < OFTEN * profile.counted_steps or replays > _MAX_REPLAYS * len(recorded):
        return NO_TIME
    begins, ends = graph_recordings(trace)
    recorded_time = Union.of(trace.ts_ns[begins], trace.events_at(ends).end_ns)
    calls = trace.where(lambda part: part.process & part.roles.named(_INSTANTIATES, runtime=True))
    return recorded_time.plus(time_of(profile, calls))


def _counted_calls(profile: Profile) -> tuple[Ints, int]:
    """The calls of counted steps that begin the recording of a graph, and how many calls replay one."""
    begins = graph_recordings(profile.trace)[0]
    replays = profile.trace.where(lambda part: part.process & part.roles.graph_launch)
    return begins[profile.begins_in_counted(begins)], int(profile.begins_in_counted(replays).sum())
