"""Do matrix products and convolutions use the GPU as they could? Rows that are not aligned for vector loads, attention
that is computed from products and a softmax, which write the matrix of scores to memory each time, products without
tensor cores, and convolutions that turn their operands from one memory layout into another, and their results back.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tracekit.base.intervals import Ints
from tracekit.base.pages import Cure
from tracekit.base.units import many, percent
from tracekit.findings import Finding, FindingPage, rule
from tracekit.findings.kernels import blaming, costliest, kernels, operator_names, share_of_work, with_name
from tracekit.profile import Profile
from tracekit.profile.cached import once
from tracekit.trace.rows import enclosing
from tracekit.vocabulary.kernel_class import kernel_class, without_parameters

_PRODUCT_CLASSES = ("matmul", "convolution")
_INPUTS = 3  # matrices among the first inputs are operands, what is added, a gradient or, in the end, the result
_PRODUCT = re.compile(r"aten::(bmm|baddbmm)(_out)?")
_SOFTMAX = re.compile(r"aten::_?(safe_)?softmax(_backward_data)?(_out)?")
_BETWEEN = re.compile(
    r"aten::(mul|div|add|sub|masked_fill|where|tril|triu|native_dropout(_backward)?|dropout|bernoulli|fill|zero|copy|clone"
    r"|_to_copy|to|contiguous|_?softmax|expand|neg)_?"
)
_MAX_KERNELS_BETWEEN = 8  # kernels between a product and the softmax: scaling, masks, dropout, changes of the type
_PRODUCTS_BESIDE = 2  # on either side; in the backward pass, a product has two gradients
_NO, _IS_PRODUCT, _IS_SOFTMAX, _IS_BETWEEN = range(4)
_KINDS = ((_PRODUCT, _IS_PRODUCT), (_SOFTMAX, _IS_SOFTMAX), (_BETWEEN, _IS_BETWEEN))
_ALIGNMENT_PAGE = (
    "https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html#requirements-tc"
)
# CUTLASS names how many numbers its kernels load at once. Without tensor cores (simt) that is always one.
_UNALIGNED = re.compile(r"tensorop.*_align[12](?!\d)")
_ATTENTION_PAGE = "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html"
# What scaled_dot_product_attention calls if it cannot fuse.
_BY_TORCH = re.compile(r"aten::_scaled_dot_product_attention_math.*")
_MAIN_SHARE = 0.5  # of the softmaxes
_TF32_PAGE = "https://docs.pytorch.org/docs/stable/notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-later-devices"
# cuBLAS and cuDNN say `sgemm` and `scudnn` for fp32 on the ordinary cores, CUTLASS `simt`; those of tensor cores are
# named by their instruction: s1688, s16816, s884, wgmma.
_FP32 = re.compile(
    r"(?:^|_)sgemm(?:_|Ex)|simt_sgemm|(?:^|_)scudnn_|convolve_sgemm|(?:dgrad|wgrad)\w*engine<float|gemmSN_\w+<float"
    r"|gemmk1_kernel<(?:int, )?float"
)
_TENSOR = re.compile(r"tensorop|s884|s1688|s16816|wgmma|tf32|bf16|fp16|h884")
_HALF_PRECISION = re.compile(r"bf16|fp16|f16|h884|hgemm|half|bfloat16")
_ARCHITECTURES = {"maxwell": 5, "pascal": 6, "volta": 7, "turing": 7, "ampere": 8, "hopper": 9, "sm80": 8, "sm90": 9}
_FIRST, _FIRST_WITH_TF32 = 7, 8  # compute capability, major
# GeForce cards since Ampere have as many TFLOPS in TF32 as in fp32, and twice as many in half precision (with sums in
# fp32): white papers of GA102, AD102 and GB202.
_GEFORCE_SPEEDUP = 2.0
_LINK = "https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html"
# Of cuDNN and MIOpen: between NCHW, in which torch keeps images unless told otherwise, and NHWC, in which the kernels
# for tensor and matrix cores compute.
_CONVERTS = re.compile(r"nchwToNhwcKernel|nhwcToNchwKernel|(?:^|\b)batched_transpose_\d+x\d+")
_MIOPEN = "batched_transpose"


def sizes_of(profile: Profile, rows: Ints) -> str:
    """` (operands 5185×1024 and 1024×1024)`, to end a clause: those that take most time; empty without shapes."""
    trace, sample = profile.trace, profile.sample
    times: dict[str, int] = {}
    in_rows = np.isin(sample.kernels, rows)
    for row, operator in zip(sample.kernels[in_rows].tolist(), sample.operators[in_rows].tolist(), strict=True):
        arguments = sample.arguments.get(operator)
        name = trace.name(operator)
        if arguments is None or kernel_class("", name) not in _PRODUCT_CLASSES:
            continue
        matrices = [dims for dims in (arguments.inputs or [])[:_INPUTS] if len(dims) > 1]
        after_another = "add" in name or "backward" in name  # what is added and the gradient come before the operands
        operands = matrices[-2:] if after_another else matrices[:2]
        if len(operands) == 2:
            sizes = " and ".join("×".join(map(str, dims)) for dims in operands)
            times[sizes] = times.get(sizes, 0) + int(trace.dur_ns[row])
    return f" (operands {max(times, key=lambda sizes: times[sizes])})" if times else ""


class Attention(NamedTuple):
    """The kernels of all counted steps that compute attention, and the softmax in each."""

    rows: Ints
    softmax: Ints


@once
def attention(profile: Profile) -> Attention:
    """The attention that the operators of the program spell out.

    On one stream and in one step, a softmax belongs to attention if products of batches of matrices come right before
    and right after it, with nothing but scaling, masking, dropout and copies in between.
    """
    trace = profile.trace
    rows = kernels(profile, lambda events: ~events.roles.communication)
    launches = trace.links.launch(rows)
    rows = rows[np.lexsort((launches, trace.track[rows]))]
    operators, steps = operator_names(profile, rows), trace.steps.of(trace.ts_ns[trace.links.launch(rows)])
    queue = np.stack((trace.track[rows].astype(np.int64), steps.astype(np.int64)))
    kinds_of_names = [next((kind for pattern, kind in _KINDS if pattern.fullmatch(name)), _NO) for name in trace.names]
    kinds = np.array([*kinds_of_names, _NO], np.int64)[operators]  # −1, for none, is the last
    in_attention, softmaxes = np.zeros(len(rows), bool), []
    for softmax in np.flatnonzero(kinds == _IS_SOFTMAX).tolist():
        before, after = (_reach(kinds, queue, softmax, direction) for direction in (-1, 1))
        if before is not None and after is not None:
            in_attention[before : after + 1] = True
            softmaxes.append(softmax)
    return Attention(np.sort(rows[in_attention]), np.sort(rows[softmaxes]))


def _reach(kinds: Ints, queue: Ints, softmax: int, direction: int) -> int | None:
    """The outermost product on that side of the softmax; None where none comes next to it."""
    products: list[int] = []
    for distance in range(1, _MAX_KERNELS_BETWEEN + _PRODUCTS_BESIDE + 1):
        index = softmax + direction * distance
        if not 0 <= index < len(kinds) or (queue[:, index] != queue[:, softmax]).any() or kinds[index] == _NO:
            break
        if kinds[index] == _IS_PRODUCT:
            products.append(index)
        elif products or kinds[index] == _IS_SOFTMAX or distance > _MAX_KERNELS_BETWEEN:
            break
        if len(products) == _PRODUCTS_BESIDE:
            break
    return products[-1] if products else None


_UNALIGNED_PAGE = FindingPage(
    "unaligned_products",
    "Matrix products with unaligned operands",
    says="""Kernels of CUTLASS for tensor cores load only one or two numbers at a time (`align1`, `align2` in their
        names): rows of an operand do not begin at multiples of 16 bytes.""",
    slow="""Tensor cores are fed by loads of whole vectors. Where an inner size is odd, as a number of features or
        classes often is (1433 in Cora, 7 classes), each number is loaded by itself.""",
    cost="It claims the time of these kernels: an upper bound, since an aligned product takes time, too.",
    limits="""It is known by names of CUTLASS only; other libraries do not say how they load. Products of attention are
        left to `unfused_attention`.""",
    cures=(
        Cure(
            """Pad features, hidden sizes or vocabulary to a multiple of 8 (16 for one-byte types) with zeros. Classes
            or tokens that this adds must be masked in the loss.""",
            "rounding",
        ),
        Cure("Choose hidden sizes that are multiples of 8.", "results"),
    ),
    links=(_ALIGNMENT_PAGE,),
)


@rule("unaligned_products", pages=(_UNALIGNED_PAGE,))
def unaligned_products(profile: Profile) -> Iterator[Finding]:
    """`unaligned_products`, which is not one of `VERDICTS`: tensor-core kernels that load 1 or 2 numbers at a time.

    The products of attention are left to `unfused_attention`: fused attention needs no padding.
    """
    rows = kernels(profile, with_name(profile, _UNALIGNED.search))
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
                link=_ALIGNMENT_PAGE,
            ),
        )


_ATTENTION_FINDING_PAGE = FindingPage(
    "unfused_attention",
    "Attention is not fused",
    says="""On one stream, a softmax stands between products of batches of matrices, with nothing but scaling, masks,
        dropout and copies in between: attention whose scores are written to memory and read again.""",
    slow="""The matrix of scores has a number for each pair of tokens or nodes. Fused attention never writes it to
        memory.""",
    cost="""It claims the time of all these kernels: products, masks and softmax. An upper bound, since fused
        attention computes the products, too.""",
    limits="""It is recognised by the order of operators, and so inferred. Attention over edges, as in GAT, uses
        scatters and is not meant. That a fused kernel supports your mask, type and head size is not checked.""",
    cures=(
        Cure(
            "Use `torch.nn.functional.scaled_dot_product_attention`. Its dropout draws random numbers of its own.",
            "rounding",
        ),
        Cure(
            'In a library that offers a choice, choose it (`attn_implementation="sdpa"`).',
            "rounding",
        ),
        Cure(
            """Where it does not fuse, ask why: under `torch.nn.attention.sdpa_kernel(SDPBackend.FLASH_ATTENTION)`, it
            warns with the reason, and raises an error.""",
            "changes nothing",
        ),
    ),
    links=(_ATTENTION_PAGE,),
)


@rule("unfused_attention", pages=(_ATTENTION_FINDING_PAGE,))
def unfused_attention(profile: Profile) -> Iterator[Finding]:
    """`unfused_attention`, which is not one of `VERDICTS`: products, scaling, masks and the softmax of attention."""
    rows, softmax = attention(profile)
    if not len(rows):
        return
    trace = profile.trace
    callers = enclosing(trace, trace.links.launch(softmax), lambda part: part.roles.host & part.roles.named(_BY_TORCH))
    by_torch = (callers >= 0).mean() > _MAIN_SHARE
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
            link=_ATTENTION_PAGE,
            confidence="inferred",
        ),
    )


_TENSOR_CORES_PAGE = FindingPage(
    "without_tensor_cores",
    "fp32 without tensor cores",
    says="""Matrix products or convolutions run in fp32 on the ordinary cores (`sgemm`, `scudnn`, `simt` in their
        names), on a GPU of NVIDIA that has tensor cores: compute capability 7.0 or later, or products in half
        precision beside them.""",
    slow="""Tensor cores multiply matrices many times faster, but not in full fp32, which is PyTorch's default for
        matrix products; convolutions may use TF32 by default.""",
    cost="""It claims the time of these kernels, on a GeForce half of it, where half precision has twice the peak of
        fp32: an upper bound, since the products still take time.""",
    limits="""Whether your training tolerates TF32 or half precision, a trace cannot tell. Small products, as in GNNs
        with few features, are bound by memory and launches, and gain less.""",
    cures=(
        Cure(
            """Allow TF32 (from Ampere on): `torch.set_float32_matmul_precision("high")`; for convolutions,
            `torch.backends.cudnn.allow_tf32 = True`.""",
            "results",
        ),
        Cure("Run under `torch.autocast` with bfloat16, or with fp16 and a GradScaler before Ampere.", "results"),
    ),
    links=(_TF32_PAGE,),
)


@rule("without_tensor_cores", pages=(_TENSOR_CORES_PAGE,))
def without_tensor_cores(profile: Profile) -> Iterator[Finding]:
    """`without_tensor_cores`, which is not one of `VERDICTS`: products in fp32 on a GPU that has tensor cores."""

    def on_ordinary_cores(name: str) -> bool:
        name = without_parameters(name)
        return _FP32.search(name) is not None and _TENSOR.search(name) is None

    def in_half(name: str) -> bool:
        return kernel_class(name) in _PRODUCT_CLASSES and _HALF_PRECISION.search(without_parameters(name)) is not None

    rows, gpus = kernels(profile, with_name(profile, on_ordinary_cores)), profile.trace.gpus
    if not len(rows):
        return
    # The GPU's major compute capability, from the trace or from the kernel's name; None where neither has it.
    kernel = costliest(profile, rows)[0].kernel or ""
    by_name = (number for name, number in _ARCHITECTURES.items() if name in kernel)
    major = next(iter([*profile.trace.compute_majors, *by_name]), None)
    others_are_half = bool(len(kernels(profile, with_name(profile, in_half))))
    on_nvidia = not any("AMD" in str(gpu.get("name")) or "Radeon" in str(gpu.get("name")) for gpu in gpus)
    if not on_nvidia or (major is None and not others_are_half) or (major is not None and major < _FIRST):
        return
    geforce = any("GeForce" in str(gpu.get("name")) for gpu in gpus)
    yield blaming(
        profile,
        rows,
        Finding(
            "without_tensor_cores",
            "fp32 without tensor cores",
            why="Matrix products and convolutions in fp32 that do not use tensor cores are "
            f"{percent(share_of_work(profile, rows))} of the GPU's work{sizes_of(profile, rows)}.",
            do=_advice(major, others_are_half=others_are_half, geforce=geforce),
            link=_TF32_PAGE,
            saved=1 / _GEFORCE_SPEEDUP if geforce else 1.0,
        ),
    )


def _advice(major: int | None, *, others_are_half: bool, geforce: bool) -> str:
    if others_are_half:
        tf32 = ', or allow TF32 for them (torch.set_float32_matmul_precision("high"))'
        return (
            "Other products of this training run in half precision already: let these run under torch.autocast, too"
            f"{tf32 if major is not None and major >= _FIRST_WITH_TF32 else ''}."
        )
    if major is not None and major < _FIRST_WITH_TF32:
        return "Run them in fp16, which this GPU's tensor cores support: torch.autocast and a GradScaler."
    if geforce:
        return (
            "Run under torch.autocast with bfloat16, whose peak is twice that of fp32 on a GeForce. TF32 "
            '(torch.set_float32_matmul_precision("high")) is worth a try only where that is no option: its peak there '
            "is no higher than that of fp32."
        )
    return (
        'Allow TF32 (torch.set_float32_matmul_precision("high"); for convolutions torch.backends.cudnn.allow_tf32), or '
        "run under torch.autocast with bfloat16. Sizes that are multiples of 8 suit tensor cores best."
    )


_LAYOUT_PAGE = FindingPage(
    "layout_conversions",
    "Convolutions convert layouts",
    says="""Kernels do nothing but turn images from NCHW into NHWC or back (`nchwToNhwcKernel`, MIOpen's
        `batched_transpose`), around convolutions that compute in the other layout.""",
    slow="Each conversion reads and writes the whole tensor, and there may be two for each convolution.",
    cost="It claims the time of these kernels.",
    limits="""They are known by name. That all operators in between support channels_last is not checked; one that does
        not converts again.""",
    cures=(
        Cure(
            "Call `.to(memory_format=torch.channels_last)` on the model and on its input.",
            "rounding",
        ),
        Cure("On ROCm, also set `PYTORCH_MIOPEN_SUGGEST_NHWC=1`.", "rounding"),
    ),
    links=(_LINK,),
)


@rule("layout_conversions", pages=(_LAYOUT_PAGE,))
def layout_conversions(profile: Profile) -> Iterator[Finding]:
    """`layout_conversions`, which is not one of `VERDICTS`: kernels that only change the layout of images."""
    rows = kernels(profile, with_name(profile, lambda name: _CONVERTS.search(without_parameters(name))))
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
