"""Names of events: what PyTorch, its compiler, CUDA and their libraries call things stays, all else gets a stand-in.

A stand-in is of the shape of what it stands for, so that tracekit takes it for the same thing: a frame stays a frame, a
module a module, and a kernel is still known by the kind of its work.
"""

import _thread
import builtins
import gc
import re

from tracekit.confidential import public
from tracekit.confidential.places import Places
from tracekit.confidential.stand_ins import StandIns
from tracekit.trace.roles import COMMUNICATION
from tracekit.vocabulary.code_owner import profiled
from tracekit.vocabulary.event_names import COMPILE_SPANS, GPU_CATEGORIES, OWN_WAIT, RUNTIME_CATEGORIES
from tracekit.vocabulary.graph_building import graph_builder
from tracekit.vocabulary.kernel_class import UNKNOWN, kernel_class
from tracekit.vocabulary.lines_file import GRAPH_CALL, MODULE_CALL

_BUILT_IN = re.compile(r"<built-in (method|function) (\S+)(?: of (\S+) object)?(?: at (0x\w+))?>")
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_QUALIFIED = re.compile(r"(?:[^\W\d]\w*::)*[^\W\d]\w*")
_RUNTIME = re.compile(r"(?:cuda|cu|hip|hsa_|xpu|ze|ur|acl)[A-Z_][A-Za-z0-9]*(?:_v\d+|_ptsz|_ptds)*")
_KIND = r"(?:Pageable|Pinned|Device|Unknown|Managed|Array|Unified|Host|Device Static|Managed Static)"
_COPY = re.compile(
    rf"Mem(?:cpy|set)(?: [A-Z]to[A-Z]| Unknown)?(?: \({_KIND}(?: -> {_KIND})?\))?"
    r"|Copy(?:Device|Host|Peer)To(?:Device|Host|Peer)"
)
_STEP = re.compile(r"ProfilerStep#\d+|ProfilerStep\*|PyTorch Profiler \(\d+\)|Iteration Start: PyTorch Profiler")
_OPTIMIZER = re.compile(r"(Optimizer\.(?:step|zero_grad)#)(\w+)(\.(?:step|zero_grad))")
_LOADER = re.compile(
    r"enumerate\(DataLoader\)#_(?:MultiProcessing|SingleProcess)DataLoaderIter\.__next__|enumerate\(DataPipe\)#"
)
_REGION = re.compile(
    r"Torch-Compiled Region(?:: \d+/\d+)?|TorchDynamo Cache Lookup|CompiledFunction(?:Backward)?"
    r"|Pregraph bytecode|AOTDispatcher Runtime Wrapper Prologue"
)
_BACKEND = re.compile(r"((?:nccl|gloo|mpi|ucc|xccl|hccl):)(\w+)")
_TIMED = re.compile(r"([\w.<>]+)( \(dynamo_timed\))")
_PHASE = re.compile(r"(.*)_data: (?:.*, )?compile_id=(\S+)", re.DOTALL)
_NODE = re.compile(r"(autograd::engine::evaluate_function: )(.*)", re.DOTALL)
# What programs call the parts of a step themselves, and what PyTorch calls those of FSDP, before names of modules.
_PART = re.compile(r"((?:##? *)?(?:\([BW]\)|backward\b|optim(?:izer)?\b|zero_grad\b))(.*)", re.DOTALL | re.IGNORECASE)
_SHARDED = re.compile(r"((?:FSDP::|FullyShardedDataParallel\.)\w+)(.*)", re.DOTALL)
_REDUCER = re.compile(r"torch\.distributed\.ddp\.reducer::\w+")
_FX = re.compile(r"[\w.]*_compile(?:_\w+)?|Inductor\w*|CachingAutotuner\.\w+")
_WORDS_OF_C = """
    anonymous auto bool char class clone const double enum false float half int lambda long namespace operator short
    signed size_t struct true unsigned void
"""
_TYPES = frozenset(_WORDS_OF_C.split())
_OTHERS = {
    *("Context Sync", "Stream Sync", "Event Sync", "Stream Wait Event", "Device Sync", "Buffer Flush", "[memory]"),
    *("Lazy Function Loading", "Runtime Triggered Module Loading", "Command Buffer Full", "Instrumentation"),
    *("Resource", "Activity Buffer Request", "CUPTI Resource", "Unknown", "INVALID", "record_param_comms"),
    *("fallback_function", "TensorExpr"),  # TorchScript's
    *("DistributedDataParallel.forward", "Python GC", OWN_WAIT, *COMPILE_SPANS),
}
# A word by which a kernel's kind is known, for a stand-in that has lost it.
KINDS = {
    "communication": "cross_device_reduce",
    "attention": "attention",
    "matmul": "gemm",
    "reduction": "reduce",
    "elementwise": "pointwise",
    "embedding": "embedding",
    "convolution": "convol",
    "normalisation": "layer_norm",
    "sparse": "spmm",
    "optimizer": "multi_tensor_apply",
    "pooling": "max_pool",
    "recurrent": "lstm",
    "sort": "unique",
    "scatter/gather": "gather",
    "random": "dropout",
    "fft": "fft",
    "copy": "direct_copy",
    "linear algebra": "potrf",
}


class Names:
    """Stand-ins of the names of events, each decided once, by the category of the event that has it first."""

    def __init__(self, stand_ins: StandIns, places: Places) -> None:
        self._stand_ins, self._places = stand_ins, places
        self._known: dict[str, str] = {}

    def known(self, name: str) -> str:
        """What stands for a name that was seen; of any other, nothing is shown."""
        return self._known.get(name) or self._stand_ins.of("event", name)

    def of(self, category: str, name: str) -> str:
        """What stands for the name of an event of that category."""
        if name not in self._known:
            self._known[name] = self._of(category, name)
        return self._known[name]

    def _of(self, category: str, name: str) -> str:
        if not name or name in _OTHERS or _STEP.fullmatch(name) or _REGION.fullmatch(name):
            return name
        if category in GPU_CATEGORIES:
            return name if _COPY.fullmatch(name) else self.kernel(name)
        if category in RUNTIME_CATEGORIES:
            return name if _RUNTIME.fullmatch(name) and public.is_call(name) else self._stand_ins.of("call", name)
        if (frame := profiled(name)) is not None and category == "python_function":
            shown = self._places.function(frame.file, frame.function)
            return f"{self._places.path(frame.file)}({frame.line}): {shown}"
        if category == "python_function":
            return self._function(name)
        if frame is None and graph_builder(name):
            return self._builder(name)
        return self._annotation(name) or self._operator(category, name)

    def _builder(self, name: str) -> str:
        """What stands for an operator that builds a graph, or for a span in which one is built: such a span has one of
        a few names."""
        namespace, colons, operator = name.rpartition("::")
        if not colons or public.names_a_builder(operator):
            return name
        stand_in = self._stand_ins.identifier("operator", operator)
        shapes = (f"{namespace}::{known}_{stand_in}" for known in ("relabel", "get_neighbor_pairs"))
        return next(filter(graph_builder, shapes))

    def _function(self, name: str) -> str:
        if name.startswith(MODULE_CALL):
            return MODULE_CALL + self.module(name.removeprefix(MODULE_CALL))
        built_in = _BUILT_IN.fullmatch(name)
        if built_in is None:
            return self._stand_ins.of("function", name)
        kind, function, owner, address = built_in.groups()
        if function not in public.names("functions") and not _is_builtin(function):
            function = self._stand_ins.identifier("function", function)
        of = f" of {self._owner(owner)} object" if owner else ""
        at = f" at {self._stand_ins.of('address', address)}" if address else ""
        return f"<built-in {kind} {function}{of}{at}>"

    def _owner(self, owner: str) -> str:
        is_known = owner.startswith(
            ("torch.", "numpy.", "_thread.", "_io.", "collections.")
        ) and public.is_of_libraries(owner)
        return (
            owner
            if is_known or owner in ("Tensor", "type", "PyCapsule") or _is_builtin(owner) or public.is_class(owner)
            else self._stand_ins.of("class", owner)
        )

    def module(self, numbered: str) -> str:
        """What stands for `GCNConv_0`: a class of PyTorch's or PyG's stays."""
        name, underscore, number = numbered.rpartition("_")
        if not underscore or not number.isdecimal():
            name, underscore, number = numbered, "", ""
        shown = name if public.is_class(name) else self._stand_ins.of("class", name)
        return f"{shown}{underscore}{number}"

    def _annotation(self, name: str) -> str | None:
        """What a program or a library calls a span, where that is known."""
        if _LOADER.fullmatch(name):
            return name
        if optimizer := _OPTIMIZER.fullmatch(name):
            return f"{optimizer[1]}{self.module(optimizer[2])}{optimizer[3]}"
        if graph := GRAPH_CALL.fullmatch(name):
            return f"## Call CompiledFxGraph {self.graph(graph[1])} ##"
        if (backend := _BACKEND.fullmatch(name)) and public.is_of_libraries(backend[2]):
            return name
        if timed := _TIMED.fullmatch(name):
            return f"{self.of('cpu_op', timed[1])}{timed[2]}"
        if phase := _PHASE.fullmatch(name):
            compilation = public.compile_id(phase[2], self._stand_ins)
            return f"{self.of('cpu_op', phase[1])}_data: compile_id={compilation}"
        if node := _NODE.fullmatch(name):
            return f"{node[1]}{self._node(node[2])}"
        if (part := _PART.fullmatch(name)) or ((part := _SHARDED.fullmatch(name)) and public.is_of_libraries(part[1])):
            return name if not part[2].strip(" #") else f"{part[1]} {self._stand_ins.of('annotation', name)}"
        is_libraries = _FX.fullmatch(name) or _REDUCER.fullmatch(name)
        return name if is_libraries and public.is_of_libraries(name) else None

    def graph(self, key: str) -> str:
        """What stands for the key of a compiled graph, which is computed from the user's code."""
        return self._stand_ins.of("graph", key)

    def _node(self, name: str) -> str:
        if public.is_class(name):
            return name
        stem = re.sub(r"Backward\d*$", "", name)
        return f"{self._stand_ins.of('class', stem)}{name[len(stem) :]}"

    def _operator(self, category: str, name: str) -> str:
        if category == "cpu_op":
            namespace, colons, rest = name.partition("::")
            if (
                colons
                and namespace in public.NAMESPACES
                and (rest in public.names("operators") or public.is_of_libraries(rest))
            ):
                return name
            if colons:
                shown = namespace if namespace in public.NAMESPACES else self._stand_ins.of("library", namespace)
                return f"{shown}::{self._stand_ins.of('operator', rest)}"
            if public.is_class(name) or public.is_phase(name):
                return name
            if re.search(r"Backward\d*$", name):
                return self._node(name)
            if re.match(r"triton_|cpp_fused|graph_\d+_cpp_fused", name):
                return self.kernel(name)
        kinds = {"cpu_op": "operator", "user_annotation": "annotation", "gpu_user_annotation": "annotation"}
        return self._stand_ins.of(kinds.get(category, "event"), name)

    def kernel(self, name: str) -> str:
        """What stands for a kernel: identifiers of its name that are no library's are replaced, or all of it."""
        head = re.sub(r"^(?:void|__global__)\s+", "", name.replace("(anonymous namespace)::", ""))
        first = _QUALIFIED.match(head)
        if first is None or not self._is_public(first[0]):
            shown = self._of_family(first[0] if first else "", name)
        else:
            shown = _QUALIFIED.sub(lambda found: self._identifier(found[0]), name)
        kind = kernel_class(name)
        if kernel_class(shown) != kind and kind != UNKNOWN:
            shown = f"{self._stand_ins.of('kernel', name)}_{KINDS[kind]}"
        if COMMUNICATION.fullmatch(name) and not COMMUNICATION.fullmatch(shown):
            shown = f"{self._stand_ins.of('kernel', name)}_{KINDS['communication']}"
        return shown

    def _of_family(self, first: str, name: str) -> str:
        """The known beginning of a generated name, as in `triton_poi_fused_add_kernel-1`; none of any other name."""
        parts = first.split("_")
        known = next((k for k, part in enumerate(parts) if not public.is_of_libraries(part)), len(parts))
        begins = "_".join(parts[:known]) if parts[0] in public.FAMILIES else ""
        return "_".join(filter(None, [begins, self._stand_ins.of("kernel", name)]))

    def _is_public(self, qualified: str) -> bool:
        namespace, colons, _ = qualified.partition("::")
        is_known = not colons or namespace in public.NAMESPACES or namespace.partition("_")[0] in public.FAMILIES
        return is_known and all(map(public.is_of_libraries, _IDENTIFIER.findall(qualified)))

    def _identifier(self, qualified: str) -> str:
        if qualified in _TYPES or self._is_public(qualified):
            return qualified
        return self._stand_ins.of("type", qualified)


def _is_builtin(name: str) -> bool:
    owners = (builtins, str, bytes, list, dict, set, tuple, int, float, _thread.LockType, gc)
    return name in ("module", "PyCapsule") or any(name in dir(owner) for owner in owners)
