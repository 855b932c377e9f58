"""Does the GPU idle because device memory is allocated and freed in every step?"""

from collections.abc import Iterator

import numpy as np

from tracekit.findings import Finding, evidence, rule
from tracekit.findings.culprits import by_name
from tracekit.findings.holes import is_hole
from tracekit.findings.where import where_of_event
from tracekit.profile import Profile
from tracekit.trace.roles import bare
from tracekit.units import duration, times

_OFTEN = 0.5  # of the steps; calls in fewer steps only fill the allocator's cache
_LINK = "https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf"


@rule("allocator")
def allocator(profile: Profile) -> Iterator[Finding]:
    """`allocator`: calls that allocate or free device memory in most steps, where a cache should serve it."""
    pieces = profile.attribution.pieces
    chosen = pieces.of("alloc") & ~is_hole(pieces) & profile.counted[pieces.step]
    steps = profile.counted_steps
    if steps < 2 or len(np.unique(pieces.step[chosen])) < _OFTEN * steps:
        return
    culprits = [each for each in by_name(profile, chosen) if len(each.rows)]
    if not culprits:
        return
    calls = sum(len(each.rows) for each in culprits) / steps
    location = where_of_event(profile, int(culprits[0].rows[0]))
    yield Finding(
        "allocator",
        f"Device memory is allocated inside steps: {bare(culprits[0].name)}{location.at}",
        why=f"It is allocated or freed {times(round(calls, 1))} a step, and the GPU idles for "
        f"{duration(sum(each.step_ns for each in culprits))} a step meanwhile.",
        do="Let PyTorch's allocator reuse memory: no torch.cuda.empty_cache() in the loop, and batches of one size. "
        "Where sizes vary, set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; where memory is full, lower the peak.",
        where=location,
        evidence=evidence(profile, culprits[0].rows),
        link=_LINK,
        claim=pieces.union(chosen),
    )
