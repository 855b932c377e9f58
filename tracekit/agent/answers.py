"""What questions and answers are made of: figures with a unit, limits, what was left out, and which call is worth
making next.

Text that was recorded, or that may quote what was recorded, stands in fields called `untrusted`, and nowhere else:
names of kernels, functions, files and variants, and sentences that contain them. All other text is tracekit's own.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct, field

from tracekit.trace.facts.law import Severity

Unit = Literal["ns", "share", "ratio", "B", "1"]
View = Literal["wall", "host"]
LIMITS = ("cannot_answer", "broken_laws")  # lists that every answer has
ENDING = (*LIMITS, "left_out", "next")  # the keys that end every answer
_DIGITS = 4  # after the point, of what is not counted in ns or bytes


class Words(Struct, omit_defaults=True, forbid_unknown_fields=True):
    """Text that was recorded, or that quotes what was: data, whatever it says."""

    name: str | None = None
    text: str | None = None
    file: str | None = None
    line: int | None = None
    function: str | None = None


class Figure(Struct, omit_defaults=True, forbid_unknown_fields=True):
    """One figure; null where it cannot be answered, which is not zero."""

    value: int | float | None
    unit: Unit
    interval: Annotated[tuple[float, float], Meta(description="at 95 %, in the same unit")] | None = None
    bound: Annotated[Literal["upper", "lower", "exact"], Meta(description="of which side it is sure")] = "exact"
    evidence: Annotated[str, Meta(description="what the tool evidence takes to show the events behind it")] | None = (
        None
    )


class Call(Struct, omit_defaults=True, forbid_unknown_fields=True):
    """A call of a tool."""

    tool: str
    arguments: dict[str, Any]
    why: str = ""


class CannotAnswer(Struct, forbid_unknown_fields=True):
    """A question that the recording of a variant cannot answer, with the reason."""

    variant: str
    what: str
    untrusted: Words


class BrokenLaw(Struct, forbid_unknown_fields=True):
    """A law of traces that a recording breaks; where it is more than a note, figures must not be believed."""

    variant: str
    law: str
    severity: Severity
    count: int
    untrusted: Words


class LeftOut(Struct, forbid_unknown_fields=True):
    """How many entries of a list did not fit, and the arguments that get them. Long ones of this call may be missing:
    give them again."""

    what: str
    count: int
    arguments: dict[str, Any]


class Question(Struct, kw_only=True, forbid_unknown_fields=True):
    """What every tool takes. `lists` are the lists of the answer, the one that it is about first."""

    only: Annotated[str, Meta(description="answer with this list alone, from offset on")] | None = None
    offset: Annotated[int, Meta(ge=0, description="how many entries of the list to skip")] = 0


Inputs = Annotated[
    list[str],
    Meta(
        min_length=1,
        max_length=64,
        description="paths below the root: a trace, a folder of traces, a run.json; or 'sample', a run that comes with "
        "tracekit",
    ),
]


class QuestionAboutInputs(Question, kw_only=True, forbid_unknown_fields=True):
    """A question about runs and traces."""

    inputs: Inputs


class Answer(Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What every answer has. `lists` names its lists, the most valuable first: they are what a budget cuts, and each
    may be missing."""

    lists: ClassVar[tuple[str, ...]] = ()
    cannot_answer: list[CannotAnswer] = field(default_factory=list)
    broken_laws: list[BrokenLaw] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    next: list[Call]


def figure(
    value: float | None,
    unit: Unit = "ns",
    interval: "tuple[float, float] | list[float] | None" = None,
    evidence: str | None = None,
    bound: Literal["upper", "lower", "exact"] = "exact",
) -> Figure:
    """A figure of the report, in whole ns or bytes, or with four digits after the point."""
    return Figure(
        rounded(value, unit),
        unit,
        (rounded(interval[0], unit) or 0, rounded(interval[1], unit) or 0) if interval is not None else None,
        bound,
        evidence,
    )


def rounded(value: float | None, unit: Unit) -> int | float | None:
    """The value as answers have it."""
    if value is None:
        return None
    return round(value) if unit in ("ns", "B") else round(value, _DIGITS)


def place(where: Mapping[str, Any]) -> Words:
    """The file, line and function of a place."""
    return Words(file=where.get("file"), line=where.get("line"), function=where.get("function"))
