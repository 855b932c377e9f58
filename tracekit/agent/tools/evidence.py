"""Which events are behind a figure? And what does an id of a report mean?

A reference begins with the variant: `v1.f2` is its second finding, `v1.e255` the event at row 255 of its table of
events, `v1.s12` its step ProfilerStep#12, `v1.wall` its mean step, and `v1.wall.sync_stall` or `v1.s12.sync_stall` a
bucket of one of them. An id of a finding, a law or a bucket is a reference to its page.
"""

import re
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from msgspec import Meta, Struct, field

from tracekit.agent.answers import Answer, Call, Figure, QuestionAboutInputs, Words, figure
from tracekit.agent.inputs import Opened, Workplace
from tracekit.agent.tools.findings import Sentences
from tracekit.base.intervals import Bools, Ints
from tracekit.engine.buckets import BUCKETS, CODES, HOST, WALL
from tracekit.errors.asking import UnknownReferenceError
from tracekit.profile import Profile
from tracekit.profile.where import line_table
from tracekit.report.explained import all_pages

Relation = Literal["inside", "launched by", "launched"]
_MOST_EVENTS = 20
_REFERENCE = re.compile(
    r"(?P<variant>v\d+)\.(?:f(?P<finding>\d+)|e(?P<event>\d+)|(?:s(?P<step>-?\d+)|(?P<view>wall|host))(?:\.(?P<bucket>\w+))?)"
)
_FORMS = "give v1.f1, v1.e0, v1.s0, v1.wall or v1.wall.BUCKET as in the answers, or the id of a finding, law or bucket"


class EvidenceQuestion(QuestionAboutInputs, kw_only=True, forbid_unknown_fields=True):
    """What to show the events of."""

    of: Annotated[
        str,
        Meta(
            description="a reference of an answer: a finding v1.f1, an event v1.e255, a step v1.s12, a mean step "
            "v1.wall, a bucket v1.wall.sync_stall or v1.s12.sync_stall; or the id of a finding, a law or a bucket"
        ),
    ]


class Event(Struct, omit_defaults=True, forbid_unknown_fields=True):
    """An event of the trace, or a piece of a bucket that is blamed on none. `start` is on the trace's clock;
    `untrusted` has its name, and the line of the user's code that owns it."""

    start: Figure
    duration: Figure
    untrusted: Words
    event: Annotated[str | None, Meta(description="its reference")] = None
    step: Annotated[str | None, Meta(description="the reference of its step")] = None
    relation: Annotated[Relation | None, Meta(description="to the event that was asked about")] = None


class Part(Struct, forbid_unknown_fields=True):
    """A bucket of what was asked about."""

    bucket: str
    time: Figure
    meaning: str


class Paragraph(Struct, forbid_unknown_fields=True):
    """A part of the page of an id: tracekit's own words about every recording, not about this one."""

    heading: str
    text: str


class EvidenceAnswer(Answer, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What is behind a reference: how long it takes, its buckets, its longest events, and what its id means. `total` is
    how many events or pieces there are; the longest are listed."""

    lists: ClassVar = ("events", "buckets", "page")
    of: str
    time: Figure | None = None
    total: int = 0
    untrusted: Sentences | None = None
    events: list[Event] = field(default_factory=list)
    buckets: list[Part] = field(default_factory=list)
    page: list[Paragraph] = field(default_factory=list)


def evidence(workplace: Workplace, question: EvidenceQuestion) -> EvidenceAnswer:
    """The events behind a figure or a finding of another answer, with the lines that own them; or what the id of a
    finding, a law or a bucket means, when it is wrong, and what to change."""
    inputs = {"inputs": question.inputs}
    if page := _page(question.of):
        return EvidenceAnswer(of=question.of, page=page, next=[Call("findings", inputs, "where it is found here")])
    opened = workplace.open(question.inputs)
    match = _REFERENCE.fullmatch(question.of)
    if match is None:
        raise UnknownReferenceError(question.of, _FORMS)
    variant = match["variant"]
    profile = opened.profile(variant)
    answer = EvidenceAnswer(of=question.of, **opened.limits(variant), next=[])
    if match["finding"]:
        _of_finding(opened, profile, variant, answer)
    elif match["event"]:
        _of_event(profile, variant, int(match["event"]), answer)
    else:
        _of_time(profile, variant, match, answer)
    if answer.events and not match["event"] and answer.events[0].event is not None:
        answer.next = [Call("evidence", {**inputs, "of": answer.events[0].event}, "what is around the longest event")]
    else:
        answer.next = [Call("query", inputs, "the tables, to ask more about events")]
    return answer


def _page(name: str) -> list[Paragraph]:
    """The page of an id; empty if nothing has it."""
    return [
        Paragraph(part.heading, "\n".join(part.texts))
        for page in all_pages()
        if page.id == name
        for part in page.parts
        if part.layout != "lines"  # an example is a recording of its own
    ]


def _of_finding(opened: Opened, profile: Profile, variant: str, answer: EvidenceAnswer) -> None:
    finding = dict(opened.findings()).get(answer.of)
    if finding is None:
        raise UnknownReferenceError(answer.of, "the variant has fewer findings")
    rows = np.array([event["event"] for event in finding["evidence"]], np.int64)
    answer.time = figure(finding["cost_ns"], bound=finding["bound"]) if finding["cost_ns"] is not None else None
    answer.untrusted = Sentences(finding["headline"], finding["why"], finding["advice"], **finding["where"])
    answer.events = _events(profile, variant, rows)
    answer.total = len(rows)
    answer.page = _page(finding["id"])


def _of_event(profile: Profile, variant: str, row: int, answer: EvidenceAnswer) -> None:
    """The event, what encloses it on its thread, and what launched it or what it launched."""
    trace = profile.trace
    if row >= len(trace.ts_ns):
        raise UnknownReferenceError(answer.of, f"the trace has {len(trace.ts_ns)} events")
    activities, launches = (np.asarray(rows, np.int64) for rows in (trace.links.activities, trace.links.launches))
    linked: dict[Relation, Ints] = {"launched by": launches[activities == row], "launched": activities[launches == row]}
    around = _around(profile, int(linked["launched by"][0]) if len(linked["launched by"]) else row)
    answer.events = _events(profile, variant, np.array([row]))
    for relation, rows in (*linked.items(), ("inside", around)):
        answer.events += _events(profile, variant, rows[:_MOST_EVENTS], relation)
    answer.total = len(answer.events)
    answer.time = figure(int(trace.dur_ns[row]))


def _around(profile: Profile, row: int) -> Ints:
    """The events of the same thread or stream that last for all of this one, the innermost first."""
    trace = profile.trace
    start, end = trace.ts_ns[row], trace.ts_ns[row] + trace.dur_ns[row]
    covers = (trace.track == trace.track[row]) & (trace.ts_ns <= start) & (trace.ts_ns + trace.dur_ns >= end)
    covers[row] = False
    rows = np.flatnonzero(covers)
    innermost_first: Ints = rows[np.argsort(trace.dur_ns[rows], kind="stable")]
    return innermost_first


def _of_time(profile: Profile, variant: str, match: re.Match[str], answer: EvidenceAnswer) -> None:
    """A step or a mean step, or a bucket of one."""
    attribution, steps = profile.attribution, profile.trace.steps
    view = attribution.views[match["view"]] if match["view"] else attribution.answered_view
    bucket = match["bucket"]
    if bucket is not None and bucket not in (WALL if view.name == "wall" else HOST):
        raise UnknownReferenceError(answer.of, f"the buckets of the {view.name} view are {', '.join(view.keys)}")
    chosen: Bools = profile.answered[view.name]
    if match["step"]:
        number = int(match["step"])
        if number not in steps.number:
            raise UnknownReferenceError(answer.of, f"the steps are {_listed(steps.number)}")
        chosen = (np.array(steps.number) == number) & view.known
    if not chosen.any():
        return  # `cannot_answer` says why
    mean = dict(zip(view.keys, view.totals[chosen].mean(axis=0).tolist(), strict=True))
    answer.time = figure(mean[bucket] if bucket is not None else float(view.step_ns[chosen].mean()))
    keys = [bucket] if bucket is not None else sorted(mean, key=lambda key: -mean[key])
    answer.buckets = [
        Part(key, figure(mean[key], evidence=f"{answer.of.removesuffix(f'.{key}')}.{key}"), BUCKETS[key].meaning)
        for key in keys
        if round(mean[key])
    ]
    pieces = attribution.pieces
    if pieces.view != view.name:  # only the pieces of the view that a trace can answer first are kept
        return
    selected = chosen[pieces.step]
    if bucket is not None:
        selected &= pieces.bucket == CODES[bucket]
    rows = np.flatnonzero(selected)
    longest = rows[np.argsort(-pieces.dur[rows], kind="stable")][:_MOST_EVENTS]
    answer.total = len(rows)
    answer.events = _events(
        profile,
        variant,
        np.asarray(pieces.event[longest], np.int64),
        spans=(pieces.start[longest], pieces.dur[longest]),
    )


def _events(
    profile: Profile,
    variant: str,
    rows: Ints,
    relation: Relation | None = None,
    spans: tuple[Ints, Ints] | None = None,
) -> list[Event]:
    """The events at these rows, −1 for none; `spans` are the times that are blamed on them."""
    trace = profile.trace
    starts, lengths = spans if spans is not None else (trace.ts_ns[rows], trace.dur_ns[rows])
    places: list[dict[str, Any]] = line_table(profile, rows).to_pylist()
    steps = trace.steps.of(starts)
    return [
        Event(
            figure(int(start)),
            figure(int(length)),
            Words(
                trace.name(row) if row >= 0 else None,
                file=place["file"],
                line=place["line"],
                function=place["function"],
                text=None if place["file"] else place["where"],
            ),
            f"{variant}.e{row}" if row >= 0 else None,
            f"{variant}.s{trace.steps.number[step]}" if step >= 0 else None,
            relation,
        )
        for row, start, length, step, place in zip(
            rows.tolist(), starts.tolist(), lengths.tolist(), steps.tolist(), places, strict=True
        )
    ]


def _listed(numbers: list[int]) -> str:
    return f"{numbers[0]} to {numbers[-1]}" if numbers else "unknown"
