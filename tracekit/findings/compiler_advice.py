"""Is anything compiled, and replayed as CUDA graphs? What kept the compiler from compiling all of a step, by its own
ledger: recompile limits, CUDA graphs that it did not record, graph breaks? And what is to be done about a guard that
failed or a graph that breaks?
"""

import re

import numpy as np

from tracekit.analyses.compiled_code import is_on_purpose
from tracekit.base.intervals import NO_INTS, NO_TIME, Ints, Union, distinct
from tracekit.base.names import sanitize
from tracekit.base.units import count, many
from tracekit.findings import one_by_one
from tracekit.findings.finding import Finding, Where
from tracekit.findings.holes import OFTEN
from tracekit.profile import Profile
from tracekit.profile.cached import once
from tracekit.run import Break, Ledger
from tracekit.run.settings import BACKENDS, DEFAULT
from tracekit.trace.roles import COMPILED_REGION, GUARDS
from tracekit.trace.rows import enclosing
from tracekit.vocabulary.code_owner import may_be_the_users, plain_function, stacked
from tracekit.vocabulary.event_names import PREPARATION

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
_COMPILED_CALL = re.compile(r"Torch-Compiled Region.*|CompiledFunction.*", re.DOTALL)  # the latter within the former
_PREPARES = re.compile(re.escape(PREPARATION))
_OLDEST_OF_TRITON = 7  # compute capability, major
_BREAKS = "https://docs.pytorch.org/docs/stable/compile/programming_model.fix_graph_breaks.html"
_RECOMPILES = "https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html"
_TREES = "https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html"


def is_compiled(profile: Profile) -> bool:
    """Whether torch.compile is at work already: it was asked for, or it, its guards or its work is in the trace."""
    requested = profile.variant is not None and profile.variant.requested.compile
    return requested or profile.trace.census.any(
        lambda roles: roles.named(COMPILED_REGION) | roles.named(_GENERATED) | roles.named(GUARDS) | roles.compile_span
    )


def can_compile(profile: Profile) -> bool:
    """Whether torch.compile works on a GPU of the recording, as far as is known: older ones, Triton refuses."""
    return not (majors := profile.trace.compute_majors) or max(majors) >= _OLDEST_OF_TRITON


def graphs_recorded(profile: Profile) -> float:
    """How many recordings of CUDA graphs begin in a counted step."""
    trace = profile.trace
    rows = trace.where(lambda part: part.roles.runtime & part.roles.named(_BEGINS_RECORDING))
    return float(profile.begins_in_counted(rows).sum()) / profile.counted_steps


def graph_replays(profile: Profile) -> int:
    """How many calls of counted steps replay a CUDA graph."""
    replays = profile.trace.where(lambda part: part.process & part.roles.graph_launch)
    return int(profile.begins_in_counted(replays).sum())


@once
def graphs_prepared(profile: Profile) -> tuple[Union, Ints]:
    """When compiled calls prepare a graph and launch nothing, and these calls in counted steps; none where few steps
    prepare any, or graphs are replayed."""
    trace = profile.trace
    prepared = trace.where(lambda part: part.roles.host & part.roles.named(_PREPARES))
    prepared = prepared[profile.begins_in_counted(prepared)]
    step_of_each = trace.steps.of(trace.ts_ns[prepared])
    in_few_steps = not len(prepared) or len(distinct(step_of_each)) < OFTEN * profile.counted_steps
    if in_few_steps or graph_replays(profile) > len(prepared):
        return NO_TIME, NO_INTS
    calls = enclosing(trace, prepared, lambda part: part.process & part.roles.host & part.roles.named(_COMPILED_CALL))
    launches = trace.where(lambda part: part.process & part.roles.launch)
    launches_ns = trace.ts_ns[launches]
    quiet = NO_TIME
    for call in distinct(calls[calls >= 0]).tolist():
        begins_ns = trace.ts_ns[prepared[calls == call][0]]
        ends_ns = trace.events_at(np.array([call])).end_ns[0]
        own = launches[slice(*np.searchsorted(launches_ns, (begins_ns, ends_ns)))]
        own = own[trace.track[own] == trace.track[call]]
        first_ns = trace.ts_ns[own].min(initial=ends_ns)
        last_ns = trace.events_at(own).end_ns.max(initial=begins_ns)
        quiet = quiet.plus(Union.of(np.array([begins_ns, last_ns]), np.array([first_ns, ends_ns])))
    return quiet, distinct(calls[calls >= 0])


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
    if inner:  # what the user calls there; what that calls itself, the user cannot tell
        layer = _LAYER.fullmatch(inner[0].file) if called[0] in ("forward", "__call__") else None
        callee: str | None = called[0]
        size = SIZES.get(called[0])
        if layer is not None and layer[1] == "aggr":
            callee, size = "the aggregation", "dim_size"
        elif layer is not None:
            callee, size = NORMS.get(layer[2]), "batch_size"
        if callee is not None and size is not None:
            return f"Give {callee} the size that it reads from the data: {size}=…"
    if "repeat_interleave" in entry.reason:
        return "Give repeat_interleave the number of its results: output_size=…"
    return None


def against_failure(error: str) -> str | None:
    """What to do so that compiling does not fail like that; None where the error does not tell."""
    return _ONCE if _DOUBLE_BACKWARD.search(error) else None


def obstacles(ledger: Ledger) -> list[Finding]:
    """A finding for each kind that there is; breaks on purpose are none. What they cost, a trace tells."""
    findings = []
    if limits := ledger.limits:
        names = [*dict.fromkeys(limit.name or "a function" for limit in limits)]
        and_more = f" and {count(len(names) - 1)} more" if len(names) > 1 else ""
        location = Where(limits[0].file, limits[0].line, limits[0].name)
        reason = limits[0].reason or ""
        advice = against_guard(reason) or "Find out what changes from call to call and mark it dynamic"
        findings.append(
            Finding(
                "recompile_limit",
                f"Recompile limit reached{location.at}: {names[0]}{and_more} run{'' if and_more else 's'} eagerly",
                why=f"The guard that failed last: {guard_of(reason)}." if reason else "",
                do=f"{advice.rstrip('.')}; or raise torch._dynamo.config.recompile_limit.",
                where=location,
                link=_RECOMPILES,
            )
        )
    if skips := ledger.skips:
        location, is_alone = Where(skips[0].file, skips[0].line), len(skips) == 1
        graphs = "One compiled graph is" if is_alone else f"{count(len(skips))} compiled graphs are"
        findings.append(
            Finding(
                "cuda_graphs_skipped",
                f"{graphs} not replayed as CUDA graph{'' if is_alone else 's'}{location.at}",
                why=f"{'The reason' if is_alone else 'The first reason'}: {skips[0].reason}.",
                do="Keep the addresses and shapes of inputs fixed, and keep what CUDA graphs cannot hold (work on the "
                "CPU, inputs that are modified) out of the compiled function.",
                where=location,
                link=_TREES,
            )
        )
    if avoidable := [entry for entry in ledger.breaks if not is_on_purpose(entry)]:
        findings.append(_breaks(avoidable))
    return findings


def _breaks(breaks: list[Break]) -> Finding:
    by_place: dict[tuple[str | None, int | None, str], list[Break]] = {}
    for graph_break in breaks:
        by_place.setdefault((graph_break.file, graph_break.line, graph_break.reason), []).append(graph_break)
    first = max(by_place.values(), key=len)[0]
    advice = against_break(first) or (
        "Rewrite that line or, if it is in a library, move the call that leads there out of the compiled function (the "
        "section on graph breaks has your lines; with fullgraph=True the first break raises an error)."
    )
    location, is_alone = Where(first.file, first.line), len(by_place) == 1
    most_often = "" if is_alone or not location.at else ", most often"
    often = "" if is_alone else "The most frequent reason: "
    met = f" {'It is' if is_alone else 'They are'} met by {count(len(breaks))} compilations."
    return Finding(
        "graph_breaks",
        f"{many(len(by_place), 'graph break')}{most_often}{location.at}",
        why=f"{often}{first.reason.rstrip('.')}.{met if len(breaks) > len(by_place) else ''}",
        do=advice,
        where=location,
        link=_BREAKS,
        confidence="inferred",
    )
