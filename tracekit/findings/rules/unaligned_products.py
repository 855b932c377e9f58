"""Do matrix products load operands one number at a time, because rows are not aligned for vector loads?"""

import re
from collections.abc import Iterator

import numpy as np

from tracekit.findings import Finding, rule
from tracekit.findings.attention import attention
from tracekit.findings.kernels import blaming, kernels, named, share_of_work
from tracekit.findings.product_sizes import sizes_of
from tracekit.profile import Profile
from tracekit.units import percent

_LINK = (
    "https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html#requirements-tc"
)
# CUTLASS names how many numbers its kernels load at once. Without tensor cores (simt) that is always one.
_UNALIGNED = re.compile(r"tensorop.*_align[12](?!\d)")


@rule("unaligned_products")
def unaligned_products(profile: Profile) -> Iterator[Finding]:
    """`unaligned_products`, which is not one of `VERDICTS`: tensor-core kernels that load 1 or 2 numbers at a time.

    The products of attention are left to `unfused_attention`: fused attention needs no padding.
    """
    rows = kernels(profile, named(profile, lambda name: _UNALIGNED.search(name) is not None))
    rows = np.setdiff1d(rows, attention(profile).rows)
    if len(rows):
        share = percent(share_of_work(profile, rows))
        yield blaming(
            profile,
            rows,
            Finding(
                "unaligned_products",
                "Matrix products with unaligned operands",
                why=f"They are {share} of the GPU's work{sizes_of(profile, rows)}.",
                do="Pad the inner sizes (features, vocabulary, sequence) to multiples of 8, or of 16 for one-byte "
                "types, so that kernels that load whole vectors can be chosen.",
                link=_LINK,
            ),
        )
