"""What differs between variants, and what of it is more than noise?"""

from typing import Annotated, ClassVar

from msgspec import Meta, Struct, field

from tracekit.agent.answers import Answer, Call, Figure, QuestionAboutInputs, View, figure
from tracekit.agent.inputs import Opened, Workplace
from tracekit.errors.asking import NothingToCompareError
from tracekit.profile.compare import Comparison as Compared
from tracekit.profile.run_facts import contrast_of
from tracekit.report import Report


class CompareQuestion(QuestionAboutInputs, kw_only=True, forbid_unknown_fields=True):
    """What to compare with what."""

    baseline: (
        Annotated[
            str,
            Meta(
                description="the variant to compare all others with, those of other runs, too; by default each run is "
                "compared with its own first variant"
            ),
        ]
        | None
    ) = None
    view: Annotated[View, Meta(description="wall time, or the host's time")] = "wall"


class Change(Struct, omit_defaults=True, forbid_unknown_fields=True):
    """How much longer a step is in a bucket than in the baseline; negative is shorter. `outside` says that pairs of
    other traces show another difference."""

    bucket: str
    difference: Figure
    noise: bool = False
    outside: bool = False


class Comparison(Struct, omit_defaults=True, forbid_unknown_fields=True):
    """A variant against its baseline. `difference` is of recorded steps, and the sum of all buckets; `time_ratio` is of
    unprofiled ones, below 1 where the variant is faster. Within noise, nothing is known to differ; `outside` says that
    pairs of other traces show another difference."""

    variant: str
    baseline: str
    difference: Figure
    difference_noise: bool = False
    outside: bool = False
    buckets: list[Change] = field(default_factory=list)
    pairs: Annotated[int, Meta(description="pairs of traces that intervals are over; 0: over steps of one each")] = 0
    interval_covers: str | None = None
    time_ratio: Figure | None = None
    noise: Annotated[bool, Meta(description="of time_ratio")] = False


class Comparisons(Answer, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Every variant against its baseline."""

    lists: ClassVar = ("comparisons",)
    comparisons: list[Comparison] = field(default_factory=list)


def compare(workplace: Workplace, question: CompareQuestion) -> Comparisons:
    """Variants, or several inputs, against a baseline: step time and every bucket, with intervals and what is within
    noise. The differences of the buckets add up."""
    opened = workplace.open(question.inputs)
    report = opened.report
    if (base := opened.reference(question.baseline)) is not None:
        report = report.against(opened.variants[base])
    if not report.comparisons:
        if len(opened.variants) == 1:
            raise NothingToCompareError(", ".join(question.inputs))
        return Comparisons(**opened.limits(), next=[_instead(opened, question)])
    following = opened.references[report.comparisons[0].variant]
    return Comparisons(
        comparisons=[_comparison(opened, report, entry, question.view) for entry in report.comparisons],
        **opened.limits(),
        next=[Call("findings", {"inputs": question.inputs, "variant": following}, "what is still slow in the variant")],
    )


def _instead(opened: Opened, question: CompareQuestion) -> Call:
    """What to ask where several variants are there and none is compared: the others failed, or were taken over time."""
    inputs = {"inputs": question.inputs}
    if len(opened.report.profiles) > 1:
        baseline = opened.references[opened.report.profiles[0].name]
        return Call("compare", {**inputs, "baseline": baseline}, "against a baseline that is named")
    return Call("overview", inputs, "what there is of each variant")


def _comparison(opened: Opened, report: Report, entry: Compared, view: View) -> Comparison:
    variant = opened.references[entry.variant]
    contrast = contrast_of(report.member(entry.variant), report.member(entry.baseline))
    difference = entry.wall if view == "wall" else entry.host
    comparison = Comparison(variant, opened.references[entry.baseline], figure(None))
    if contrast is not None:
        document = contrast.document()
        comparison.time_ratio = figure(document["ratio"], "ratio", document["interval"])
        comparison.noise = document["noise"]
    if difference is not None:
        comparison.difference = figure(difference.delta_ns, interval=difference.delta_interval)
        comparison.difference_noise = difference.is_noise()
        comparison.outside = difference.is_outside()
        comparison.pairs, comparison.interval_covers = difference.pairs, difference.covers
        comparison.buckets = [
            Change(
                key,
                figure(ns, interval=difference.interval_of(key), evidence=f"{variant}.{view}.{key}"),
                difference.is_noise(key),
                difference.is_outside(key),
            )
            for key, ns in sorted(difference.parts.items(), key=lambda part: -abs(part[1]))
            if round(ns)
        ]
    return comparison
