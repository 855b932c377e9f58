"""Do long-running kernels leave most of the GPU empty?"""

from collections.abc import Iterator

import numpy as np

from tracekit.findings import Finding, rule
from tracekit.findings.compiler_advice import is_compiled
from tracekit.findings.kernels import alike, blaming, classes, share_of_work
from tracekit.profile import Profile
from tracekit.units import count, percent

_LEAST_NS = 10_000  # a shorter one is a tiny kernel, however full the GPU is
_LOW = 0.15  # of the warps that the GPU can hold
_FEW = 0.5  # blocks for each multiprocessor: half of the GPU has nothing to do
# These keep the tensor cores busy with few warps, by design.
_NEEDS_FEW = ("matmul", "convolution", "attention", "recurrent")
_LINK = "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#occupancy"
_FEW_BLOCKS = (
    "Give each launch more to do: use larger batches, solve many small problems as one (bmm, segmented "
    "operators), or split a sum over a long dimension into two."
)
_FEW_WARPS = (
    "Registers or shared memory limit the number of blocks that fit: let {compiler} choose the kernel "
    '(mode="max-autotune"), or give each block less to hold.'
)


@rule("low_occupancy")
def low_occupancy(profile: Profile) -> Iterator[Finding]:
    """`low_occupancy`, which is not one of `VERDICTS`: kernels with too few blocks, or too few warps (estimated)."""
    trace, sample = profile.trace, profile.sample
    dur, occupancy, blocks = trace.dur_ns[sample.kernels], sample.occupancy, sample.blocks_per_sm
    labels = classes(profile, sample.kernels)
    empty = (blocks < _FEW) | ((occupancy < _LOW) & ~np.isin(labels, _NEEDS_FEW))
    empty &= (dur >= _LEAST_NS) & (labels != "communication") & ~np.isnan(occupancy)
    if not empty.any():
        return
    rows = alike(profile, sample.kernels[empty])
    rows = rows[trace.dur_ns[rows] >= _LEAST_NS]
    if not len(rows):  # what the step launched runs in no counted one
        return
    underfilled, number = int((blocks[empty] < 1).sum()), int(empty.sum())
    occupied = percent(float(np.average(occupancy[empty], weights=dur[empty])))
    subject = (
        f"Of {count(number)} a step, {count(underfilled) if underfilled else 'none'} "
        f"{'has' if underfilled < 2 else 'have'}"
    )
    if underfilled == number:
        subject = f"All of them ({count(number)} a step) have"
    compiler = "the compiler" if is_compiled(profile) else "torch.compile"
    yield blaming(
        profile,
        rows,
        Finding(
            "low_occupancy",
            "Low occupancy",
            why=f"Kernels that fill {occupied} of the GPU are {percent(share_of_work(profile, rows))} of its work. "
            f"{subject} fewer blocks than the GPU has multiprocessors.",
            do=_FEW_BLOCKS if underfilled > number / 2 else _FEW_WARPS.format(compiler=compiler),
            link=_LINK,
            confidence="inferred",
        ),
    )
