"""Why is a step slow, at which line, what does that cost, and what should change?"""

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct, field

from tracekit.agent.answers import Answer, Call, Figure, QuestionAboutInputs, Words, figure
from tracekit.agent.inputs import Opened, Workplace
from tracekit.profile.growth import advice
from tracekit.report import Report
from tracekit.report.explained import finding_ids, pages
from tracekit.report.sections.watch_slow_steps import growths, why
from tracekit.watched import Cause
from tracekit.watched.causes import NAMES
from tracekit.watched.reading import SlowStep as OneSlow
from tracekit.watched.reading import Watched
from tracekit.watched.record import UNKNOWN

_EVENTS = 3  # events of a finding that are listed; `evidence` has more


class FindingsQuestion(QuestionAboutInputs, kw_only=True, forbid_unknown_fields=True):
    """Which findings to list."""

    variant: Annotated[str, Meta(description="only of this variant, by its reference (v1) or its name")] | None = None


class Sentences(Struct, omit_defaults=True, forbid_unknown_fields=True):
    """What a finding says, and the place that is to blame, as far as it is known."""

    headline: str
    why: str = ""
    do: str = ""
    file: str | None = None
    line: int | None = None
    function: str | None = None
    operator: str | None = None
    kernel: str | None = None
    module: str | None = None


class Entry(Struct, omit_defaults=True, forbid_unknown_fields=True):
    """A finding or, where nothing is worth changing, the verdict, which has no cost. `cost` is what a step would save
    at most without the cause; costs never count the same time twice."""

    finding: Annotated[str, Meta(description="its reference, which the tool evidence takes")]
    variant: str
    id: str
    title: str
    cost: Figure | None
    untrusted: Sentences
    share: Figure | None = None
    over_steps: Annotated[int, Meta(description="how many steps the cost is spread over; 0: it is of each step")] = 0
    once: Annotated[bool, Meta(description="whether it is a cost of the first steps only")] = False
    confidence: Literal["measured", "inferred"] = "measured"
    then_bound_by: Annotated[str | None, Meta(description="what bounds the step without the cause")] = None
    overlaps: Annotated[list[str], Meta(description="ids of findings that claim the same time")] = []
    events: Annotated[list[str], Meta(description="the longest events behind it")] = []


class Withheld(Struct, forbid_unknown_fields=True):
    """A finding that is not told, because the recording breaks a law that it rests on."""

    variant: str
    id: str
    law: str
    untrusted: Words


class SlowCause(Struct, forbid_unknown_fields=True):
    """What made steps of a watch slow, as far as the watch saw it; `untrusted.text` is about the longest of them."""

    cause: str
    steps: int
    lost: Annotated[Figure, Meta(description="what they took beyond the usual, in all")]
    longest: Figure
    longest_at: int
    untrusted: Words


class SlowStep(Struct, forbid_unknown_fields=True):
    """A slow step of a watch."""

    step: int
    cause: str
    took: Figure
    usual: Figure
    untrusted: Words


class Trend(Struct, forbid_unknown_fields=True):
    """Steps of a watch had become longer by this one, or its traces show operators that every step calls more often."""

    step: int | None
    untrusted: Words


class Findings(Answer, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The findings, those that cost most in their variants first; of a watch, also its slow steps, the costliest first,
    their causes and the trend, which no trace has to show."""

    lists: ClassVar = ("findings", "causes", "trends", "slow_steps", "withheld")
    findings: list[Entry] = field(default_factory=list)
    causes: list[SlowCause] = field(default_factory=list)
    trends: list[Trend] = field(default_factory=list)
    slow_steps: list[SlowStep] = field(default_factory=list)
    withheld: list[Withheld] = field(default_factory=list)


def findings(workplace: Workplace, question: FindingsQuestion) -> Findings:
    """The causes of a slow step: what each costs, at which line of the user's code it is, and what to change. The first
    of each variant is the one to mend first. Of a watch, also which steps were slow and why, and whether steps become
    longer."""
    opened = workplace.open(question.inputs)
    only = opened.reference(question.variant)
    entries = [
        _entry(opened, reference, finding)
        for reference, finding in opened.findings()
        if only in (None, opened.references[finding["variant"]])
    ]
    entries.sort(key=lambda entry: int(entry.finding.partition(".f")[2]))  # the first of every variant, the second …
    inputs = {"inputs": question.inputs}
    if entries:
        following = [Call("evidence", {**inputs, "of": entries[0].finding}, "the events behind it, and its cures")]
    else:  # `cannot_answer` says why
        following = [Call("overview", inputs, "what there is of each variant")]
    if any(entry.untrusted.file for entry in entries):
        following.append(Call("lines", inputs, "what each line costs"))
    return Findings(
        findings=entries,
        withheld=[
            Withheld(reference, withheld["id"], withheld["law"], Words(text=withheld["reason"]))
            for reference, variant in opened.documents()
            if only in (None, reference)
            for withheld in variant["withheld"]
        ],
        **(_of_watch(opened.report, watched) if (watched := opened.report.subject.watch) is not None else {}),
        **opened.limits(only),
        next=following,
    )


def _of_watch(report: Report, watched: Watched) -> dict[str, list[Any]]:
    """What the watch itself tells, without a trace."""
    slow = [one for one in watched.slow if one.explanation.cause is not Cause.TREND]
    slow.sort(key=lambda one: -one.explanation.beyond_ns)
    by_cause: dict[str, list[OneSlow]] = {}
    for one in slow:
        by_cause.setdefault(NAMES[one.explanation.cause], []).append(one)
    causes = [
        SlowCause(
            cause,
            len(group),
            figure(sum(one.explanation.beyond_ns for one in group)),
            figure(longest.step.step_ns),
            longest.step.number,
            Words(text=why(longest)),
        )
        for cause, group in by_cause.items()
        for longest in [max(group, key=lambda one: one.step.step_ns)]
    ]
    trends = [Trend(one.step.number, Words(text=one.sentence)) for one in watched.slow if one not in slow]
    trends += [Trend(None, Words(text=advice(growth))) for growth in growths(report)]
    steps = [
        SlowStep(
            one.step.number,
            NAMES[one.explanation.cause],
            figure(one.step.step_ns),
            figure(one.step.usual_ns if one.step.usual_ns != UNKNOWN else None),
            Words(text=why(one)),
        )
        for one in slow
    ]
    return {"causes": sorted(causes, key=lambda one: -(one.lost.value or 0)), "trends": trends, "slow_steps": steps}


def _entry(opened: Opened, reference: str, finding: dict[str, Any]) -> Entry:
    variant = opened.references[finding["variant"]]
    where = finding["where"]
    return Entry(
        finding=reference,
        variant=variant,
        id=finding["id"],
        title=pages("finding")[finding["id"]].title if finding["id"] in finding_ids() else finding["id"],
        cost=figure(finding["cost_ns"], evidence=reference, bound=finding["bound"])
        if finding["cost_ns"] is not None
        else None,
        untrusted=Sentences(finding["headline"], finding["why"], finding["do"], **where),
        share=figure(finding["share"], "share", bound=finding["bound"]) if finding["share"] is not None else None,
        over_steps=finding["over_steps"],
        once=finding["once"],
        confidence=finding["confidence"],
        then_bound_by=finding["then_bound_by"],
        overlaps=finding["overlaps"],
        events=[f"{variant}.e{event['event']}" for event in finding["evidence"][:_EVENTS]],
    )
