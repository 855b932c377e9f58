"""Is attention computed from batched products and a softmax, which write the matrix of scores to memory each time?"""

import re
from collections.abc import Iterator

from tracekit.findings import Finding, rule
from tracekit.findings.attention import attention
from tracekit.findings.kernels import blaming, share_of_work
from tracekit.findings.product_sizes import sizes_of
from tracekit.profile import Profile
from tracekit.trace.enclosing import enclosing
from tracekit.units import many, percent

_LINK = "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html"
# What scaled_dot_product_attention calls if it cannot fuse.
_BY_TORCH = re.compile(r"aten::_scaled_dot_product_attention_math.*")
_MOSTLY = 0.5  # of the softmaxes


@rule("unfused_attention")
def unfused_attention(profile: Profile) -> Iterator[Finding]:
    """`unfused_attention`, which is not one of `VERDICTS`: products, scaling, masks and the softmax of attention."""
    rows, softmax = attention(profile)
    if not len(rows):
        return
    trace = profile.trace
    called = trace.labels.fits(_BY_TORCH)
    inside = enclosing(trace, trace.links.launch(softmax), lambda part: part.roles.host & called[part.name_codes])
    by_torch = (inside >= 0).mean() > _MOSTLY
    number = many(round(len(softmax) / profile.counted_steps, 1), "softmax", "softmaxes")
    fused = ", which scaled_dot_product_attention does not fuse here" if by_torch else ""
    advice = (
        "Find out why no fused kernel fits: under `with torch.nn.attention.sdpa_kernel(SDPBackend.FLASH_ATTENTION)` "
        "the call warns what it cannot do (a mask, a type, a head size)."
        if by_torch
        else "Use torch.nn.functional.scaled_dot_product_attention, which keeps the scores out of memory; in a library "
        'that offers a choice, choose it (attn_implementation="sdpa").'
    )
    yield blaming(
        profile,
        rows,
        Finding(
            "unfused_attention",
            "Attention is not fused",
            why=f"{percent(share_of_work(profile, rows))} of the GPU's work is attention{fused}: {number} a step "
            f"between batched products{sizes_of(profile, rows)}.",
            do=advice,
            link=_LINK,
            confidence="inferred",
        ),
    )
