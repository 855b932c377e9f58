"""Does the CPU compute something in a step, or does a library prepare data in the training loop itself, while the GPU
waits for it?
"""

import re
from collections.abc import Iterator

import numpy as np

from tracekit.engine.buckets import SLOW_HOST
from tracekit.findings import Finding, evidence, rule
from tracekit.findings.counted import Steps
from tracekit.findings.culprits import plain, where_of_event
from tracekit.intervals import Bools, Ints, Union, distinct
from tracekit.profile import Profile
from tracekit.trace.enclosing import enclosing, outermost
from tracekit.trace.roles import OPERATOR, PYTHON
from tracekit.units import count, duration, many

_LEAST_NS = 500_000  # at a time: dispatching an operator takes far less, and shorter ones are told with that
_WORKS = re.compile(r"(?:aten::(?!_?empty)|torchvision::|torchaudio::|torch_\w+::|pyg::)\w+")
_CUDA_PAGE = "https://docs.pytorch.org/docs/stable/notes/cuda.html"


@rule("host_compute")
def host_compute(profile: Profile) -> Iterator[Finding]:
    """`cpu_compute` in a run on a GPU: operators that compute on the CPU, one finding for each name."""
    trace, pieces = profile.trace, profile.attribution.pieces
    if profile.means["wall"] is None or trace.device != "gpu":
        return
    rows = computing(profile)
    rows = rows[profile.in_counted(trace.steps.of(trace.ts_ns[rows]))]
    for code in distinct(trace.name_codes[rows]).tolist():
        operator_rows = rows[trace.name_codes[rows] == code]
        events, dur = trace.events_at(operator_rows), trace.dur_ns[operator_rows]
        name, steps = plain(trace.names[code]), len(distinct(trace.steps.of(events.ts_ns)))
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
            host=Union.of(events.ts_ns, events.end_ns),
        )


def computing(profile: Profile) -> Ints:
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
    alike = np.setdiff1d(alike, _containing(profile, calls, alike))
    codes = distinct(trace.name_codes[alike])
    usual = ((code, np.median(trace.dur_ns[alike[trace.name_codes[alike] == code]])) for code in codes.tolist())
    long = [code for code, median in usual if median >= _LEAST_NS]
    alike = alike[np.isin(trace.name_codes[alike], long)]
    forward: Ints = alike[enclosing(trace, alike, lambda part: part.roles.backward_node) < 0]
    return forward


def _containing(profile: Profile, calls: Ints, among: Ints) -> Ints:
    """Those of the operators in which one of the calls is made: also the outer ones, of those that are nested."""
    trace = profile.trace
    containing = [np.zeros(0, np.int64)]
    for track in distinct(trace.track[among]).tolist():
        rows = among[trace.track[among] == track]
        call_starts = trace.ts_ns[calls[trace.track[calls] == track]]
        events = trace.events_at(rows)
        containing.append(
            rows[np.searchsorted(call_starts, events.end_ns) > np.searchsorted(call_starts, events.ts_ns)]
        )
    return np.concatenate(containing)


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


@rule("preprocessing")
def preprocessing(profile: Profile) -> Iterator[Finding]:
    """`preprocessing`, one finding for each function of a library: the GPU's idle time inside of it."""
    trace, pieces = profile.trace, profile.attribution.pieces
    if profile.means["wall"] is None or trace.device != "gpu":
        return
    rows, waits = preparing(profile), pieces.union(pieces.of(*SLOW_HOST))
    for code in distinct(trace.name_codes[rows]).tolist():
        calls = rows[trace.name_codes[rows] == code]
        events = trace.events_at(calls)
        call_time = Union.of(events.ts_ns, events.end_ns)
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


def preparing(profile: Profile) -> Ints:
    """The outermost calls of such functions by the main thread in counted steps."""
    trace = profile.trace
    prepares = trace.labels.fits(_PREPARES)
    if not prepares.any():
        return np.zeros(0, np.int64)
    rows = trace.where(
        lambda part: (
            (part.roles.kind == PYTHON) & prepares[part.name_codes] & part.lasting & (part.track == trace.threads.main)
        )
    )
    return outermost(trace, rows[profile.in_counted(trace.steps.of(trace.ts_ns[rows]))])


def is_preparing(profile: Profile) -> Bools:
    """Which pieces of the steps lie in one of these calls."""
    events, pieces = profile.trace.events_at(preparing(profile)), profile.attribution.pieces
    in_call: Bools = Union.of(events.ts_ns, events.end_ns).covers(pieces.start)
    return in_call
