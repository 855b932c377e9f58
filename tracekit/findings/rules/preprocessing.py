"""Does a library prepare data in the training loop itself, outside of any data loader, while the GPU waits?"""

import re
from collections.abc import Iterator

import numpy as np

from tracekit.engine.buckets import SLOW_HOST
from tracekit.findings import Finding, evidence, rule
from tracekit.findings.counted import Steps
from tracekit.findings.where import where_of_event
from tracekit.intervals import Bools, Ints, Union
from tracekit.profile import Profile
from tracekit.trace.enclosing import outermost
from tracekit.trace.roles import PYTHON
from tracekit.units import duration

# Frames of libraries that prepare images, text, sound and tables, such as `PIL/Image.py(2100): resize`.
_PREPARES = re.compile(
    r"(?:.*[/\\])?(?P<library>PIL|cv2|albumentations|skimage|imageio|numpy|pandas|scipy|librosa|torchaudio"
    r"|torchvision(?=[/\\](?:transforms|io)\b)|torch_geometric(?=[/\\]transforms\b)|tokenizers|sentencepiece|nltk|spacy"
    r"|transformers(?=[/\\].*(?:image_processing|image_transforms|processing_|tokenization|feature_extraction)))"
    r"[/\\][^(]*\.py\(\d+\): (?P<function>\S+)",
    re.DOTALL,
)
_LINK = "https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading"

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
    for code in np.unique(trace.name_codes[rows]).tolist():
        named = rows[trace.name_codes[rows] == code]
        events = trace.events_at(named)
        inside = Union.of(events.ts_ns, events.end_ns)
        match, claim = _PREPARES.fullmatch(trace.names[code]), inside.common(waits)
        if match is None or not claim.total():
            continue
        culprit = where_of_event(profile, int(named[trace.dur_ns[named].argmax()]), match["function"])
        yield Finding(
            "preprocessing",
            f"The GPU waits for {match['function']} of {match['library']}{culprit.at}",
            why=f"It processes data in the loop itself for {duration(Steps.of(profile).mean(inside))} a step.",
            do=_AFTER if "post" in match["function"] else _AHEAD,
            where=culprit,
            evidence=evidence(profile, named),
            link=_LINK,
            claim=claim,
            host=inside,
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
    inside: Bools = Union.of(events.ts_ns, events.end_ns).covers(pieces.start)
    return inside
