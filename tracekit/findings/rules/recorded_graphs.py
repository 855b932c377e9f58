"""Are CUDA graphs recorded or prepared anew in each step, where they should only be replayed?"""

import re
from collections.abc import Iterator

import numpy as np

from tracekit.base.intervals import NO_TIME, Ints, Union, distinct
from tracekit.base.units import duration, many, times
from tracekit.engine.buckets import ON_THE_GPU
from tracekit.findings import Finding, evidence, rule
from tracekit.findings.culprits import where_of_event
from tracekit.findings.holes import OFTEN
from tracekit.findings.kernels import time_of
from tracekit.profile import Profile
from tracekit.profile.once import once
from tracekit.trace.facts.coverage import graph_recordings
from tracekit.trace.rows import enclosing
from tracekit.vocabulary.event_names import PREPARATION

_COMPILED_CALL = re.compile(r"Torch-Compiled Region.*|CompiledFunction.*", re.DOTALL)  # the latter within the former
_PREPARES = re.compile(re.escape(PREPARATION))
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


@rule("prepared_graphs", timed=True)
def prepared_graphs(profile: Profile) -> Iterator[Finding]:
    """`graphs_prepared`: the GPU's idle time around what compiled calls launch that only prepare a CUDA graph."""
    preparing, calls = _preparing(profile)
    replays = _counted_calls(profile)[1]
    pieces, steps = profile.attribution.pieces, profile.counted_steps
    claim = preparing.common(pieces.union(~pieces.of(*ON_THE_GPU, "gpu_gap")))
    if not claim.total():
        return
    idle_ns = claim.common(pieces.union(profile.counted[pieces.step])).total() / steps
    yield Finding(
        "graphs_prepared",
        f"Sizes are new: {many(len(calls), 'CUDA graph')} prepared in {many(steps, 'step')}, "
        f"{many(replays, 'replay') if replays else 'none replayed'}",
        why="The first call with a size only prepares its graph: it waits for the GPU, and launches each kernel in the "
        "graphs' own memory; the next call with that size records the graph, and only later ones replay it. Before and "
        f"after what these calls launch, the GPU idles for {duration(idle_ns)} a step.",
        do="Pad batches to a few sizes, so that graphs are replayed; or use no CUDA graphs where sizes vary: another "
        "mode, or torch._inductor.config.triton.cudagraph_skip_dynamic_graphs = True. This saves at most {saving} a "
        "step.",
        where=where_of_event(profile, int(calls[0])),
        evidence=evidence(profile, calls),
        link=_LINK,
        claim=claim,
    )


@once
def are_prepared(profile: Profile) -> bool:
    """Whether most steps prepare graphs of new sizes, and replay few."""
    return bool(len(_preparing(profile)[1]))


@once
def _preparing(profile: Profile) -> tuple[Union, Ints]:
    """When compiled calls prepare a graph and launch nothing, and these calls in counted steps; none where few steps
    prepare any, or graphs are replayed."""
    trace = profile.trace
    prepared = trace.where(lambda part: part.roles.host & part.roles.named(_PREPARES))
    prepared = prepared[profile.begins_in_counted(prepared)]
    step_of_each = trace.steps.of(trace.ts_ns[prepared])
    replays = _counted_calls(profile)[1]
    if not len(prepared) or len(distinct(step_of_each)) < OFTEN * profile.counted_steps or replays > len(prepared):
        return NO_TIME, np.zeros(0, np.int64)
    calls = enclosing(trace, prepared, lambda part: part.process & part.roles.host & part.roles.named(_COMPILED_CALL))
    launches = trace.where(lambda part: part.process & part.roles.launch)
    launches_ns = trace.ts_ns[launches]
    quiet = NO_TIME
    for call in distinct(calls[calls >= 0]).tolist():
        begins_ns = trace.ts_ns[prepared[calls == call][0]]
        ends_ns = trace.events_at(np.array([call])).end_ns[0]
        own = launches[slice(*np.searchsorted(launches_ns, (begins_ns, ends_ns)))]
        own = own[trace.track[own] == trace.track[call]]
        first_ns = trace.ts_ns[own].min(initial=ends_ns)
        last_ns = trace.events_at(own).end_ns.max(initial=begins_ns)
        quiet = quiet.plus(Union.of(np.array([begins_ns, last_ns]), np.array([first_ns, ends_ns])))
    return quiet, distinct(calls[calls >= 0])


def time_of_making_graphs(profile: Profile) -> Union:
    """When graphs are recorded, or prepared for sizes that are new, in most steps; other rules do not explain it."""
    return time_of_recording(profile).plus(_preparing(profile)[0])


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
