"""What must hold of a trace that can be believed: a law is declared once, and each trace that breaks it says so.

    @law("lost_work", "doubt", touches=("gpu work", "gpu idle"))
    def lost_work(trace: Trace) -> Iterator[Broken]:
        yield Broken("…", count=3, worst=row, gpu=spans)

The docstring of a law is its page: a summary, and paragraphs that begin with `Holds:`, what holds of a sound trace;
`Breaks:`, when it is broken; `Then:`, what is not told then, beside what severity and figures say; `Do:`, what to do.

A breach of severity `note` limits an answer and spoils no figure. One of severity `doubt` spoils the figures that it
touches: in the time that it names or, if it names none, everywhere. Of one of severity `refusal`, nothing can be said
about these figures at all. The times that breaches name make the mask of known time, `Unknown`.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import NO_TIME, Bools, Union
from tracekit.base.pages import Page, Part, paragraph

if TYPE_CHECKING:
    from tracekit.trace.model import Trace

Severity = Literal["refusal", "doubt", "note"]  # the gravest first
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
# What a breach can spoil: what the GPU did, when it idled, what the host did, when steps begin and end, and which
# line of the user's did something; and which of several causes a time has, on which the order of findings rests.
Figure = Literal["gpu work", "gpu idle", "host time", "steps", "lines", "causes"]
FIGURES: tuple[Figure, ...] = get_args(Figure)

_FIGURE_WORDS: dict[Figure, str] = {
    "gpu work": "what the GPU did",
    "gpu idle": "when it idled, and why",
    "host time": "what the host did",
    "steps": "where steps begin and end",
    "lines": "which line did something",
    "causes": "which of several causes a time has",
}
_UNTOLD: dict[Severity, str] = {
    "refusal": "Nothing is said of this: {figures}. `tracekit report --strict` exits with 3.",
    "doubt": "In the time and the steps that the breach names, or throughout if it names none, this must not be "
    "believed: {figures}. Means leave such steps out, findings lose such time or are withheld, and `tracekit what-if` "
    "promises nothing of it. `tracekit report --strict` exits with 3.",
    "note": "A note limits an answer: no figure is wrong because of it.",
}
_PARAGRAPH = re.compile(r"^(Holds|Breaks|Then|Do): ", re.MULTILINE)
# The fields of a breach, as they are stored: times, and what is plain data anyway.
_SIDES = ("gpu", "host")
_PLAIN = ("id", "severity", "message", "touches", "count", "worst", "steps")


class Broken(Struct, frozen=True):
    """How a trace breaks a law: the sentence to show, how often, and the row of the worst instance (−1: none).

    `gpu` and `host` are the times, on the trace's clock, in which nobody knows what that side did, because of the
    breach; `steps` are the indices of steps that are not whole because of it. `severity` is that of the law, unless
    this breach is lighter or graver than usual.
    """

    message: str
    count: int = 1
    worst: int = -1
    gpu: Union = NO_TIME
    host: Union = NO_TIME
    steps: tuple[int, ...] = ()
    severity: Severity | None = None


class Breach(Struct, frozen=True, eq=False):
    """A law that a trace breaks, as every face tells it; `worst` is the event at which it is broken most."""

    id: str
    severity: Severity
    message: str
    touches: tuple[Figure, ...] = ()
    count: int = 1
    worst: dict[str, Any] | None = None
    steps: tuple[int, ...] = ()  # indices of the steps that are not whole because of it
    gpu: Union = NO_TIME
    host: Union = NO_TIME

    @property
    def is_grave(self) -> bool:
        """Whether figures must not be believed because of it."""
        return self.severity != "note"

    @property
    def everywhere(self) -> bool:
        """Whether it spoils what it touches at all times, not only in the times and steps that it names."""
        return self.is_grave and not (len(self.gpu.starts) or len(self.host.starts) or self.steps)

    def document(self) -> dict[str, Any]:
        """As the machine-readable report has it; `code` is the older name of `id`."""
        return {
            "id": self.id,
            "code": self.id,
            "severity": self.severity,
            "count": self.count,
            "touches": list(self.touches),
            "unknown_gpu_ns": self.gpu.total(),
            "unknown_host_ns": self.host.total(),
            "worst": self.worst,
            "message": self.message,
        }

    def stored(self) -> dict[str, Any]:
        """As plain data from which `restored` makes it again."""
        spans = {side: [getattr(self, side).starts.tolist(), getattr(self, side).ends.tolist()] for side in _SIDES}
        return {**{name: getattr(self, name) for name in _PLAIN}, **spans}

    @staticmethod
    def restored(stored: dict[str, Any]) -> "Breach":
        """The breach that was stored."""
        spans = {side: Union(*(np.array(edges, np.int64) for edges in stored[side])) for side in _SIDES}
        lists = {name: tuple(stored[name]) for name in ("touches", "steps")}
        return Breach(**{**stored, **lists, **spans})


class Unknown(Struct, frozen=True):
    """When nobody knows what the GPU did, or what the host did, on the trace's clock, and which steps are not whole: no
    figure may rest on them. All else is known."""

    gpu: Union
    host: Union
    steps: frozenset[int]  # indices of the steps that lack so much that they are not whole

    @staticmethod
    def of(health: Sequence[Breach]) -> "Unknown":
        """What these breaches make unknown together."""
        return Unknown(
            reduce(Union.plus, (breach.gpu for breach in health), NO_TIME),
            reduce(Union.plus, (breach.host for breach in health), NO_TIME),
            frozenset(step for breach in health if breach.is_grave for step in breach.steps),
        )

    def whole(self, number: int) -> Bools:
        """Which of so many steps are whole; all of them where none is, since then nothing else can be told."""
        is_whole = np.ones(number, bool)
        is_whole[[*self.steps]] = False
        return is_whole if is_whole.any() else ~is_whole


Look = Callable[["Trace"], Iterable[Broken]]


class Law(Struct, frozen=True):
    """A law: its stable id, how grave a breach is, which figures a breach touches, and what looks for breaches."""

    id: str
    severity: Severity
    touches: tuple[Figure, ...]
    look: Look
    text: str  # from which its page is made

    @property
    def summary(self) -> str:
        """When it is broken, in a sentence."""
        return " ".join(self.text.partition("\n\n")[0].split())

    @property
    def page(self) -> Page:
        """What it means, as every face shows it."""
        return law_page(self.id, self.severity, self.touches, self.text)

    def breaches(self, trace: "Trace") -> list[Breach]:
        """How this trace breaks it."""
        breaches = []
        for broken in self.look(trace):
            row, worst, severity = broken.worst, None, broken.severity or self.severity
            if row >= 0:
                name, start_ns, dur_ns = trace.name(row), trace.ts_ns[row], trace.dur_ns[row]
                worst = {"event": row, "name": name, "start_ns": int(start_ns), "dur_ns": int(dur_ns)}
            extent = broken.steps, broken.gpu, broken.host
            breaches.append(Breach(self.id, severity, broken.message, self.touches, broken.count, worst, *extent))
        return breaches


LAWS: dict[str, Law] = {}


def law(name: str, severity: Severity, touches: tuple[Figure, ...] = ()) -> Callable[[Look], Look]:
    """Register the function as the law of that id."""

    def register(look: Look) -> Look:
        assert name not in LAWS or LAWS[name].look.__module__ == look.__module__, f"{name} is declared twice"
        LAWS[name] = Law(name, severity, touches, look, look.__doc__ or "")
        return look

    return register


def law_page(name: str, severity: Severity, touches: tuple[Figure, ...], text: str) -> Page:
    """The page of a law, of which that docstring is."""
    summary, *pieces = _PARAGRAPH.split(cleandoc(text))
    texts = dict(zip(pieces[::2], pieces[1::2], strict=True))
    untold = _UNTOLD[severity].format(figures="; ".join(_FIGURE_WORDS[figure] for figure in touches))
    parts: list[Part] = []
    if "Holds" in texts:
        parts.append(paragraph("What holds of a sound trace", texts["Holds"]))
    parts.append(paragraph("What breaks it", texts.get("Breaks", summary)))
    follows = "What follows" if severity == "note" else "What tracekit then does not say"
    parts.append(paragraph(follows, f"{untold} {texts.get('Then', '')}"))
    if "Do" in texts:
        parts.append(paragraph("What to do", texts["Do"]))
    return Page(name, "law", f"{' '.join(summary.split()).rstrip('.')} ({severity})", tuple(parts))
