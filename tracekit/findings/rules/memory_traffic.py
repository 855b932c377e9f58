"""Do kernels use the GPU badly one by one? Elementwise ones that move memory more slowly than the GPU could, or more of
it than needed, each reading what the one before it wrote; tiny ones with gaps between them, although they are queued;
and long ones that leave most of the GPU empty.
"""

from collections.abc import Iterator

import numpy as np

from tracekit.base.intervals import Ints, Union, runs
from tracekit.base.pages import Cure
from tracekit.base.units import count, many, percent, size
from tracekit.findings import Finding, FindingPage, rule
from tracekit.findings.bandwidth import ELEMENTWISE, achieved, moved
from tracekit.findings.compiler_advice import can_compile, is_compiled
from tracekit.findings.kernels import blaming, kernels, of_classes, same_name_and_operator, share_of_work
from tracekit.findings.one_by_one import BETWEEN_NS, TINY_NS, optimizer_setting
from tracekit.findings.page import COMPILE, DROPOUT
from tracekit.profile import Profile
from tracekit.profile.recording_words import median

_LOW_BANDWIDTH = 0.5  # of the peak: plain kernels on contiguous tensors reach more than three quarters
_MEMORY_FORMAT_PAGE = "https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html"
_COMPILE_PAGE = "https://docs.pytorch.org/docs/stable/generated/torch.compile.html"
_WORTH_SAYING = 1 << 20  # bytes a step
_EAGER = "under torch.compile,"
_COMPILED = "inside of the compiled function, without graph breaks between them,"
_MANY_KERNELS = 50  # a step
_LEAST_NS = 10_000  # a shorter one is a tiny kernel, however full the GPU is
_LOW_OCCUPANCY = 0.15  # of the warps that the GPU can hold
_TOO_FEW_BLOCKS = 0.5  # blocks for each multiprocessor: half of the GPU has nothing to do
# These keep the tensor cores busy with few warps, by design.
_NEEDS_FEW = ("matmul", "convolution", "attention", "recurrent")
_OCCUPANCY_LINK = "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#occupancy"
_FEW_BLOCKS = (
    "Give each launch more to do: use larger batches, solve many small problems as one (bmm, segmented "
    "operators), or split a sum over a long dimension into two."
)
_FEW_WARPS = (
    "Registers or shared memory limit the number of blocks that fit: let {compiler} choose the kernel "
    '(mode="max-autotune"), or give each block less to hold.'
)


_BANDWIDTH_PAGE = FindingPage(
    "memory_bandwidth",
    "Elementwise kernels move memory slowly",
    says="""Elementwise kernels that move at least 128 MiB each reach less than half of the GPU's memory bandwidth. It
        needs recorded shapes, and a GPU whose bandwidth is known.""",
    slow="""Such kernels only move memory. Tensors that are not contiguous, were transposed, or have different memory
        formats are read in pieces, and most of each piece is not used.""",
    cost="It claims the time that these kernels take beyond what they would take at the peak bandwidth.",
    limits="""Bytes are worked out from shapes: each input and the output once. Smaller tensors are left out, since
        caches move them faster than memory could. Gathers and scatters of message passing are not elementwise: the
        section “gathering and scattering” lists them.""",
    cures=(
        Cure("Call `.contiguous()` once, before many uses; it makes a copy.", "memory"),
        Cure("Keep one memory format throughout the model.", "rounding"),
        COMPILE,
    ),
    links=(_MEMORY_FORMAT_PAGE,),
)


@rule("memory_bandwidth", pages=(_BANDWIDTH_PAGE,))
def memory_bandwidth(profile: Profile) -> Iterator[Finding]:
    """`memory_bandwidth`, which is not one of `VERDICTS`: what such kernels would gain at the peak."""
    reached = achieved(profile)
    if reached is None or reached.peak is None:
        return
    low = reached.per_second < _LOW_BANDWIDTH * reached.peak
    if not low.any():
        return
    trace, slow = profile.trace, reached.rows[low]
    rows = same_name_and_operator(profile, slow)
    if not len(rows):  # what the step launched runs in no counted one
        return
    rate = float(reached.bytes[low].sum() / trace.dur_ns[slow].sum()) * 1e9
    events = trace.events_at(rows)
    gained = np.round(trace.dur_ns[rows] * (1 - rate / reached.peak)).astype(np.int64)
    yield blaming(
        profile,
        rows,
        Finding(
            "memory_bandwidth",
            "Low memory bandwidth of elementwise kernels",
            why=f"Large ones move {size(rate)}/s, {percent(rate / reached.peak)} of the peak of {reached.device}.",
            claim=Union.of(events.end_ns - gained, events.end_ns),
            do="Give them contiguous tensors of one memory format, whose rows are read in order; fused "
            f"{'inside of the compiled function' if is_compiled(profile) else 'by torch.compile'}, they move less to "
            "begin with.",
            link=_MEMORY_FORMAT_PAGE,
            confidence="inferred",
        ),
    )


_UNFUSED_PAGE = FindingPage(
    "unfused_elementwise",
    "Elementwise kernels follow one another unfused",
    says="""In one step, two or more elementwise kernels follow each other on a stream, and no compiler generated them:
        each reads what the one before it wrote.""",
    slow="""Such kernels take as long as they move memory: activation, dropout, bias and norm each read and write the
        whole tensor. One kernel for all of them reads and writes it once.""",
    cost="""It claims all kernels of each chain but the longest, which is what a fused one takes. Where shapes were
        recorded, the finding says how many bytes fusing would keep in registers.""",
    limits="""That each kernel reads what the one before it wrote is assumed, so it is inferred: chains over different
        tensors save less. Views or Python between them may keep a compiler from fusing.""",
    cures=(
        Cure(
            f"Compile that part of the model, without graph breaks. {DROPOUT}",
            "rounding",
        ),
        Cure("For the optimizer, `foreach=True` or `fused=True`.", "rounding"),
        Cure("Use operators that exist fused: `addmm`, `F.layer_norm`, a loss on logits.", "rounding"),
    ),
    links=(_COMPILE_PAGE,),
)


@rule("unfused_elementwise", pages=(_UNFUSED_PAGE,))
def unfused_elementwise(profile: Profile) -> Iterator[Finding]:
    """`unfused_elementwise`, which is not one of `VERDICTS`: all but the longest kernel of each chain, at most."""
    trace = profile.trace
    rows = kernels(profile, lambda events: ~events.roles.communication)
    rows = rows[np.lexsort((rows, trace.track[rows]))]  # stream by stream
    fused = np.fromiter(("triton" in name for name in trace.names), bool, len(trace.names))
    fusible = of_classes(profile, rows, ELEMENTWISE) & ~fused[trace.name_codes[rows]]
    # Chains: such kernels that follow each other on one stream in one step. All but the last of each hand on what they
    # write; all but the longest are what a single kernel would save.
    dur, step = trace.dur_ns[rows], trace.steps.of(trace.ts_ns[trace.links.launch(rows)])
    step_and_track = (step + 1) * len(trace.tracks) + trace.track[rows]
    bounds = runs(np.where(fusible, step_and_track, -1))
    sizes = np.diff(bounds)
    chain = np.repeat(np.arange(len(sizes)), sizes)
    chained = fusible & (sizes[chain] > 1)
    shorter, handing_on = chained.copy(), chained.copy()
    shorter[np.lexsort((-dur, chain))[bounds[:-1]]] = False
    handing_on[bounds[1:] - 1] = False
    number = int((fusible[bounds[:-1]] & (sizes > 1)).sum())
    if not number:
        return
    steps, optimizer_arguments = profile.counted_steps, optimizer_setting(profile)
    of_optimizer = f"; {optimizer_arguments} does so for the optimizer" if optimizer_arguments else ""
    yield blaming(
        profile,
        rows[shorter],
        Finding(
            "unfused_elementwise",
            "Elementwise kernels follow one another unfused",
            why=f"{count(round((int(shorter.sum()) + number) / steps))} a step, in "
            f"{many(round(number / steps), 'chain')}{_bytes_saved(profile, rows[handing_on])}.",
            do=f"Fuse them: {_COMPILED if is_compiled(profile) else _EAGER} one kernel is made of each chain, "
            f"which reads and writes memory only once{of_optimizer}.",
            link=_COMPILE_PAGE,
            confidence="inferred",
        ),
    )


def _bytes_saved(profile: Profile, handing_on: Ints) -> str:
    """What is written only for the next in the chain to read, where the shapes are known."""
    work = moved(profile)
    is_intermediate = np.isin(work.rows, handing_on)
    saved = 2 * int(work.written[is_intermediate].sum())
    if saved < _WORTH_SAYING:
        return ""
    expected = np.isin(profile.sample.kernels, handing_on).sum()
    at_least = "at least " if is_intermediate.sum() < expected else ""
    return (
        f", writing to memory and reading back {at_least}{size(saved)} a step that a fused kernel would keep in "
        "registers"
    )


_TINY_PAGE = FindingPage(
    "tiny_kernels",
    "Gaps between queued tiny kernels",
    says="""A step has at least 50 kernels, half of them take less than 5 µs, and the GPU idles between them although
        the next one is queued.""",
    slow="""Between two kernels, the GPU takes a moment to finish the one and set up the other. Where kernels are as
        short as that, the gaps are a large part of the step, and a faster host changes nothing about it.""",
    cost="It claims the gaps between queued kernels (bucket `gpu_gap`) that are shorter than 10 µs.",
    limits="""Longer gaps have other reasons: see `queued_not_started`. CUDA graphs shorten such gaps, but do not
        remove them.""",
    cures=(
        Cure("Do more in each kernel: larger batches, several graphs in each.", "results"),
        COMPILE,
        Cure("Construct the optimizer with `foreach=True` or `fused=True`.", "rounding"),
    ),
    links=(_COMPILE_PAGE,),
)


@rule("tiny_kernels", timed=True, pages=(_TINY_PAGE,))
def tiny_kernels(profile: Profile) -> Iterator[Finding]:
    """`tiny_kernels`, which is not one of `VERDICTS`: the gaps between queued kernels, most of which take a few µs."""
    pieces, trace = profile.attribution.pieces, profile.trace
    is_gap = pieces.of("gpu_gap") & (pieces.dur < BETWEEN_NS)
    if not (is_gap & profile.counted[pieces.step]).any():
        return
    rows = kernels(profile, lambda events: ~events.roles.communication)
    steps = profile.counted_steps
    if len(rows) < _MANY_KERNELS * steps or np.median(trace.dur_ns[rows]) >= TINY_NS:
        return
    cures = ["larger batches", *(["torch.compile"] if can_compile(profile) and not is_compiled(profile) else [])]
    cures += [f"an optimizer with {optimizer_arguments}"] if (optimizer_arguments := optimizer_setting(profile)) else []
    yield blaming(
        profile,
        rows[trace.dur_ns[rows] < TINY_NS],
        Finding(
            "tiny_kernels",
            "Gaps between queued tiny kernels",
            why=f"{count(round(len(rows) / steps))} kernels a step take only {median(trace, trace.dur_ns[rows])} each "
            "(median), and the GPU idles between them although the next is queued.",
            claim=pieces.union(is_gap),
            do=f"Do more in each kernel: {', or '.join(cures)}.",
            link=_COMPILE_PAGE,
        ),
    )


_OCCUPANCY_PAGE = FindingPage(
    "low_occupancy",
    "Kernels leave most of the GPU empty",
    says="""Kernels of 10 µs or more have fewer than half a block for each multiprocessor, or fill less than 15 % of
        the warps that the GPU can hold, by the profiler's estimate.""",
    slow="""A kernel with few blocks leaves multiprocessors without work, however fast the others are. Reductions over
        one long dimension, scans, sorts, and products of tall, narrow matrices are such kernels; a node of very high
        degree can make one thread or block do most of the work.""",
    cost="It claims the time of these kernels: an upper bound, since a full GPU takes time, too.",
    limits="""Occupancy is the profiler's estimate, not a measurement, and low occupancy is no defect where a kernel
        keeps its units busy with few warps: products, convolutions, attention and recurrent layers are judged by their
        blocks alone. Kernels of other streams that run meanwhile are not considered.""",
    cures=(
        Cure("Give each launch more to do: larger batches.", "results"),
        Cure("Solve many small problems as one: `bmm`, segmented operators.", "rounding"),
        Cure("Split a sum over a long dimension in two.", "rounding"),
        Cure('Let the compiler choose kernels: `mode="max-autotune"`.', "rounding"),
    ),
    links=(_OCCUPANCY_LINK,),
)


@rule("low_occupancy", pages=(_OCCUPANCY_PAGE,))
def low_occupancy(profile: Profile) -> Iterator[Finding]:
    """`low_occupancy`, which is not one of `VERDICTS`: kernels with too few blocks, or too few warps (estimated)."""
    trace, sample = profile.trace, profile.sample
    dur, occupancy, blocks = trace.dur_ns[sample.kernels], sample.occupancy, sample.blocks_per_sm
    needs_few, communicates = (
        of_classes(profile, sample.kernels, work_kinds) for work_kinds in (_NEEDS_FEW, ("communication",))
    )
    empty = (blocks < _TOO_FEW_BLOCKS) | ((occupancy < _LOW_OCCUPANCY) & ~needs_few)
    empty &= (dur >= _LEAST_NS) & ~communicates & ~np.isnan(occupancy)
    if not empty.any():
        return
    rows = same_name_and_operator(profile, sample.kernels[empty])
    rows = rows[trace.dur_ns[rows] >= _LEAST_NS]
    if not len(rows):  # what the step launched runs in no counted one
        return
    underfilled, number = int((blocks[empty] < 1).sum()), int(empty.sum())
    occupied = percent(float(np.average(occupancy[empty], weights=dur[empty])))
    subject = (
        f"Of {count(number)} a step, {count(underfilled) if underfilled else 'none'} "
        f"{'has' if underfilled < 2 else 'have'}"
    )
    if underfilled == number:
        subject = f"All of them ({count(number)} a step) have"
    compiler = "the compiler" if is_compiled(profile) else "torch.compile"
    yield blaming(
        profile,
        rows,
        Finding(
            "low_occupancy",
            "Low occupancy",
            why=f"Kernels that fill {occupied} of the GPU are {percent(share_of_work(profile, rows))} of its work. "
            f"{subject} fewer blocks than the GPU has multiprocessors.",
            do=_FEW_BLOCKS if underfilled > number / 2 else _FEW_WARPS.format(compiler=compiler),
            link=_OCCUPANCY_LINK,
            confidence="inferred",
        ),
    )
