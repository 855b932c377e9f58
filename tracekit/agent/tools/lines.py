"""What does each line of the user's code cost in each variant?"""

from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct, field

from tracekit.agent.answers import Answer, Call, CannotAnswer, Figure, QuestionAboutInputs, View, Words, figure
from tracekit.agent.inputs import Opened, Workplace
from tracekit.report.blocks import Excerpt
from tracekit.report.owner_costs import owners_by_variant
from tracekit.report.sections.lines import SideBySide

_NOT_RECORDED = "there is no recording with stacks: capture with tracekit capture, or profile with with_stack=True"


class LinesQuestion(QuestionAboutInputs, kw_only=True, forbid_unknown_fields=True):
    """Which lines to show."""

    where: (
        Annotated[str, Meta(description="FILE or FILE:FUNCTION: its source as recorded, with what each line costs")]
        | None
    ) = None


class Costs(Struct, omit_defaults=True, forbid_unknown_fields=True):
    """A line, or lines that share kernels, and what they cost in a mean step, by variant. `untrusted.text` is the
    source, or the lines where there are several; `shared` is what kernels cost that a line shares with others, the
    whole of it."""

    costs: dict[str, Figure]
    untrusted: Words
    shared: dict[str, Figure] = field(default_factory=dict)


class Time(Struct, omit_defaults=True, forbid_unknown_fields=True):
    """Which time the costs of a variant are: of its mean `step`, as it was recorded, to which they add up. `wall` is
    from one step to the next, with the time in which the GPU works; `host` is what the host takes. Under the profiler,
    steps take longer than the `unprofiled_step`."""

    variant: str
    view: View
    step: Figure
    unprofiled_step: Figure | None = None


class Lines(Answer, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Lines, the most expensive first; those of `where` in the order of the file."""

    lists: ClassVar = ("lines", "times")
    lines: list[Costs] = field(default_factory=list)
    times: list[Time] = field(default_factory=list)


def lines(workplace: Workplace, question: LinesQuestion) -> Lines:
    """What each line of the user's code costs in a recorded step of each variant; `times` says of which time. The lines
    add up to that step, together with what belongs to no line."""
    opened = workplace.open(question.inputs)
    variants = owners_by_variant(opened.report)
    limits = opened.limits()
    limits["cannot_answer"] += [
        CannotAnswer(opened.references[variant.name], "lines", Words(text=variant.means.reason or None))
        for variant in variants
        if not variant.total_ns
    ]
    asked = {variant.name for variant in variants}
    limits["cannot_answer"] += [
        CannotAnswer(opened.references[profile.name], "lines", Words(text=_NOT_RECORDED))
        for profile in opened.report.profiles
        if profile.name not in asked
    ]
    side_by_side = SideBySide(variants, opened.report.baselines)
    if question.where is None:
        entries = _costliest(opened, side_by_side)
    else:
        blocks = side_by_side.excerpts_at(question.where)
        entries = [entry for block in blocks if isinstance(block, Excerpt) for entry in _of(opened, block)]
    measured = {variant["name"]: variant["measured"] for variant in opened.document["variants"]}
    times = [
        Time(
            opened.references[variant.name],
            "wall" if variant.view == "wall" else "host",
            figure(variant.total_ns),
            figure(unprofiled["step_ns"]) if (unprofiled := measured[variant.name]) else None,
        )
        for variant in variants
        if variant.total_ns
    ]
    following = [Call("findings", {"inputs": question.inputs}, "why they cost it")]
    return Lines(lines=entries, times=times, **limits, next=following)


def _costliest(opened: Opened, side_by_side: SideBySide) -> list[Costs]:
    table = side_by_side.table()
    names = [variant.name for variant in side_by_side.variants]
    columns = {name: table[f"{name}_ns"].to_pylist() for name in names}
    identity: list[dict[str, Any]] = table.select(["line", "function", "file", "line_number"]).to_pylist()
    return [
        Costs(
            _figures(opened, {name: columns[name][k] for name in names}),
            Words(text=row["line"], file=row["file"], line=row["line_number"], function=row["function"]),
        )
        for k, row in enumerate(identity)
    ]


def _of(opened: Opened, excerpt: Excerpt) -> list[Costs]:
    """The lines of an excerpt."""
    return [
        Costs(
            _figures(opened, {name: by_line.get(number, 0.0) for name, by_line in excerpt.costs.items()}),
            Words(text=text, file=excerpt.file, line=number),
            _figures(opened, {name: by_line.get(number, 0.0) for name, by_line in excerpt.fused.items()}),
        )
        for number, text in enumerate(excerpt.lines, excerpt.first)
    ]


def _figures(opened: Opened, costs: dict[str, float]) -> dict[str, Figure]:
    return {opened.references[name]: figure(ns) for name, ns in costs.items() if round(ns)}
