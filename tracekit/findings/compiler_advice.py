"""What is to be done about a guard that failed or a graph that breaks, and is anything compiled at all?"""

import re

from tracekit.code_owner import TORCH, may_be_the_users, owner_by_path
from tracekit.profile import Profile
from tracekit.python_frames import plain_function, stacked
from tracekit.run import Break
from tracekit.sanitize import sanitize

SIZE = "size mismatch at index"
_COMPILED = re.compile(r"(?:Torch-Compiled Region|## Call CompiledFxGraph|CompiledFunction).*", re.DOTALL)
_RATE = re.compile(r"\['lr'\] ==|\.lr ==")
_ATTRIBUTE = re.compile(r"self(?:\.\w+|\._modules\['\w+'\])*?\.(\w+) == -?\d+$")
_ON_PURPOSE = re.compile(
    r"have intentionally marked|`torch\._dynamo\.graph_break\(\)`|torch\.(?:compiler|_dynamo)\.disable"
)
_OF_THE_DATA = re.compile(r"\.item\(\)|[Dd]ynamic (?:shape|slicing)|[Dd]ata-dependent|nonzero|unique|repeat_interleave")
_LOOPS = (
    "Add the self-loops, and GCN's norm, once before training (the transforms AddSelfLoops and GCNNorm), and construct "
    "the layer with {argument}: how many loops the data has is a question to its values."
)
# Functions of PyG that ask the data for a size unless they are given it, and the parameter that gives it.
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
    "to_dense_adj": "batch_size=… and max_num_nodes",
}


def is_compiled(profile: Profile) -> bool:
    """Whether torch.compile is at work already: it was asked for, or what it made is in the trace."""
    requested = profile.variant is not None and profile.variant.requested.compile
    return requested or profile.trace.census.any(lambda roles: roles.named(_COMPILED))


def against_guard(reason: str) -> str | None:
    """What to do so that this guard, of which the compiler's reason is given, holds; None where that is not known."""
    guard = guard_of(reason)
    if SIZE in guard:
        return "Mark the dimension as dynamic (torch._dynamo.mark_dynamic, or dynamic=True), or pad it to a few sizes."
    if _RATE.search(guard):
        return (
            "Pass the learning rate as a tensor, lr=torch.tensor(0.01), on a GPU with capturable=True: as a float it "
            "is a constant of the compiled code, which a scheduler changes."
        )
    if attribute := _ATTRIBUTE.search(guard):
        return (
            f"Pass {attribute[1]} as an argument, or keep it in a tensor: an integer attribute of a module is a "
            "constant of the compiled code."
        )
    return None


def guard_of(reason: str) -> str:
    """`0/0: k == 0.5    # y = x*k  # f.py:3 in f` → `k == 0.5`."""
    return sanitize(re.sub(r"^\S*\d+/\d+: ", "", reason.partition("\n")[0]).partition("  # ")[0].strip())


def is_on_purpose(entry: Break) -> bool:
    """Whether torch breaks the graph there by design, as around an optimizer's update: nobody can rewrite that."""
    return bool(_ON_PURPOSE.search(entry.reason)) and owner_by_path(entry.file or "").owner == TORCH


def against_break(entry: Break) -> str | None:
    """What to do so that the graph does not break there; None where the reason and the stack do not show it."""
    if not _OF_THE_DATA.search(entry.reason):
        return None
    frames = stacked(entry.stack)
    users = max((at for at, frame in enumerate(frames) if may_be_the_users(frame.file)), default=-1)
    called = [plain_function(frame.function) for frame in frames[users + 1 :] if "torch_geometric" in frame.file]
    if "add_remaining_self_loops" in called or "remove_self_loops" in called:
        return _LOOPS.format(argument="normalize=False" if "gcn_norm" in called else "add_self_loops=False")
    function = next((name for name in called if name in SIZES), None)
    if function is not None:
        return f"Give {function} the size that it reads from the data: {SIZES[function]}=…"
    if "repeat_interleave" in entry.reason:
        return "Give repeat_interleave the number of its results: output_size=…"
    return None
