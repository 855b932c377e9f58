"""The words for a recording that lacks something: steps, or decimals of its times.

Sentences speak of steps. Where nothing marks a step and nothing repeats, what they say holds for the recording: this is
the one place that says so, for every sentence of every analysis, finding and section.
"""

import re

import numpy as np

from tracekit.base.intervals import Ints
from tracekit.base.units import duration
from tracekit.profile.profile import Profile
from tracekit.trace import Trace

_EXACT_NS = 100_000  # of a time this long, a microsecond is less than three digits show
_WORDS = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r"\b(bounds?) (?:the|a) step\b", r"\1 the recording"),
        (r"\b(of|in|inside|within|over|during) (?:a|each|every|one|a counted) step\b", r"\1 the recording"),
        (r"\b(?:a|each) step(?= (?:takes|took|would|could|is|has)\b)", "the recording"),
        (r"\b(?:a|each) step's\b", "the recording's"),
        (r"(?<!\bfor) (?:a|per|each) step\b", " in all"),
        (r"^(?:A|One|Each) step\b|(?<=[.:;] )(?:A|One|Each) step\b", "The recording"),
        (r"\bin (?:each of )?the (?:steps that the means cover|only step that the mean covers)\b", "in the recording"),
    )
)


def has_steps(profile: Profile) -> bool:
    """Whether steps are annotated, or were inferred from what repeats."""
    steps = profile.trace.steps
    return steps.annotated or steps.inferred is not None


def in_words(profile: Profile, text: str) -> str:
    """The text as it is said of this profile: `36 launches a step`, or `36 launches in all`."""
    return text if has_steps(profile) else of_the_recording(text)


def of_the_recording(text: str) -> str:
    """A text about a step as it is said of a recording without steps."""
    for pattern, words in _WORDS:
        text = pattern.sub(words, text)
    return text


def median(trace: Trace, lengths_ns: Ints) -> str:
    """The median of durations: `6.81 µs`; `about 7 µs` where the recorder writes whole microseconds."""
    usual_ns = float(np.median(lengths_ns))
    if usual_ns >= _EXACT_NS or all(breach.id != "whole_microseconds" for breach in trace.health):
        return duration(usual_ns)
    return f"about {usual_ns / 1000:.0f} µs" if usual_ns >= 1000 else "less than 1 µs"
