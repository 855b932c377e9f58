"""How long does a step take in each variant, where does it go, and what bounds it? Without inputs: what is there to ask
about?
"""

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct, field

from tracekit.agent.answers import Answer, Call, Figure, Question, View, Words, figure
from tracekit.agent.inputs import Opened, Workplace
from tracekit.run.model import Outcome

_VIEWS: tuple[View, ...] = ("wall", "host")
_CAUSES = "the causes, with their lines and what to change"
_SLOW_STEPS = "the slow steps of the watch and their causes, and the findings of its traces"
_WORTH = 0.01  # share of a step: smaller buckets are not listed


class OverviewQuestion(Question, kw_only=True, forbid_unknown_fields=True):
    """What to look at; nothing lists the runs, traces and watches below the root."""

    inputs: Annotated[
        list[str],
        Meta(max_length=64, description="as for the other tools; leave it out to list what lies below the root"),
    ] = field(default_factory=list)


class Input(Struct, forbid_unknown_fields=True):
    """A run, a trace or the folder of a watch that can be asked about; its path is in `untrusted.file`."""

    kind: Literal["run", "trace", "watch"]
    size: Figure
    untrusted: Words


class Share(Struct, forbid_unknown_fields=True):
    """A bucket of a mean step."""

    bucket: str
    step: Figure
    share: Figure


class First(Struct, forbid_unknown_fields=True):
    """The finding to mend first, with its headline; the tool findings says more."""

    finding: str
    id: str
    untrusted: Words


class Variant(Struct, omit_defaults=True, forbid_unknown_fields=True):
    """A variant. `step` is recorded, and slower than without the profiler; `unprofiled_step` is the one to quote."""

    variant: str
    outcome: Outcome
    device: Literal["gpu", "cpu"] | None
    step: Figure
    steps: Annotated[list[int], Meta(description="the numbers of the steps that means are over")]
    untrusted: Words
    unprofiled_step: Figure | None = None
    view: Annotated[View | None, Meta(description="which view step and buckets are of")] = None
    buckets: list[Share] = field(default_factory=list)
    verdict: Annotated[str | None, Meta(description="the id of what bounds the step")] = None
    first: First | None = None
    findings: int = 0


class Ratio(Struct, omit_defaults=True, forbid_unknown_fields=True):
    """A variant's unprofiled step over that of its baseline: below 1 is faster. Within `noise`, nothing is known to
    differ."""

    variant: str
    baseline: str
    time_ratio: Figure
    noise: bool


class Note(Struct, forbid_unknown_fields=True):
    """What to know about the figures of these variants, or of all."""

    kind: str
    variants: list[str]
    untrusted: Words


class Overview(Answer, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What there is to ask about, or the variants of the inputs."""

    lists: ClassVar = ("variants", "comparisons", "notes", "inputs")
    variants: list[Variant] = field(default_factory=list)
    comparisons: list[Ratio] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    inputs: list[Input] = field(default_factory=list)


def overview(workplace: Workplace, question: OverviewQuestion) -> Overview:
    """Step times, buckets and verdict of each variant, how they compare, and what cannot be answered. Begin here.
    Without inputs, lists the runs, traces and watches below the root."""
    if not question.inputs:
        return _listing(workplace)
    opened = workplace.open(question.inputs)
    inputs = {"inputs": question.inputs}
    return Overview(
        variants=[_variant(opened, reference, variant) for reference, variant in opened.documents()],
        comparisons=[
            Ratio(
                opened.references[entry["variant"]],
                opened.references[entry["baseline"]],
                figure(unprofiled["ratio"], "ratio", unprofiled["interval"]),
                unprofiled["noise"],
            )
            for entry in opened.document["comparison"]
            if (unprofiled := entry["unprofiled"]) is not None
        ],
        notes=[
            Note(note["kind"], [opened.references[name] for name in note["variants"]], Words(text=note["text"]))
            for section in opened.document["sections"]
            for block in section["blocks"]
            if block["kind"] == "notes"
            for note in block["notes"]
            if note["kind"] != "health"  # `broken_laws` has these
        ],
        **opened.limits(),
        next=[
            Call("findings", inputs, _CAUSES if opened.report.subject.watch is None else _SLOW_STEPS),
            *([Call("compare", inputs, "which buckets differ, beyond noise")] if opened.document["comparison"] else []),
        ],
    )


def _listing(workplace: Workplace) -> Overview:
    inputs = [Input(found.kind, figure(found.bytes, "B"), Words(file=found.path)) for found in workplace.found()]
    if not inputs:
        return Overview(
            next=[Call("overview", {"inputs": ["sample"]}, "the run that comes with tracekit: no other is here")]
        )
    return Overview(
        inputs=inputs, next=[Call("overview", {}, "with inputs: one of these paths, or several to compare")]
    )


def _variant(opened: Opened, reference: str, variant: dict[str, Any]) -> Variant:
    mean, measured = variant["mean"] or {}, variant["measured"]
    view: View | None = next((name for name in _VIEWS if mean.get(name)), None)
    step_ns = mean[f"{view}_ns"] if view is not None else None
    parts = mean[view] if view is not None else {}
    interval = measured and measured["interval_ns"]
    findings = [finding for finding in opened.document["findings"] if finding["variant"] == variant["name"]]
    return Variant(
        variant=reference,
        outcome=variant["outcome"],
        device=variant["device"],
        step=figure(step_ns, evidence=f"{reference}.{view}" if view is not None else None),
        steps=variant["mean_over" if view == "wall" else "host_mean_over"],
        untrusted=Words(name=variant["name"], text=variant["device_name"]),
        unprofiled_step=figure(measured["step_ns"], interval=interval) if measured else None,
        view=view,
        buckets=[
            Share(key, figure(ns, evidence=f"{reference}.{view}.{key}"), figure(ns / step_ns, "share"))
            for key, ns in sorted(parts.items(), key=lambda part: -part[1])
            if step_ns and ns >= _WORTH * step_ns
        ],
        verdict=variant["verdict"]["id"] if variant["verdict"] is not None else None,
        first=First(f"{reference}.f1", findings[0]["id"], Words(text=findings[0]["headline"])) if findings else None,
        findings=len(findings),
    )
