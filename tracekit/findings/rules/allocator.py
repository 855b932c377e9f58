"""Does the GPU idle because device memory is allocated and freed in every step?"""

from collections.abc import Iterator

import numpy as np

from tracekit.findings import Finding, evidence, rule
from tracekit.findings.counted import counted_steps
from tracekit.findings.culprits import by_name, where
from tracekit.findings.holes import is_hole
from tracekit.profile import Profile
from tracekit.trace.roles import bare
from tracekit.units import count, duration

_OFTEN = 0.5  # of the steps; what comes less often fills the allocator's cache, once
_LINK = "https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf"


@rule("allocator")
def allocator(profile: Profile) -> Iterator[Finding]:
    """`allocator`: calls that allocate or free device memory in most steps, where a cache should hold it."""
    pieces = profile.cost.pieces
    chosen = pieces.of("alloc") & ~is_hole(pieces) & profile.counted[pieces.step]
    steps = counted_steps(profile)
    if steps < 2 or len(np.unique(pieces.step[chosen])) < _OFTEN * steps:
        return
    culprits = [each for each in by_name(profile, chosen) if len(each.rows)]
    if not culprits:
        return
    calls = sum(len(each.rows) for each in culprits) / steps
    yield Finding(
        "allocator",
        f"{count(round(calls, 1))} calls a step allocate or free device memory, most of all {bare(culprits[0].name)}: "
        f"the GPU idles {duration(sum(each.step_ns for each in culprits))} meanwhile",
        advice="Let PyTorch's cache keep its memory: no torch.cuda.empty_cache() in the loop, a batch of one size, "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True where sizes vary, and a smaller peak where it is full.",
        where=where(profile, int(culprits[0].rows[0])),
        evidence=evidence(profile, culprits[0].rows),
        link=_LINK,
        claim=pieces.union(chosen),
    )
