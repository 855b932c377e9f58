"""Does the GPU spend much of its time between tiny kernels, although they are queued?"""

from collections.abc import Iterator

import numpy as np

from tracekit.findings import Finding, rule
from tracekit.findings.compiler_advice import is_compiled
from tracekit.findings.kernels import blaming, kernels
from tracekit.findings.one_by_one import BETWEEN_NS, TINY_NS, optimizer_setting
from tracekit.profile import Profile
from tracekit.profile.recording_words import median
from tracekit.units import count

_MANY = 50  # a step
_LINK = "https://docs.pytorch.org/docs/stable/generated/torch.compile.html"


@rule("tiny_kernels")
def tiny_kernels(profile: Profile) -> Iterator[Finding]:
    """`tiny_kernels`, which is not one of `VERDICTS`: the gaps between queued kernels, most of which take a few µs."""
    pieces, trace = profile.attribution.pieces, profile.trace
    is_gap = pieces.of("gpu_gap") & (pieces.dur < BETWEEN_NS)
    if profile.means["wall"] is None or not (is_gap & profile.counted[pieces.step]).any():
        return
    rows = kernels(profile, lambda events: ~events.roles.communication)
    steps = profile.counted_steps
    if len(rows) < _MANY * steps or np.median(trace.dur_ns[rows]) >= TINY_NS:
        return
    cures = ["larger batches", *([] if is_compiled(profile) else ["torch.compile"])]
    cures += [f"an optimizer with {optimizer_arguments}"] if (optimizer_arguments := optimizer_setting(profile)) else []
    yield blaming(
        profile,
        rows[trace.dur_ns[rows] < TINY_NS],
        Finding(
            "tiny_kernels",
            "Gaps between queued tiny kernels",
            why=f"{count(round(len(rows) / steps))} kernels a step take only {median(trace, trace.dur_ns[rows])} each "
            "(median), and the GPU idles between them although the next is queued.",
            claim=pieces.union(is_gap),
            do=f"Do more in each kernel: {', or '.join(cures)}.",
            link=_LINK,
        ),
    )
