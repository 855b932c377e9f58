"""Do matrix products read their operands number by number, because rows do not start where vectors may?"""

import re
from collections.abc import Iterator

from tracekit.findings import Finding, evidence, rule
from tracekit.findings.kernels import dearest, kernels, named, share_of_work, time_of
from tracekit.kernel_names import short_kernel
from tracekit.profile import Profile
from tracekit.units import percent

_LINK = (
    "https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html#requirements-tc"
)
# CUTLASS names how many numbers its kernels load at once. Without tensor cores (simt) that is always one.
_UNALIGNED = re.compile(r"tensorop.*_align[12](?!\d)")


@rule("unaligned_products")
def unaligned_products(profile: Profile) -> Iterator[Finding]:
    """Beyond the verdicts' list: kernels of tensor cores that load one or two numbers at a time."""
    rows = kernels(profile, named(profile, lambda name: _UNALIGNED.search(name) is not None))
    if not len(rows):
        return
    where, own = dearest(profile, rows)
    yield Finding(
        "unaligned_products",
        f"{percent(share_of_work(profile, rows))} of the GPU's work is matrix products whose operands are not aligned, "
        f"most of all {short_kernel(where.kernel or '')}",
        claim=time_of(profile, rows),
        where=where,
        evidence=evidence(profile, own),
        advice="Pad the inner sizes (features, vocabulary, sequence) to multiples of 8, of 16 for one-byte types: then "
        "kernels that load whole vectors can be chosen.",
        link=_LINK,
    )
