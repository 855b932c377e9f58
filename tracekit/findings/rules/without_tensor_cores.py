"""Do matrix products and convolutions run without tensor cores?"""

import re
from collections.abc import Iterator

from tracekit.findings import Finding, rule
from tracekit.findings.kernels import blaming, costliest, kernels, named, share_of_work
from tracekit.findings.product_sizes import sizes_of
from tracekit.kernel_class import kernel_class, without_parameters
from tracekit.profile import Profile
from tracekit.trace import Trace
from tracekit.units import percent

_LINK = "https://docs.pytorch.org/docs/stable/notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-later-devices"
# cuBLAS and cuDNN say `sgemm` and `scudnn` for fp32 on the ordinary cores, CUTLASS `simt`; those of tensor cores are
# named by their instruction: s1688, s16816, s884, wgmma.
_FP32 = re.compile(
    r"(?:^|_)sgemm(?:_|Ex)|simt_sgemm|(?:^|_)scudnn_|convolve_sgemm|(?:dgrad|wgrad)\w*engine<float|gemmSN_\w+<float"
    r"|gemmk1_kernel<(?:int, )?float"
)
_TENSOR = re.compile(r"tensorop|s884|s1688|s16816|wgmma|tf32|bf16|fp16|h884")
_HALF = re.compile(r"bf16|fp16|f16|h884|hgemm|half|bfloat16")
_ARCHITECTURES = {"maxwell": 5, "pascal": 6, "volta": 7, "turing": 7, "ampere": 8, "hopper": 9, "sm80": 8, "sm90": 9}
_FIRST, _FIRST_WITH_TF32 = 7, 8  # compute capability, major


@rule("without_tensor_cores")
def without_tensor_cores(profile: Profile) -> Iterator[Finding]:
    """`without_tensor_cores`, which is not one of `VERDICTS`: products in fp32 on a GPU that has tensor cores."""
    rows = kernels(profile, named(profile, _on_ordinary_cores))
    if not len(rows):
        return
    major = _major(profile.trace, costliest(profile, rows)[0].kernel or "")
    if major is not None and major < _FIRST:
        return
    yield blaming(
        profile,
        rows,
        Finding(
            "without_tensor_cores",
            "fp32 without tensor cores",
            why=f"Such matrix products and convolutions are {percent(share_of_work(profile, rows))} of the GPU's "
            f"work{sizes_of(profile, rows)}.",
            do=_advice(
                major,
                others_are_half=bool(len(kernels(profile, named(profile, _in_half)))),
                geforce=any("GeForce" in str(each.get("name")) for each in profile.trace.gpus),
            ),
            link=_LINK,
        ),
    )


def _on_ordinary_cores(name: str) -> bool:
    name = without_parameters(name)
    return _FP32.search(name) is not None and _TENSOR.search(name) is None


def _in_half(name: str) -> bool:
    return kernel_class(name) in ("matmul", "convolution") and _HALF.search(without_parameters(name)) is not None


def _major(trace: Trace, kernel: str) -> int | None:
    """The GPU's major compute capability, from the trace or from the kernel's name; None where neither has it."""
    listed = (each["computeMajor"] for each in trace.gpus if isinstance(each.get("computeMajor"), int))
    if (major := next(listed, None)) is not None:
        return int(major)
    return next((major for name, major in _ARCHITECTURES.items() if name in kernel), None)


def _advice(major: int | None, *, others_are_half: bool, geforce: bool) -> str:
    if others_are_half:
        return (
            "Other products of this training run in half precision already: let these run under torch.autocast, too, "
            'or allow TF32 for them (torch.set_float32_matmul_precision("high")).'
        )
    if major is not None and major < _FIRST_WITH_TF32:
        return "Run them in half precision, which this GPU's tensor cores support: torch.autocast and a GradScaler."
    if geforce:
        # GeForce cards since Ampere have as many TFLOPS in TF32 as in fp32, and twice as many in half precision (with
        # sums in fp32): white papers of GA102, AD102 and GB202.
        return (
            "Run under torch.autocast with bfloat16, whose peak is twice that of fp32 on a GeForce. There, TF32 "
            '(torch.set_float32_matmul_precision("high")) has no higher peak than fp32: measure whether it helps.'
        )
    return (
        'Allow TF32 (torch.set_float32_matmul_precision("high"); for convolutions torch.backends.cudnn.allow_tf32), or '
        "run under torch.autocast with bfloat16. Sizes that are multiples of 8 suit tensor cores best."
    )
