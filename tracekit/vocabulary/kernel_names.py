"""Short kernel names: `elementwise add<float>` instead of 400 characters of template.

A short name drops what does not identify the kernel; if two would be equal, what distinguishes them is added.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from tracekit.base.names import sanitize

_TYPES = {
    "BFloat16": "bf16",
    "__nv_bfloat16": "bf16",
    "bfloat16_t": "bf16",
    "Half": "half",
    "__half": "half",
    "half_t": "half",
    **{name: name for name in ("float", "double", "long", "int", "bool", "short", "half", "char")},
}
_LONGEST = 20_000  # letters: a longer text is not a name; templates have some thousands
_LONGEST_IN_PROSE = 60  # letters
_PLAIN = re.compile(r"[\w:]+")
_FLOATS = {"float", "double", "half", "bf16"}
_TYPE = re.compile(r"(?<![\w:])(?<!unsigned )(?:c10::|at::|cutlass::)?(" + "|".join(_TYPES) + r")\b(?! \()")
_LAMBDA = re.compile(r"\{lambda\(([^()]*)\)#\d+\}")
# Names inside a template that say how a kernel runs, not what it computes.
_FRAME = re.compile(
    r"gpu_kernel_impl\w*|(?:A|B)UnaryFunctor|BinaryFunctor|binary_internal|\w*TensorIterator\w*|func_wrapper_t|native|at|c10"
    r"|anonymous|namespace|std|array|detail|Array|operator|const|unsigned|signed|char|memory|\w*OffsetCalculator|\w*Cast"
    r"|cuda|lambda|TensorListMetadata|TensorListScalarListMetadata|FusedOptimizerTensorListMetadata|UnaryOpFunctor"
    r"|BinaryOp\w*Functor|PointwiseOp\w*Functor|OpaqueType|Scalar|ReduceOp|opmath_\w+|_cuda_\w+_internal_kernel|c10::\w+"
)
_ENDINGS = re.compile(
    r"(CUDAKernelImpl)?(_?kernel)?(_?impl)?(_?cuda)?(_?(kernel|out|functor|Functor|Ops|Op|MathFunctor))?(_?(impl|cuda|out))?$"
)
_BETWEEN_SIGNS = re.compile(r"##+ (?:Call CompiledFxGraph (?P<graph>\w{1,8})\w*|(?P<mark>.+)) ##+", re.DOTALL)
Rule = Callable[[str], str | None]
_RULES: list[Rule] = []  # in the order in which they are asked


@lru_cache(maxsize=1 << 14)
def short_kernel(name: str) -> str:
    """What a kernel computes, in a few words; a name that no rule knows keeps its last part and its first type."""
    if len(name) > _LONGEST:
        return name
    return next((short for rule in _RULES if (short := rule(name))), name)


def kernel_in_prose(name: str) -> str:
    """The short name of a kernel in a sentence: a long one is cut in the middle."""
    return sanitize(short_kernel(name), _LONGEST_IN_PROSE)


def distinct_short_names(names: Sequence[str]) -> list[str]:
    """Short names of these kernels, all different: if two would be equal, what differs is appended."""
    alike: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        alike.setdefault(short_kernel(name), []).append(name)
    short_of = {}
    for short, group in alike.items():
        if len(group) == 1:
            short_of[group[0]] = short
            continue
        words = [re.findall(r"[A-Za-z]+|\d+", name) for name in group]
        differing = [k for k in range(min(map(len, words))) if len({word[k] for word in words}) > 1]
        by_depth = ([" ".join(word[k] for k in differing[:depth]) for word in words] for depth in range(1, 4))
        numbers = [str(number) for number in range(1, len(group) + 1)]
        marks = next((marks for marks in by_depth if len(set(marks)) == len(group)), numbers)
        short_of |= {name: f"{short} · {mark}" for name, mark in zip(group, marks, strict=True)}
    return [short_of[name] for name in names]


def _rule(rule: Rule) -> Rule:
    """Register what makes a short name of the names that it knows, and None of others."""
    _RULES.append(rule)
    return rule


def _of_match(pattern: str) -> Callable[[Callable[[re.Match[str]], str]], Rule]:
    """Register what makes a short name of any name in which the pattern is found, given the match."""

    def register(shorten: Callable[[re.Match[str]], str]) -> Rule:
        # Compiled when it is first asked: a start should not pay for it.
        return _rule(lambda name: shorten(match) if (match := re.search(pattern, name)) is not None else None)

    return register


@_rule
def between_signs(name: str) -> str | None:
    """`compiled graph fubzrs5q` for `## Call CompiledFxGraph fubzrs5qb4w… ##`, by the first letters of its hash, and
    `forward` for `## forward ##`, as programs mark their parts; None for other names."""
    span = _BETWEEN_SIGNS.fullmatch(name)
    return span and (f"compiled graph {span['graph']}" if span["graph"] else span["mark"])


@_of_match(r"\AMem(?:cpy|set)")
def _copy(match: re.Match[str]) -> str:
    return match.string


@_of_match(r"\Atriton_(?:[a-z]+_)?fused_+(.*?)(_\d+)?\Z")
def _triton(match: re.Match[str]) -> str:
    operators = match[1].strip("_")
    return f"triton {operators}" if len(operators) <= 40 else f"triton {operators[:26]}…{operators[-12:]}"


@_of_match(r"cutlass_(?:\w+?_)?(\w*?(gemm|fprop|dgrad|wgrad)\w*?)_((?:\d+x\d+_?)+)_?([nt]{2}|nhwc)?(?:_align(\d+))?")
def _cutlass(match: re.Match[str]) -> str:
    """`void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8>(…)`."""
    kind = "bf16" if "bf16" in match.string else "half" if "f16" in match.string else ""
    extra = "relu" if "relu" in match[1] else ""
    work = "gemm" if match[2] == "gemm" else f"conv {match[2]}"
    align = f"align{match[5]}" if match[5] else ""
    parts = (work, kind, match[3].strip("_").replace("_", " "), match[4] or "", align, extra, "(cutlass)")
    return " ".join(filter(None, parts))


@_of_match(r"\Asm(\d+)_xmma_(fprop|dgrad|wgrad)?\w*?gemm\w*?_([a-z]+\d+)\w*?_tilesize(\d+x\d+x\d+)")
def _xmma(match: re.Match[str]) -> str:
    """`sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_…`."""
    return f"{f'conv {match[2]}' if match[2] else 'gemm'} {match[4]} {match[3]} (xmma sm{match[1]})"


@_of_match(r"\A(?:cudnn_infer_)?(volta|turing|ampere|hopper|maxwell|sm\d+)_(\w*?(?:gemm|scudnn\w*?|hcudnn\w*?))_(.*)\Z")
def _blas(match: re.Match[str]) -> str:
    """`ampere_sgemm_128x128_tt`, `volta_scudnn_128x64_relu_medium_nn_v1`."""
    arch, kind, rest = match[1], match[2].replace("scudnn", "conv").replace("hcudnn", "conv half"), match[3]
    return f"{kind} {rest.removesuffix('_v1').replace('_', ' ')} ({arch})".replace("  ", " ")


@_of_match(r"\Aigemm_(\w+?)_gtc\w*?_(nhwc|nchw)_(\w+?)_.*?bt(\d+x\d+x\d+)")
def _miopen(match: re.Match[str]) -> str:
    return f"igemm {match[1]} {match[4]} {match[2]} {match[3]} (miopen)"


@_of_match(r"\A(?:Custom_)?Cijk_(A\w\w)k_(B\w\w)k_([A-Z0-9]+)_.*?MT(\d+x\d+x\d+)")
def _tensile(match: re.Match[str]) -> str:
    layout = ("n" if match[1] == "Ail" else "t") + ("n" if match[2] == "Blj" else "t")
    kind = {"B": " bf16", "H": " half"}.get(match[3][0], "")
    return f"gemm {match[4]} {layout}{kind} (tensile)"


@_rule
def _mangled(name: str) -> str | None:
    """The names in `_ZN2ck16tensor_operation…`; the longest says what the kernel computes."""
    if not name.startswith("_ZN"):
        return None
    parts, offset = [], 3
    while match := re.compile(r"(\d+)").match(name, offset):
        start = match.end()
        offset = start + int(match[1])
        parts.append(name[start:offset])
    parts = [part for part in parts if part and not part.startswith("_GLOBAL")]
    return f"{_trimmed(parts[-1])} ({parts[0]})" if len(parts) > 1 else None


@_rule
def _elementwise(name: str) -> str | None:
    head, arguments = _split(name)
    if "elementwise" not in head:
        return None
    scalar = " scalar" if re.search(r"[AB]UnaryFunctor|FunctorOnSelf", arguments) else ""
    prefix = head.rpartition("::")[2].removeprefix("_").partition("elementwise")[0].strip("_")
    kind = f"{prefix} " if prefix and prefix not in ("vectorized", "unrolled", "legacy", "index") else ""
    operation = _operation(arguments)
    return f"elementwise {kind}{operation}{scalar}{_type_of(arguments)}" if operation else None


@_rule
def _reduce(name: str) -> str | None:
    head, arguments = _split(name)
    if not head.endswith("reduce_kernel") or "ReduceOp" not in arguments:
        return None
    operation = _operation(arguments.partition("ReduceOp<")[2])
    return f"reduce {operation}{_type_of(arguments)}" if operation else None


@_rule
def _multi_tensor(name: str) -> str | None:
    head, arguments = _split(name)
    if not head.endswith("multi_tensor_apply_kernel"):
        return None
    operation = _operation(arguments)
    return f"multi tensor {operation}{_type_of(arguments)}" if operation else None


@_rule
def _templated(name: str) -> str | None:
    """The last part of the name and its first type, with the library in brackets."""
    head, arguments = _split(name)
    if not _PLAIN.fullmatch(head):
        return None
    *spaces, last = head.split("::")
    library = next((space for space in spaces if space in ("cudnn", "cub", "cublasLt", "fbgemm_gpu", "thrust")), "")
    trimmed = _trimmed(last)
    if trimmed.rstrip("0123456789") in ("", "Kernel", "kernel"):
        return None
    return f"{trimmed}{_type_of(arguments)}{f' ({library})' if library else ''}"


def _split(name: str) -> tuple[str, str]:
    """The name before the template's arguments, and these arguments, without `void` and the function's parameters."""
    name = name.removeprefix("void ").replace("(anonymous namespace)::", "")
    start = next((index for index, sign in enumerate(name) if sign in "<("), len(name))
    if name[start : start + 1] != "<":
        return name[:start], ""
    depth = 0
    for index in range(start, len(name)):
        depth += {"<": 1, ">": -1}.get(name[index], 0)
        if not depth:
            return name[:start], name[start + 1 : index]
    return name[:start], name[start + 1 :]


def _operation(arguments: str) -> str:
    """The first name in a template that says what is computed, without the usual suffixes."""
    for match in re.finditer(r"[A-Za-z_]\w*", _LAMBDA.sub(" ", arguments)):
        word = match[0]
        if word in _TYPES or _FRAME.fullmatch(word):
            continue
        trimmed = _trimmed(word.removeprefix("launch_").removeprefix("CUDAFunctorOnSelf_").removeprefix("CUDAFunctor_"))
        if trimmed:
            return {"direct_copy": "copy"}.get(trimmed, trimmed[:1].lower() + trimmed[1:])
    return ""


def _trimmed(word: str) -> str:
    return _ENDINGS.sub("", word).strip("_") or word


def _type_of(arguments: str) -> str:
    """`<float>`: the type in the last lambda whose parameters are not indices, else the first that is named, a float if
    there is one, because integers are often indices; empty if none is named."""
    in_lambdas = [parameters for parameters in _LAMBDA.findall(arguments) if parameters != "int"]
    if matches := [*filter(None, map(_TYPE.search, in_lambdas))]:
        return f"<{_TYPES[matches[-1][1]]}>"
    types = [_TYPES[name] for name in _TYPE.findall(_LAMBDA.sub(" ", arguments)) or _TYPE.findall(arguments)]
    floats = [kind for kind in types if kind in _FLOATS]
    return f"<{(floats or types)[0]}>" if types else ""
