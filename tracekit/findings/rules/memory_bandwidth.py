"""Do large elementwise kernels move memory more slowly than the GPU could?"""

from collections.abc import Iterator

import numpy as np

from tracekit.findings import Finding, rule
from tracekit.findings.bandwidth import achieved
from tracekit.findings.compiler_advice import is_compiled
from tracekit.findings.kernels import alike, blaming
from tracekit.intervals import Union
from tracekit.profile import Profile
from tracekit.units import percent, size

_LOW = 0.5  # of the peak: plain kernels on contiguous tensors reach more than three quarters
_LINK = "https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html"


@rule("memory_bandwidth")
def memory_bandwidth(profile: Profile) -> Iterator[Finding]:
    """`memory_bandwidth`, which is not one of `VERDICTS`: what such kernels would gain at the peak."""
    reached = achieved(profile)
    if reached is None or reached.peak is None:
        return
    low = reached.per_second < _LOW * reached.peak
    if not low.any():
        return
    trace, slow = profile.trace, reached.rows[low]
    rows = alike(profile, slow)
    rate = float(reached.bytes[low].sum() / trace.dur_ns[slow].sum()) * 1e9
    events = trace.events_at(rows)
    gained = np.round(trace.dur_ns[rows] * (1 - rate / reached.peak)).astype(np.int64)
    yield blaming(
        profile,
        rows,
        Finding(
            "memory_bandwidth",
            "Low memory bandwidth of elementwise kernels",
            why=f"Large ones move {size(rate)}/s, {percent(rate / reached.peak)} of the peak of {reached.device}.",
            claim=Union.of(events.end_ns - gained, events.end_ns),
            do="Give them contiguous tensors of one memory format, whose rows are read in order; fused "
            f"{'inside of the compiled function' if is_compiled(profile) else 'by torch.compile'}, they move less to "
            "begin with.",
            link=_LINK,
            confidence="inferred",
        ),
    )
