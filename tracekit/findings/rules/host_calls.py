"""Does the host do in each step what it need not: copy to the GPU from pageable memory, which holds it up, allocate and
free device memory, record or prepare CUDA graphs that are never replayed?
"""

import re
from collections.abc import Iterator

import numpy as np

from tracekit.base.intervals import NO_TIME, Bools, Ints, Rows, Union, distinct
from tracekit.base.pages import Cure
from tracekit.base.units import duration, many, size, times
from tracekit.engine.buckets import ON_THE_GPU
from tracekit.findings import Finding, FindingPage, evidence, rule
from tracekit.findings.compiler_advice import graph_replays, graphs_prepared
from tracekit.findings.culprits import by_name, operators_around, time_blamed_on, where_of_event
from tracekit.findings.holes import LEAST_NS, OFTEN, is_hole
from tracekit.findings.kernels import time_of
from tracekit.findings.page import PAD_BATCHES
from tracekit.profile import Profile
from tracekit.profile.cached import once
from tracekit.trace import Trace
from tracekit.trace.facts.coverage import graph_recordings
from tracekit.trace.roles import bare
from tracekit.trace.schema import values

_PAGEABLE = re.compile(r"Memcpy HtoD \(Pageable -> .*", re.DOTALL)
# What copies from pinned memory achieve, bytes per ns, by compute capability: PCI Express 5.0, 4.0, 3.0 with 16 lanes.
_BUS = ((9, 50.0), (8, 25.0), (0, 12.0))
_USUAL_BUS = 25.0
_TOO_FEW_CALLS = 3  # calls: of fewer, none is unusual
_UNUSUAL = 5.0  # times the median
_MIN_SHARE_OF_CALLS = 0.3  # of the time of all calls
_PINNING_LINK = "https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html"
_MIN_SHARE_OF_STEPS = 0.5  # of the steps; calls in fewer steps only fill the allocator's cache
_ALLOCATOR_LINK = (
    "https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf"
)
_INSTANTIATES = re.compile(r"(?:cuda|hip|cu)GraphInstantiate.*")
_MAX_REPLAYS = 2  # of a recorded graph: recording one that is replayed more often may pay
_TREES = "https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html"


def _pageable(trace: Trace) -> tuple[Ints, Ints]:
    """The copies from pageable memory, and their calls."""
    parts = [np.zeros((2, 0), np.int64)]
    for activities, launches in trace.links.some():
        is_pageable = trace.events_at(activities).roles.named(_PAGEABLE)
        parts.append(np.stack((activities[is_pageable], launches[is_pageable])).astype(np.int64))
    copies, calls = np.concatenate(parts, axis=1)
    return copies, calls


_PAGEABLE_PAGE = FindingPage(
    "h2d_pageable_copy",
    "Copies to the GPU from pageable memory",
    says="""Data is copied to the GPU from memory that the operating system may move (the trace calls it `Pageable`),
        and while that is submitted and runs, the GPU computes nothing.""",
    slow="""The driver first copies such data piece by piece into a buffer of its own, and the call returns only when
        that is done. So the host is held up, `non_blocking=True` has no effect, and the copy reaches less than the
        speed of the bus.""",
    cost="""It claims the time of these copies and their calls in which no kernel runs, without what the same bytes
        take from pinned memory at the speed of the bus: 50, 25 or 12 GB/s by the GPU's compute capability (PCI Express
        5.0, 4.0, 3.0 with 16 lanes), and 25 GB/s where it is not known.""",
    limits="""The bus is assumed to have 16 lanes and no other traffic: on a narrower one, pinning saves less. Copies
        that run beside kernels cost nothing, and are not listed.""",
    cures=(
        Cure(
            """Pin the memory (`DataLoader(pin_memory=True)`, `tensor.pin_memory()`), and copy with
            `non_blocking=True`. Pinned memory cannot be swapped out, and must not be written to before the copy is
            done.""",
            "memory",
        ),
        Cure("Keep on the GPU what every step needs: the graph, features, masks.", "memory"),
        Cure("Create data on the GPU (`device=…`). Random numbers drawn there are other ones.", "results"),
    ),
    links=(_PINNING_LINK,),
)


@rule(
    "pageable_copies",
    timed=True,
    own_time=lambda profile: time_blamed_on(profile, _pageable(profile.trace)[1]),
    pages=(_PAGEABLE_PAGE,),
)
def pageable_copies(profile: Profile) -> Iterator[Finding]:
    """`h2d_pageable_copy`: the time in which the GPU only copies, or waits for such a copy to be submitted."""
    trace, pieces = profile.trace, profile.attribution.pieces
    if not trace.census.any(lambda roles: roles.gpu & roles.named(_PAGEABLE)):
        return
    copies, calls = _pageable(trace)
    is_counted = profile.begins_in_counted(calls)
    if not is_counted.any():
        return
    counted_calls = calls[is_counted]
    sizes = values(trace.events["bytes"])[copies]
    lasts, moved = trace.dur_ns[counted_calls], sizes[is_counted]
    longest = int(np.argmax(lasts))
    row = int(counted_calls[longest])
    culprit = where_of_event(profile, row, next(iter(operators_around(profile, row)), None))
    # The longest is told where it makes much of the mean although copies of its size usually take far less.
    alike, outlier = lasts[moved == moved[longest]], ""
    usual = float(np.median(alike))
    if len(alike) >= _TOO_FEW_CALLS and lasts[longest] >= max(_UNUSUAL * usual, _MIN_SHARE_OF_CALLS * lasts.sum()):
        usually = f"where a copy of that size usually takes {duration(usual)}"
        outlier = f" on average; the longest takes {duration(lasts[longest])}, {usually}"
    # From pinned memory, the copies take time, too: as fast as the bus is.
    newest = max(trace.compute_majors, default=0)
    rate = next((rate for major, rate in _BUS if newest >= major), _USUAL_BUS) if newest else _USUAL_BUS
    events = trace.events_at(copies)
    pinned = Union.of(np.maximum(events.ts_ns, events.end_ns - (sizes / rate).astype(np.int64)), events.end_ns)
    steps = profile.counted_steps
    working = pieces.union(pieces.of("gpu_compute", "gpu_comm", "gpu_gap"))
    yield Finding(
        "h2d_pageable_copy",
        f"Host-to-device copies from pageable memory{culprit.at}",
        why=f"Data is copied {times(round(len(counted_calls) / steps, 1))} a step ({size(moved.sum() / steps)}); the "
        f"calls hold up the host for {duration(lasts.sum() / steps)} a step{outlier}.",
        do="Pin the host's memory (DataLoader(pin_memory=True), or tensor.pin_memory()) and copy with "
        "non_blocking=True, so that copies run beside the kernels; or create the data on the GPU.",
        where=culprit,
        evidence=evidence(profile, counted_calls),
        link=_PINNING_LINK,
        claim=time_of(profile, np.concatenate((copies, calls))).minus(pinned).minus(working),
    )


def _recurring(profile: Profile) -> Bools:
    """The pieces of counted steps in which memory is allocated or freed; long ones count only if most steps have one,
    as do the others."""
    pieces = profile.attribution.pieces
    allocating = pieces.of("alloc") & profile.counted[pieces.step]
    long = is_hole(pieces)
    recurring = np.zeros(len(long), bool)
    for kind in (allocating & long, allocating & ~long):
        if _recurs(profile, pieces.step[kind]):
            recurring |= kind
    return recurring


def _recurs(profile: Profile, steps: Ints | Rows) -> bool:
    """Whether that happens in most steps, and in more than one."""
    return len(distinct(steps)) >= max(2, _MIN_SHARE_OF_STEPS * profile.counted_steps)


_ALLOCATOR_PAGE = FindingPage(
    "allocator",
    "Device memory is allocated inside steps",
    says="""In at least half of the steps, and in more than one, calls allocate or free memory of the device
        (`cudaMalloc`, `cudaFree`, …) while the GPU idles. PyTorch's caching allocator should need none after the first
        steps.""",
    slow="""Such a call is slow, and freeing waits until the GPU has done everything that was queued. The cache misses
        where sizes vary from step to step, as with sampled or batched graphs; where memory is nearly full, so that
        cached blocks are given back; and where `torch.cuda.empty_cache()` is called in the loop.""",
    cost="""It claims the GPU's idle time in the bucket `alloc`, of calls that recur; long calls, of a millisecond or
        more, count only if most steps have one.""",
    limits="""That a size was new, or memory full, is not in the trace: the finding names the call and its line, not
        the reason. Calls in fewer steps only fill the cache, and are not listed.""",
    cures=(
        Cure("Take `torch.cuda.empty_cache()` out of the loop.", "memory"),
        Cure("Set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` where sizes vary.", "memory"),
        PAD_BATCHES,
        Cure("Lower the peak: smaller batches, checkpointing, half precision.", "results"),
    ),
    links=(_ALLOCATOR_LINK,),
)


@rule(
    "allocator",
    own_time=lambda profile: time_blamed_on(profile, profile.attribution.pieces.event[_recurring(profile)]),
    pages=(_ALLOCATOR_PAGE,),
)
def allocator(profile: Profile) -> Iterator[Finding]:
    """`allocator`: calls that allocate or free device memory in most steps, where a cache should serve it."""
    pieces = profile.attribution.pieces
    recurring = _recurring(profile)
    steps = profile.counted_steps
    culprits = by_name(profile, recurring)
    if not culprits:
        return
    # When the host is in such calls, also where the GPU is busy or a sync is to blame for its idle time.
    trace = profile.trace
    rows = trace.where(lambda part: part.roles.alloc & part.process & part.lasting)
    step, long = trace.steps.of(trace.ts_ns[rows]), trace.dur_ns[rows] >= LEAST_NS
    counted = profile.in_counted(step)
    in_calls = [rows[kind] for kind in (long, ~long) if _recurs(profile, step[kind & counted])]
    calls = sum(len(culprit.rows) for culprit in culprits) / steps
    location = where_of_event(profile, int(culprits[0].rows[0]))
    yield Finding(
        "allocator",
        f"Device memory is allocated inside steps: {bare(culprits[0].name)}{location.at}",
        why=f"It is allocated or freed {times(round(calls, 1))} a step, and the GPU idles for "
        f"{duration(sum(culprit.step_ns for culprit in culprits))} a step meanwhile.",
        do="Let PyTorch's allocator reuse memory: no torch.cuda.empty_cache() in the loop, and batches of one size. "
        "Where sizes vary, set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; where memory is full, lower the peak.",
        where=location,
        evidence=evidence(profile, culprits[0].rows),
        link=_ALLOCATOR_LINK,
        claim=pieces.union(recurring),
        host=time_of(profile, np.concatenate((rows[:0], *in_calls))),
    )


@once
def _time_of_recording(profile: Profile) -> Union:
    """When graphs are recorded or instantiated; no time where most steps record none, or replay each often."""
    trace, (begins, ends) = profile.trace, graph_recordings(profile.trace)
    recorded = int(profile.begins_in_counted(begins).sum())
    if not recorded or recorded < OFTEN * profile.counted_steps or graph_replays(profile) > _MAX_REPLAYS * recorded:
        return NO_TIME
    recorded_time = Union.of(trace.ts_ns[begins], trace.events_at(ends).end_ns)
    calls = trace.where(lambda part: part.process & part.roles.named(_INSTANTIATES, runtime=True))
    return recorded_time.plus(time_of(profile, calls))


def _idle_in(profile: Profile, time: Union) -> tuple[Union, str]:
    """The part of that time in which the GPU idles, and how much of it a step has, in words."""
    pieces = profile.attribution.pieces
    idle = time.common(pieces.union(~pieces.of(*ON_THE_GPU, "gpu_gap")))
    counted = idle.common(pieces.union(profile.counted[pieces.step]))
    return idle, duration(counted.total() / profile.counted_steps)


_RECORDED_PAGE = FindingPage(
    "graphs_recorded",
    "CUDA graphs are recorded again and again",
    says="In at least half of the steps, a CUDA graph is recorded, and on average each is replayed at most twice.",
    slow="""While a graph is recorded and instantiated, it runs nothing. That pays only if it is replayed many times.
        With `mode="reduce-overhead"`, each new set of input sizes needs a graph of its own: sampled subgraphs hardly
        ever have the same size twice.""",
    cost="It claims the GPU's idle time from the beginning of each recording until the graph is instantiated.",
    limits="""Graphs that are replayed only after the trace ends look as if they never were: record more steps if sizes
        seldom come back.""",
    cures=(
        PAD_BATCHES,
        Cure('Do without CUDA graphs where sizes vary (`mode="default"`, perhaps with `dynamic=True`).', "rounding"),
    ),
    links=(_TREES,),
)


@rule("recorded_graphs", timed=True, own_time=_time_of_recording, pages=(_RECORDED_PAGE,))
def recorded_graphs(profile: Profile) -> Iterator[Finding]:
    """`graphs_recorded`: the GPU's idle time while graphs are recorded and instantiated in most steps."""
    claim, idle = _idle_in(profile, _time_of_recording(profile))
    if not claim.total():
        return
    begins = graph_recordings(profile.trace)[0]
    begins = begins[profile.begins_in_counted(begins)]
    replayed = (
        "none replayed twice"
        if graph_replays(profile) <= len(begins)
        else f"each replayed at most {times(_MAX_REPLAYS)}"
    )
    yield Finding(
        "graphs_recorded",
        f"{many(len(begins), 'CUDA graph')} recorded in {many(profile.counted_steps, 'step')}, {replayed}",
        why="From when its recording begins until it is instantiated, a graph runs nothing, and the GPU idles for "
        f"{idle} a step.",
        do="Pad batches to a few sizes, so that graphs that are recorded once are replayed, or use no CUDA graphs "
        "where sizes vary. This saves at most {saving} a step.",
        where=where_of_event(profile, int(begins[0])),
        evidence=evidence(profile, begins),
        link=_TREES,
        claim=claim,
    )


_PREPARED_PAGE = FindingPage(
    "graphs_prepared",
    "CUDA graphs are prepared, and not replayed",
    says="""In at least half of the steps, compiled code prepares a CUDA graph, and there are no more replays than
        that. Inductor runs each new set of sizes once without a graph, records it the second time, and replays it from
        then on.""",
    slow="""The preparing run waits for the GPU, and launches each kernel by itself, into memory set aside for graphs:
        it is slower than code that was compiled without CUDA graphs.""",
    cost="It claims the GPU's idle time in these calls, before and after what they launch.",
    limits="""A short recording may end before sizes come back; replays that would follow are not seen. What launching
        itself is slowed by is not counted: of two pairs of captures on an H100, one saved 0.8 of what this finding
        says, the other 1.2.""",
    cures=(
        PAD_BATCHES,
        Cure(
            """Use no CUDA graphs where sizes vary: `mode="default"`, or
            `torch._inductor.config.triton.cudagraph_skip_dynamic_graphs = True`.""",
            "memory",
        ),
    ),
    links=(_TREES,),
)


@rule("prepared_graphs", timed=True, own_time=lambda profile: graphs_prepared(profile)[0], pages=(_PREPARED_PAGE,))
def prepared_graphs(profile: Profile) -> Iterator[Finding]:
    """`graphs_prepared`: the GPU's idle time around what compiled calls launch that only prepare a CUDA graph."""
    preparing, calls = graphs_prepared(profile)
    claim, idle = _idle_in(profile, preparing)
    if not claim.total():
        return
    replays = graph_replays(profile)
    yield Finding(
        "graphs_prepared",
        f"{many(len(calls), 'CUDA graph')} prepared in {many(profile.counted_steps, 'step')}, "
        f"{many(replays, 'replay') if replays else 'none replayed'}",
        why="The first call of compiled code, and the first with each new size, only prepares a graph: it waits for "
        "the GPU, and launches each kernel in memory set aside for graphs. The next call with that size records the "
        "graph, and only later ones replay it. Before and after what the preparing calls launch, the GPU idles for "
        f"{idle} a step.",
        do="Pad batches to a few sizes, so that graphs are replayed; or use no CUDA graphs where sizes vary "
        '(mode="default", or torch._inductor.config.triton.cudagraph_skip_dynamic_graphs = True). This saves '
        "{saving} a step, and more if launching into the memory of graphs is slower than without them.",
        where=where_of_event(profile, int(calls[0])),
        evidence=evidence(profile, calls),
        link=_TREES,
        claim=claim,
    )
