"""What is to be done about a guard that failed or a graph that breaks, and is anything compiled at all?"""

import re

from tracekit.base.names import sanitize
from tracekit.findings import one_by_one
from tracekit.profile import Profile
from tracekit.run import Break
from tracekit.run.settings import BACKENDS, DEFAULT
from tracekit.trace.roles import COMPILED_REGION, GUARDS
from tracekit.vocabulary.code_owner import may_be_the_users, plain_function, stacked

# By what the text of a failed guard has in it: what to do, with what the pattern caught put in; the first that fits
# decides.
_AGAINST_GUARDS = (
    (
        re.compile("size mismatch at index"),
        "Mark the dimension as dynamic (torch._dynamo.mark_dynamic, or dynamic=True), or pad it to a few sizes.",
    ),
    (
        re.compile(r"\['lr'\] ==|\.lr =="),
        "Pass the learning rate as a tensor, as in lr=torch.tensor(0.01), on a GPU with capturable=True where the "
        "optimizer has it: as a float it is a constant of the compiled code, which a scheduler changes.",
    ),
    (
        re.compile(r"param_groups\[\d+\]\['(?:betas|momentum)'\](?:\[\d\])? == "),
        "Keep the scheduler from cycling momentum (cycle_momentum=False), or leave the optimizer's step out of the "
        "compiled function: a float that the optimizer holds is a constant of the compiled code.",
    ),
    (
        re.compile(r"param_groups\[\d+\]\['(\w+)'\](?:\[\d\])? == -?\d"),
        "Leave {} of the optimizer as it is, or its step out of the compiled function: a number that the "
        "optimizer holds is a constant of the compiled code.",
    ),
    (
        re.compile(r"self(?:\.\w+|\._modules\['\w+'\])*?\.(\w+) == -?\d+$"),
        "Pass {} as an argument, or keep it in a tensor: an integer attribute of a module is a "
        "constant of the compiled code.",
    ),
    (
        re.compile(r" == -?\d+(?:\.\d*(?:e[+-]?\d+)?|e[+-]?\d+)$"),
        "Pass the number as a tensor, or keep it out of the compiled function: a float is a constant of the "
        "compiled code, and cannot be marked dynamic.",
    ),
)
_OF_THE_DATA = re.compile(r"\.item\(\)|[Dd]ynamic (?:shape|slicing)|[Dd]ata-dependent|nonzero|unique|repeat_interleave")
_LOOPS = (
    "Add the self-loops, and GCN's norm, once before training (the transforms AddSelfLoops and GCNNorm), and construct "
    "the layer with {argument}: how many loops to add depends on the values of the data."
)
# Functions of PyG that ask the data for a size unless they are given it, and the parameter that gives it: only those
# that ask for nothing else then.
SIZES = {
    "global_add_pool": "size",
    "global_mean_pool": "size",
    "global_max_pool": "size",
    "softmax": "num_nodes",
    "degree": "num_nodes",
    "maybe_num_nodes": "num_nodes",
    "one_hot": "num_classes",
    "scatter": "dim_size",
    "to_dense_batch": "batch_size=… and max_num_nodes",
    "add_self_loops": "num_nodes",
}
NORMS = {  # that take a batch_size, by the module of their forward
    "graph_norm": "GraphNorm",
    "graph_size_norm": "GraphSizeNorm",
    "instance_norm": "InstanceNorm",
    "layer_norm": "LayerNorm",
    "pair_norm": "PairNorm",
}
_DOUBLE_BACKWARD = re.compile(r"does not currently support double backward")  # of AOTAutograd
_ONCE = (
    "Compiled code cannot be differentiated twice, as autograd.grad(…, create_graph=True) asks: take that gradient "
    "inside of what is compiled, with torch.func.grad, or compile only what it does not pass through."
)
_GENERATED = re.compile(r"triton_(?:poi|red|per|tem|mm|for)_.*|(?:graph_\d+_)?cpp_fused_.*", re.DOTALL)  # by Inductor
_LAYER = re.compile(r".*torch_geometric[/\\]nn[/\\](aggr|norm)[/\\](\w+)\.py", re.DOTALL)
_WRAPPER = re.compile(r".*torch_geometric[/\\](?:experimental|deprecation)\.py", re.DOTALL)  # only passes a call on

_BEGINS_RECORDING = re.compile(r"(?:cuda|hip)StreamBeginCapture.*")


def is_compiled(profile: Profile) -> bool:
    """Whether torch.compile is at work already: it was asked for, or it, its guards or its work is in the trace."""
    requested = profile.variant is not None and profile.variant.requested.compile
    return requested or profile.trace.census.any(
        lambda roles: roles.named(COMPILED_REGION) | roles.named(_GENERATED) | roles.named(GUARDS) | roles.compile_span
    )


def graphs_recorded(profile: Profile) -> float:
    """How many recordings of CUDA graphs begin in a counted step."""
    trace = profile.trace
    rows = trace.where(lambda part: part.roles.runtime & part.roles.named(_BEGINS_RECORDING))
    return float(profile.begins_in_counted(rows).sum()) / profile.counted_steps


def into_graphs(profile: Profile) -> str:
    """How more of a step comes into CUDA graphs, as the end of a sentence: what keeps it out depends on the run."""
    breaks = "graph breaks, " if is_compiled(profile) else ""
    optimizer = ", and capture the optimizer, too (capturable=True)" if one_by_one.optimizer_steps(profile) else ""
    return f"remove {breaks}work on the CPU and sizes that vary in between{optimizer}"


def backend_without_fusion(profile: Profile) -> str | None:
    """The backend that a variant was compiled with, if it is known to fuse nothing."""
    requested = profile.variant.requested if profile.variant is not None else None
    backend = BACKENDS.get(requested.backend or DEFAULT) if requested is not None and requested.compile else None
    return backend.name if backend is not None and not backend.fuses else None


def against_guard(reason: str) -> str | None:
    """What to do so that this guard, of which the compiler's reason is given, holds; None where that is not known."""
    guard = guard_of(reason)
    matches = ((pattern.search(guard), advice) for pattern, advice in _AGAINST_GUARDS)
    return next((advice.format(*match.groups()) for match, advice in matches if match), None)


def guard_of(reason: str) -> str:
    """`0/0: k == 0.5    # y = x*k  # f.py:3 in f` → `k == 0.5`."""
    return sanitize(re.sub(r"^\S*\d+/\d+: ", "", reason.partition("\n")[0]).partition("  # ")[0].strip())


def against_break(entry: Break) -> str | None:
    """What to do so that the graph does not break there; None where the reason and the stack do not show it."""
    if not _OF_THE_DATA.search(entry.reason):
        return None
    frames = stacked(entry.stack)
    users = max((index for index, frame in enumerate(frames) if may_be_the_users(frame.file)), default=-1)
    inner = [
        frame for frame in frames[users + 1 :] if "torch_geometric" in frame.file and not _WRAPPER.match(frame.file)
    ]
    called = [plain_function(frame.function) for frame in inner]
    if "add_remaining_self_loops" in called or "remove_self_loops" in called:
        return _LOOPS.format(argument="normalize=False" if "gcn_norm" in called else "add_self_loops=False")
    if (size := _size_of(inner[0].file, called[0]) if inner else None) is not None:
        return "Give {} the size that it reads from the data: {}=…".format(*size)
    if "repeat_interleave" in entry.reason:
        return "Give repeat_interleave the number of its results: output_size=…"
    return None


def against_failure(error: str) -> str | None:
    """What to do so that compiling does not fail like that; None where the error does not tell."""
    return _ONCE if _DOUBLE_BACKWARD.search(error) else None


def _size_of(file: str, function: str) -> tuple[str, str] | None:
    """What the user calls there, and the parameter for its size; what that calls itself, the user cannot tell."""
    if function in SIZES:
        return function, SIZES[function]
    layer = _LAYER.fullmatch(file) if function in ("forward", "__call__") else None
    if layer is None:
        return None
    if layer[1] == "aggr":
        return "the aggregation", "dim_size"
    return (NORMS[layer[2]], "batch_size") if layer[2] in NORMS else None
