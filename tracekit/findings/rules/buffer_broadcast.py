"""Does DistributedDataParallel broadcast its buffers before each forward pass, while the GPU has nothing to compute?"""

import re
from collections.abc import Iterator

from tracekit.findings import Finding, Where, evidence, rule
from tracekit.findings.counted import Steps
from tracekit.findings.kernels import kernels, time_of
from tracekit.intervals import Bools, Ints
from tracekit.profile import Profile
from tracekit.trace import Trace
from tracekit.trace.enclosing import enclosing
from tracekit.units import duration, many

_FORWARD = re.compile(r"DistributedDataParallel\.forward")
_BROADCAST = re.compile(r"c10d::broadcast_|(nccl|rccl|xccl|hccl):_?broadcast.*")
_LINK = "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"


@rule("buffer_broadcast")
def buffer_broadcast(profile: Profile) -> Iterator[Finding]:
    """`buffer_broadcast`, which is not one of `VERDICTS`: broadcasts inside of DDP's forward, as far as exposed."""
    trace, pieces = profile.trace, profile.attribution.pieces
    rows = kernels(profile, lambda events: events.roles.communication)
    for pattern in (_FORWARD, _BROADCAST):
        rows = rows[_inside(trace, trace.links.launch(rows), trace.labels.fits(pattern))]
    if not len(rows):
        return
    steps, broadcasts = Steps.of(profile), time_of(profile, rows)
    claim = broadcasts.minus(broadcasts.minus(pieces.union(pieces.of("gpu_comm"))))
    yield Finding(
        "buffer_broadcast",
        "DistributedDataParallel broadcasts its buffers before each forward pass",
        why=f"{many(round(len(rows) / len(steps.low), 1), 'broadcast')} a step, during which the GPU computes nothing "
        f"for {duration(steps.mean(claim))}.",
        do="Pass broadcast_buffers=False: each rank then keeps buffers of its own, such as the running statistics "
        "of BatchNorm (or use SyncBatchNorm, which agrees on them anyway).",
        where=Where(operator="c10d::broadcast_", module="DistributedDataParallel"),
        evidence=evidence(profile, rows),
        link=_LINK,
        claim=claim,
    )


def _inside(trace: Trace, launches: Ints, named: Bools) -> Bools:
    """Which of the calls are made in an event with one of these names."""
    inside: Bools = enclosing(trace, launches, lambda part: part.roles.host & named[part.name_codes]) >= 0
    return inside
