"""On a CPU: which operator takes the time?"""

import re
from collections.abc import Iterator

import numpy as np

from tracekit.findings import Finding, evidence, rule
from tracekit.findings.compiler_advice import backend_without_fusion, is_compiled
from tracekit.findings.counted import stretch
from tracekit.findings.culprits import by_name, plain, where_of_buckets, where_of_event
from tracekit.findings.finding import Where
from tracekit.findings.rules.compiled_code import break_time
from tracekit.intervals import Ints, Union, occurring
from tracekit.kernel_class import kernel_class
from tracekit.profile import Profile
from tracekit.trace.facts.devices import device_side_missing
from tracekit.trace.rereading import arguments
from tracekit.trace.roles import COMPILED_CODE, OPERATOR
from tracekit.units import duration, percent

_LEAST = 0.5  # of a step: otherwise something else bounds it
_OF_A_LINE = 0.3
_STANDS_OUT = 0.2  # of the compute time: advice about an operator that takes less would gain little
_TOLD = 0.01  # of a step: shorter ones are not told
_NAMED = 3
_LINK = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#cpu-specific-optimizations"
# By the kind of work that the operator does.
_ADVICE = {
    **dict.fromkeys(
        ("scatter/gather", "sparse", "embedding", "sort"),
        "Move fewer rows: sort the edges and use sparse or segmented products, or gather what is needed only once. "
        "This saves at most {most} a step.",
    ),
    "matmul": "Try {smaller}one thread per core (torch.set_num_threads); a GPU is made for such products.",
    "convolution": (
        "Try {smaller}channels_last and one thread per core (torch.set_num_threads); a GPU is made for such products."
    ),
}
# By whether anything is compiled: then the operator runs outside of the graphs.
_RANDOM = {
    False: "Draw fewer random numbers: apply dropout to a smaller tensor, or compile the model, which fuses the "
    "drawing with what follows it. This saves at most {most} a step.",
    True: "Draw fewer random numbers: apply dropout to a smaller tensor, or inside of the compiled function, without "
    "graph breaks around it, so that it is fused. This saves at most {most} a step.",
}
_CPP_KERNEL = re.compile(r"(graph_\d+_)?cpp_fused_")  # a loop that Inductor generated, named after what it fuses
_COMPILED = "Try {smaller}more threads (torch.set_num_threads) or a GPU: this is compiled already."
_AUTOCAST = re.compile(r".*autocast_mode\.py\(\d+\): __enter__", re.DOTALL)
_PRODUCTS = ("matmul", "convolution")
_HALF = {"c10::BFloat16", "c10::Half"}
_SAMPLED = 64  # products whose types are looked up
_MANY = {
    False: "Give each operator more to do, with larger batches, or fuse them (torch.compile): none of them stands out.",
    True: "Give each operator more to do, with larger batches, or bring more of them into the compiled graphs, without "
    "graph breaks: none of them stands out.",
}
_RECURRENT = re.compile(r".*(?:rnn|lstm|gru)_.*", re.DOTALL)
_STEP_BY_STEP = (
    "Use larger batches or shorter sequences: the time steps of a recurrent layer wait for each other. A GPU may help; "
    "compiling leaves the layer as it is."
)
_OTHERWISE = {
    False: "Compile the model (torch.compile), so that operators are fused and read and write memory only once.",
    True: "Look for graph breaks around it: it was not fused with others, because it runs outside of the compiled "
    "graphs, or because the compiler has no kernel for it.",
}


@rule("cpu_compute")
def cpu_compute(profile: Profile) -> Iterator[Finding]:
    """`cpu_compute`, in a trace of work that was meant to run on a CPU."""
    mean, trace = profile.means["wall"], profile.trace
    if mean is None or trace.device != "cpu" or profile.parts["cpu_compute"] < _LEAST * mean.step_ns:
        return
    if device_side_missing(trace) is not None:
        return
    pieces, waits = profile.attribution.pieces, profile.waits_in_collectives
    computing = pieces.of("cpu_compute") & (2 * waits.within(pieces.start, pieces.end) <= pieces.dur)
    culprits = [culprit for culprit in by_name(profile, computing) if len(culprit.rows)]
    if not culprits:
        return
    first = culprits[0]
    shares = [f"{plain(first.name)} for {duration(first.step_ns)} a step ({percent(first.step_ns / mean.step_ns)})"]
    smaller = [(plain(culprit.name), culprit.step_ns / mean.step_ns) for culprit in culprits[1:_NAMED]]
    shares += [f"{name} {percent(part)}" for name, part in smaller if part >= _TOLD]
    line, share = where_of_buckets(profile, "cpu_compute")
    location = where_of_event(profile, _on_its_costliest_line(profile, first.rows), plain(first.name))
    line_clause = ""
    if share >= _OF_A_LINE:
        line_clause = f"Of this, {percent(share)} is{line.at}."
        if location.line is None:
            location = Where(line.file, line.line, line.function, plain(first.name), module=location.module)
    breaks = break_time(profile)  # re-entering compiled code computes nothing
    claim: Union = pieces.union(computing).minus(waits)
    claim = claim if breaks is None else claim.minus(breaks.claim)
    advice = _MANY[is_compiled(profile)]
    if (gpu := _unused_gpu(profile)) is not None:
        advice = f"Move the model and its batches to the GPU: nothing was allocated on the {gpu} of this machine."
    elif first.step_ns >= _STANDS_OUT * mean.parts["cpu_compute"]:
        advice = _advice(profile, first.name).replace(
            "{most}", duration(first.step_ns / stretch(profile, mean.step_ns))
        )
    yield Finding(
        "cpu_compute",
        f"CPU-bound, most of all {plain(first.name)}{location.at}",
        why=f"Operators compute on the CPU: {', '.join(shares)}. {line_clause}".strip(),
        do=advice,
        where=location,
        evidence=evidence(profile, np.asarray(first.rows)),
        link=_LINK,
        claim=claim,
    )


def _on_its_costliest_line(profile: Profile, rows: Ints) -> int:
    """The costliest of these events on the line that takes most of their time: other lines may compute more, but by
    other operators."""
    groups = [profile.ownership.owners.rows[owner].group for owner in profile.ownership.of_events(rows).tolist()]
    group = np.array(groups, np.int64)
    return int(rows[group == np.bincount(group, profile.trace.dur_ns[rows]).argmax()][0])


def _unused_gpu(profile: Profile) -> str | None:
    """The name of a GPU that the capture knows, where training allocated nothing on it; None if that is not known."""
    if profile.run is None or profile.variant is None or profile.variant.memory.peak_allocated_bytes != 0:
        return None
    match profile.run.environment.get("gpus"):
        case [{"name": str(name)}, *_]:
            return plain(name)
    return None


def _advice(profile: Profile, operator: str) -> str:
    if COMPILED_CODE.fullmatch(operator) or _CPP_KERNEL.match(operator):
        advice = _COMPILED
    elif _RECURRENT.fullmatch(operator):
        advice = _STEP_BY_STEP
    else:
        kind, backend = kernel_class(operator, operator), backend_without_fusion(profile)
        if kind not in _ADVICE and backend is not None:
            return f"The backend {backend} runs each operator by itself: compile with one that fuses them (inductor)."
        advice = _ADVICE.get(kind) or (_RANDOM if kind == "random" else _OTHERWISE)[is_compiled(profile)]
    return advice.replace("{smaller}", _smaller(profile)) if "{smaller}" in advice else advice


def _smaller(profile: Profile) -> str:
    """The advice to compute in bfloat16, as the beginning of a list; empty where products do so already."""
    trace = profile.recording.trace
    operators = trace.where(lambda part: part.roles.kind == OPERATOR)
    codes, name = occurring(trace.name_codes[operators])
    is_product = [kernel_class(trace.names[code], trace.names[code]) in _PRODUCTS for code in codes.tolist()]
    rows = operators[np.array(is_product, bool)[name]][:_SAMPLED]
    types = {kind for call_arguments in arguments(trace, rows).values() for kind in call_arguments.types}
    if types & _HALF or trace.census.any(lambda roles: roles.named(_AUTOCAST)):
        return ""
    return "bfloat16 under autocast, " if types else "bfloat16 under autocast (unless it is on already), "
