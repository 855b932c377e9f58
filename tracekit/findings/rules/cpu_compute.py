"""On a CPU: which operator takes the time? With a GPU: does the CPU compute something in a step, or does a library
prepare data in the training loop itself, while the GPU waits for it?
"""

import re
from collections.abc import Iterator

import numpy as np

from tracekit.base.intervals import NO_INTS, Ints, distinct, occurring
from tracekit.base.pages import Cure
from tracekit.base.units import count, duration, many, percent
from tracekit.engine.buckets import SLOW_HOST
from tracekit.findings import Finding, FindingPage, evidence, rule, time_of_rules
from tracekit.findings.compiler_advice import backend_without_fusion, is_compiled
from tracekit.findings.counted import Steps, stretch
from tracekit.findings.culprits import by_name, plain, time_blamed_on, where_of_buckets, where_of_event
from tracekit.findings.finding import Where
from tracekit.findings.kernels import time_of
from tracekit.findings.loops import busiest_line, evidence_of, vectorise
from tracekit.findings.page import COMPILE
from tracekit.profile import Profile, growth
from tracekit.trace.facts.coverage import device_side_missing
from tracekit.trace.rereading import arguments
from tracekit.trace.roles import COMPILED_CODE, OPERATOR, PYTHON
from tracekit.trace.rows import enclosing, outermost
from tracekit.vocabulary.kernel_class import kernel_class

_MIN_SHARE_OF_STEP = 0.5  # of a step: otherwise something else bounds it
_OF_A_LINE = 0.3
_STANDS_OUT = 0.2  # of the compute time: advice about an operator that takes less would gain little
_MIN_SHARE_TO_REPORT = 0.01  # of a step: shorter ones are not told
_MAX_NAMED_OPERATORS = 3
_LINK = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#cpu-specific-optimizations"
# By the kind of work that the operator does.
_ADVICE = {
    **dict.fromkeys(
        ("scatter/gather", "sparse", "embedding", "sort"),
        "Move fewer rows: sort the edges and use sparse or segmented products, or gather what is needed only once. "
        "This saves at most {most} a step.",
    ),
    "matmul": "{try}a GPU is made for such products.",
    "convolution": "{try}a GPU is made for such products.",
}
# By whether anything is compiled: then the operator runs outside of the graphs.
_RANDOM = {
    False: "Draw fewer random numbers: apply dropout to a smaller tensor, or compile the model, which fuses the "
    "drawing with what follows it. This saves at most {most} a step.",
    True: "Draw fewer random numbers: apply dropout to a smaller tensor, or inside of the compiled function, without "
    "graph breaks around it, so that it is fused. This saves at most {most} a step.",
}
_CPP_KERNEL = re.compile(r"(graph_\d+_)?cpp_fused_")  # a loop that Inductor generated, named after what it fuses
_COMPILED = "{try}a GPU computes faster: this is compiled already."
_AUTOCAST = re.compile(r".*autocast_mode\.py\(\d+\): __enter__", re.DOTALL)
_PRODUCTS = ("matmul", "convolution")
_HALF_TYPES = {"c10::BFloat16", "c10::Half"}
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
_LEAST_NS = 500_000  # at a time: dispatching an operator takes far less, and shorter ones are told with that
_WORKS = re.compile(r"(?:aten::(?!_?empty)|torchvision::|torchaudio::|torch_\w+::|pyg::)\w+")
_CUDA_PAGE = "https://docs.pytorch.org/docs/stable/notes/cuda.html"
# Frames of libraries that prepare images, text, sound and tables, such as `PIL/Image.py(2100): resize`.
_PREPARES = re.compile(
    r"(?:.*[/\\])?(?P<library>PIL|cv2|albumentations|skimage|imageio|numpy|pandas|scipy|librosa|torchaudio"
    r"|torchvision(?=[/\\](?:transforms|io)\b)|torch_geometric(?=[/\\]transforms\b)|tokenizers|sentencepiece|nltk|spacy"
    r"|transformers(?=[/\\].*(?:image_processing|image_transforms|processing_|tokenization|feature_extraction)))"
    r"[/\\][^(]*\.py\(\d+\): (?P<function>\S+)",
    re.DOTALL,
)
_DATA_LOADING_PAGE = "https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading"
_AHEAD = (
    "Prepare batches ahead, in the workers of a data loader (in its dataset or collate_fn), or once before training."
)
_AFTER = "Leave this until after the loop, or to another thread or process while the next step runs."


_PAGE = FindingPage(
    "cpu_compute",
    "Operators compute on the CPU",
    says="""In a trace without a GPU: operators compute for at least half of a step, and one is named, with its line.
        In a training on a GPU: an operator that calls nothing of the GPU usually takes 0.5 ms or more, and the GPU
        waits for it; each such operator has a finding of its own.""",
    slow="""On a CPU, that is the training itself; message passing is bound by memory there, since gathers and scatters
        move rows and compute little. Beside a GPU, a tensor that was left on the CPU makes the host compute what the
        GPU does many times faster, and holds up all launches.""",
    cost="""Without a GPU, it claims the bucket `cpu_compute`, and the cost is that time itself: not what a faster
        kernel would save. Beside a GPU, it is the GPU's idle time that these operators are blamed for.""",
    limits="""How fast an operator could be is not known: without a GPU, the finding says where to look, not that
        something is wrong. Operators of backward are left out beside a GPU: they run where forward did. Under
        compilation, the operator may be a loop that Inductor generated, named after what it fuses.""",
    cures=(
        Cure(
            """Create the tensors on the GPU (`device=…`), or do the work ahead, in a worker of the loader. Either draws
            other random numbers.""",
            "results",
        ),
        COMPILE,
        Cure("Move fewer rows: sort the edges, use sparse or segmented products.", "rounding"),
        Cure("Use bfloat16 under autocast.", "results"),
        Cure("Try one thread per core (`torch.set_num_threads`).", "rounding"),
    ),
    links=(_LINK, _CUDA_PAGE),
)


@rule("cpu_compute", device="cpu", pages=(_PAGE,))
def cpu_compute(profile: Profile) -> Iterator[Finding]:
    """`cpu_compute`, in a trace of work that was meant to run on a CPU."""
    mean = profile.means["wall"]
    if mean is None or profile.parts["cpu_compute"] < _MIN_SHARE_OF_STEP * mean.step_ns:
        return
    if device_side_missing(profile.trace) is not None:
        return
    pieces, waits = profile.attribution.pieces, profile.waits_in_collectives
    computing = pieces.of("cpu_compute") & (2 * waits.within(pieces.start, pieces.end) <= pieces.dur)
    computing &= ~time_of_rules(profile, "graph_building").covers(pieces.start)
    culprits = by_name(profile, computing)
    if not culprits:
        return
    first = culprits[0]
    shares = [f"{plain(first.name)} for {duration(first.step_ns)} a step ({percent(first.step_ns / mean.step_ns)})"]
    smaller = [(plain(culprit.name), culprit.step_ns / mean.step_ns) for culprit in culprits[1:_MAX_NAMED_OPERATORS]]
    shares += [f"{name} {percent(part)}" for name, part in smaller if part >= _MIN_SHARE_TO_REPORT]
    line, share = where_of_buckets(profile, "cpu_compute")
    # The line that takes most of its time: other lines may compute more, but by other operators.
    owners, of_rows = profile.ownership.owners.rows, profile.ownership.of_events(first.rows)
    group = np.array([owners[owner].group for owner in of_rows.tolist()], np.int64)
    of_line = first.rows[group == np.bincount(group, profile.trace.dur_ns[first.rows]).argmax()]
    location = where_of_event(profile, int(of_line[0]), plain(first.name))
    line_clause = ""
    if share >= _OF_A_LINE:
        line_clause = f"Of this, {percent(share)} is{line.at}."
        if location.line is None:
            location = Where(line.file, line.line, line.function, plain(first.name), module=location.module)
    in_breaks = time_of_rules(profile, "compiled_code")  # re-entering compiled code computes nothing
    loop = busiest_line(profile)
    advice = growth.advice(profile.growth) or (vectorise(loop) if loop is not None else _MANY[is_compiled(profile)])
    if (gpu := _unused_gpu(profile)) is not None:
        advice = f"Move the model and its batches to the GPU: nothing was allocated on the {gpu} of this machine."
    elif not profile.growth and loop is None and first.step_ns >= _STANDS_OUT * mean.parts["cpu_compute"]:
        advice = _advice(profile, first.name).replace(
            "{most}", duration(first.step_ns / stretch(profile, mean.step_ns))
        )
    yield Finding(
        "cpu_compute",
        f"CPU-bound, most of all {plain(first.name)}{location.at}",
        why=f"Operators compute on the CPU: {', '.join(shares)}. {line_clause}".strip()
        + (evidence_of(loop) if loop is not None else ""),
        do=advice,
        where=location,
        evidence=evidence(profile, np.asarray(first.rows)),
        link=_LINK,
        claim=pieces.union(computing).minus(waits).minus(in_breaks),
    )


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
    if "{try}" not in advice:
        return advice
    # To compute in bfloat16 is no advice where products do so already.
    trace = profile.recording.trace
    operators = trace.where(lambda part: part.roles.kind == OPERATOR)
    codes, name = occurring(trace.name_codes[operators])
    is_product = [kernel_class(trace.names[code], trace.names[code]) in _PRODUCTS for code in codes.tolist()]
    rows = operators[np.array(is_product, bool)[name]][:_SAMPLED]
    types = {kind for call_arguments in arguments(trace, rows).values() for kind in call_arguments.types}
    options = ["bfloat16 under autocast" if types else "bfloat16 under autocast (unless it is on already)"]
    if types & _HALF_TYPES or trace.census.any(lambda roles: roles.named(_AUTOCAST)):
        options = []
    options += ["channels_last"] * (kernel_class(operator, operator) == "convolution")
    options += ["one thread per core (torch.set_num_threads)"] * (not _has_a_thread_per_core(profile))
    head = f"Try {', '.join(options)}; " if options else ""
    advice = advice.replace("{try}", head)
    return advice[0].upper() + advice[1:]


def _has_a_thread_per_core(profile: Profile) -> bool:
    """Whether more threads are no advice, as far as that is known."""
    environment = profile.run.environment if profile.run is not None else {}
    threads, cores = environment.get("threads"), environment.get("cpus_usable")
    return isinstance(threads, int) and isinstance(cores, int) and threads >= cores


def _computing(profile: Profile) -> Ints:
    """The operators that call nothing of the GPU and usually take long, if some keep the GPU waiting; not those of
    backward, which run where the forward did."""
    trace, pieces = profile.trace, profile.attribution.pieces
    works = trace.labels.fits(_WORKS)
    waits = pieces.of("dispatch") & (pieces.event >= 0) & (pieces.dur >= _LEAST_NS)
    blamed: Ints = distinct(pieces.event[waits]).astype(np.int64)
    blamed = blamed[works[trace.name_codes[blamed]] & (trace.kinds[blamed] == OPERATOR)]
    if not len(blamed):
        return blamed
    codes = distinct(trace.name_codes[blamed])
    alike = trace.where(lambda part: (part.roles.kind == OPERATOR) & np.isin(part.name_codes, codes) & part.lasting)
    calls = trace.where(lambda part: part.roles.runtime & part.process)
    for track in distinct(trace.track[alike]).tolist():  # also the outer ones, of those that are nested
        rows, call_starts = alike[trace.track[alike] == track], trace.ts_ns[calls[trace.track[calls] == track]]
        events = trace.events_at(rows)
        is_calling = np.searchsorted(call_starts, events.end_ns) > np.searchsorted(call_starts, events.ts_ns)
        alike = np.setdiff1d(alike, rows[is_calling])
    codes = distinct(trace.name_codes[alike])
    usual = ((code, np.median(trace.dur_ns[alike[trace.name_codes[alike] == code]])) for code in codes.tolist())
    long = [code for code, median in usual if median >= _LEAST_NS]
    alike = alike[np.isin(trace.name_codes[alike], long)]
    forward: Ints = alike[enclosing(trace, alike, lambda part: part.roles.backward_node) < 0]
    return forward


@rule(
    "host_compute",
    timed=True,
    device="gpu",
    own_time=lambda profile: time_blamed_on(profile, _computing(profile)),
)
def host_compute(profile: Profile) -> Iterator[Finding]:
    """`cpu_compute` in a run on a GPU: operators that compute on the CPU, one finding for each name."""
    trace, pieces = profile.trace, profile.attribution.pieces
    rows = _computing(profile)
    rows = rows[profile.begins_in_counted(rows)]
    for code in distinct(trace.name_codes[rows]).tolist():
        operator_rows = rows[trace.name_codes[rows] == code]
        dur, steps = trace.dur_ns[operator_rows], len(distinct(trace.steps.of(trace.ts_ns[operator_rows])))
        name = plain(trace.names[code])
        culprit = where_of_event(profile, int(operator_rows[dur.argmax()]), name)
        often = duration(dur.sum() / profile.counted_steps) + " a step"
        if steps < profile.counted_steps:
            often = f"{duration(dur.sum())} in all, in {count(steps)} of {many(profile.counted_steps, 'step')}"
        yield Finding(
            "cpu_compute",
            f"The GPU waits while the CPU computes {name}{culprit.at}",
            why=f"It computes on the CPU for {often}, and submits nothing to the GPU.",
            do="Let it work on the GPU (create its tensors with device=...), or do it ahead of the step, in a worker "
            "of the data loader.",
            where=culprit,
            evidence=evidence(profile, operator_rows),
            link=_CUDA_PAGE,
            claim=pieces.union(pieces.of(*SLOW_HOST) & np.isin(pieces.event, operator_rows)),
            host=time_of(profile, operator_rows),
        )


def _preparing(profile: Profile) -> Ints:
    """The outermost calls of such functions by the main thread in counted steps."""
    trace = profile.trace
    if not trace.labels.fits(_PREPARES).any():
        return NO_INTS
    main = trace.threads.main
    rows = trace.where(
        lambda part: (part.roles.kind == PYTHON) & part.roles.named(_PREPARES) & part.lasting & (part.track == main)
    )
    return outermost(trace, rows[profile.begins_in_counted(rows)])


_PREPROCESSING_PAGE = FindingPage(
    "preprocessing",
    "A library prepares data in the loop",
    says="""On the main thread, a function of a library that prepares data runs inside steps while the GPU idles: PIL,
        OpenCV, NumPy, pandas, SciPy, torchvision's and PyG's transforms, tokenizers, and others. Each function has a
        finding.""",
    slow="""What the main thread prepares is not prepared ahead: the next launch waits for it. In PyG, these are often
        transforms that are applied to each batch, and conversions through NumPy or SciPy.""",
    cost="It claims the GPU's idle time during the outermost of these calls.",
    limits="""It needs Python stacks, and knows these libraries by the paths of their files: functions of your own that
        prepare data are reported as `python_bound`.""",
    cures=(
        Cure(
            "Prepare in the dataset or in `collate_fn`, with workers. Workers draw random numbers of their own.",
            "results",
        ),
        Cure(
            "Prepare what is not random once, before training (`pre_transform`), and store the result.",
            "changes nothing",
        ),
        Cure(
            "Leave what comes after a step until after the loop, or to another thread that gets copies of the values.",
            "memory",
        ),
    ),
    links=(_DATA_LOADING_PAGE,),
)


@rule(
    "preprocessing",
    timed=True,
    device="gpu",
    own_time=lambda profile: time_of(profile, _preparing(profile)),
    pages=(_PREPROCESSING_PAGE,),
)
def preprocessing(profile: Profile) -> Iterator[Finding]:
    """`preprocessing`, one finding for each function of a library: the GPU's idle time inside of it."""
    trace, pieces = profile.trace, profile.attribution.pieces
    rows, waits = _preparing(profile), pieces.union(pieces.of(*SLOW_HOST))
    for code in distinct(trace.name_codes[rows]).tolist():
        calls = rows[trace.name_codes[rows] == code]
        call_time = time_of(profile, calls)
        match, claim = _PREPARES.fullmatch(trace.names[code]), call_time.common(waits)
        if match is None or not claim.total():
            continue
        culprit = where_of_event(profile, int(calls[trace.dur_ns[calls].argmax()]), match["function"])
        yield Finding(
            "preprocessing",
            f"The GPU waits for {match['function']} of {match['library']}{culprit.at}",
            why=f"It processes data in the loop itself for {duration(Steps.of(profile).mean(call_time))} a step.",
            do=_AFTER if "post" in match["function"] else _AHEAD,
            where=culprit,
            evidence=evidence(profile, calls),
            link=_DATA_LOADING_PAGE,
            claim=claim,
            host=call_time,
        )
