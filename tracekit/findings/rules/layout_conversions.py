"""Do convolutions turn their operands from one memory layout into another, and their results back?"""

import re
from collections.abc import Iterator

from tracekit.findings import Finding, rule
from tracekit.findings.kernels import blaming, kernels, share_of_work, with_name
from tracekit.kernel_class import without_parameters
from tracekit.profile import Profile
from tracekit.units import percent

_LINK = "https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html"
# Of cuDNN and MIOpen: between NCHW, in which torch keeps images unless told otherwise, and NHWC, in which the kernels
# for tensor and matrix cores compute.
_CONVERTS = re.compile(r"nchwToNhwcKernel|nhwcToNchwKernel|(?:^|\b)batched_transpose_\d+x\d+")
_MIOPEN = "batched_transpose"


@rule("layout_conversions")
def layout_conversions(profile: Profile) -> Iterator[Finding]:
    """`layout_conversions`, which is not one of `VERDICTS`: kernels that only change the layout of images."""
    rows = kernels(profile, with_name(profile, lambda name: _CONVERTS.search(without_parameters(name)) is not None))
    if not len(rows):
        return
    names = {profile.trace.names[code] for code in profile.trace.name_codes[rows].tolist()}
    on_rocm = "; on ROCm, set PYTORCH_MIOPEN_SUGGEST_NHWC=1, too" if any(_MIOPEN in name for name in names) else ""
    yield blaming(
        profile,
        rows,
        Finding(
            "layout_conversions",
            "Convolutions convert layouts",
            why=f"Kernels that only turn NCHW into NHWC, or back, are {percent(share_of_work(profile, rows))} of the "
            "GPU's work.",
            do="Keep the model and its input in the layout in which the kernels compute: call "
            f".to(memory_format=torch.channels_last) on both{on_rocm}.",
            link=_LINK,
            confidence="inferred",
        ),
    )
