"""What a rule yields: one cause of a slow step, with what it costs, who is to blame, the events behind it, and what to
change.
"""

from typing import Any, Literal

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import asdict

from tracekit.base.intervals import Bools, Ints, Rows, Union, distinct
from tracekit.base.units import duration
from tracekit.engine.buckets import Bound
from tracekit.profile import Profile
from tracekit.profile.recording_words import of_the_recording
from tracekit.trace.facts import Figure
from tracekit.trace.schema import LABEL, column

_PLAIN = (
    "id", "title", "headline", "why", "do", "cost_ns", "claimed_ns", "then_bound_by", "bound", "share", "confidence",
    "advice", "link", "over_steps", "once",
)  # fmt: skip
_ABOUT_THE_HOST = ("launch_bound", "dispatch_bound", "python_bound")
_LITTLE_OF_CLAIMED = 0.5  # of the time claimed: where less is saved, it is said why
# What would bound a step without a cause.
_BOUND_BY: dict[Bound, str] = {
    "gpu": "the GPU's work",
    "communication": "communication",
    "copies": "copies",
    "gaps": "gaps between queued work",
    "host": "the host",
}
_NAMES = ("Python",)  # capitals that a sentence keeps wherever they are
FINDINGS = pa.schema(
    [
        column("id", LABEL, "the kind of finding"),
        column("title", pa.string(), "headline and evidence as one text", role="reason"),
        column("headline", pa.string(), "what is slow, and what is to blame for it", role="plumbing"),
        column("why", pa.string(), "the evidence", role="plumbing"),
        column("do", pa.string(), "what to change for this finding alone", role="plumbing"),
        column("also", pa.string(), "smaller findings that are part of it", role="plumbing"),
        column(
            "cost_ns", pa.float64(), "its cost per counted step: what it would save at most without the cause", "ns"
        ),
        column("claimed_ns", pa.float64(), "the time blamed on the cause per counted step, saved or not", "ns"),
        column("then_bound_by", LABEL, "what bounds the step without the cause"),
        column("bound", LABEL, "whether the cost is an upper bound, a lower bound or exact"),
        column("share", pa.float64(), "cost as a share of the step", "share"),
        column("confidence", LABEL, "measured or inferred"),
        column("where", pa.string(), "what is to blame: line, function, operator, kernel, module", role="place"),
        column("advice", pa.string(), "what to change"),
        column("link", pa.string(), "where to read more"),
        column("overlaps", pa.string(), "other findings that claim the same time"),
        column("rests_on", pa.string(), "figures that it would be wrong without", role="plumbing"),
    ]
)
MOST = 5


class Where(Struct, frozen=True):
    """What is to blame, as far as it is known."""

    file: str | None = None
    line: int | None = None
    function: str | None = None
    operator: str | None = None
    kernel: str | None = None
    module: str | None = None

    @property
    def at(self) -> str:
        """The line as the end of a clause, ` at model.py:12` (only the end of a long path); empty if unknown."""
        if self.file is None:
            return ""
        *folders, name = self.file.split("/")
        path = f"…/{folders[-1]}/{name}" if len(folders) > 1 else self.file
        return f" at {path}:{self.line}" if self.line is not None else f" in {path}"

    def __str__(self) -> str:
        position = f"{self.file}:{self.line}" if self.file and self.line is not None else self.file
        return ", ".join(
            str(part) for part in (position, self.function, self.operator, self.kernel, self.module) if part
        )


class Evidence(Struct, frozen=True):
    """One event behind a finding; `event` is its row in the events table."""

    event: int
    step: int | None
    name: str
    start_ns: int
    dur_ns: int


class Finding(Struct, frozen=True, eq=False):
    """One cause of a slow step.

    A rule says what it blames by `claim`: the time, on the trace's clock, that would be gained at most. Cost and share
    of a step are worked out from that, by a replay of the steps without it: what the step would save at most, which is
    never more than the time claimed. Time that a costlier finding claims as well counts there, and `overlaps` says so.
    A finding that casts doubt on the trace claims no time and has no cost: it is listed before all others. A rule that
    knows a cost but no time may set `cost_ns` itself. `{saving}` in evidence and advice stands for the cost.
    """

    id: str  # the kind of finding, of which one rule may yield several; the first finding's is the verdict's
    headline: str  # what is slow, and what is to blame for it, in at most twelve words; without a full stop
    cost_ns: float | None = None  # per step, and never more than the time it can be blamed for
    do: str = ""  # what to change: imperative, with the code or the command
    why: str = ""  # the evidence: one or two sentences
    also: tuple[str, ...] = ()  # smaller findings that are part of this one
    do_first: str = ""  # of a general one: what to change about the largest of these, if that is a large part
    share: float | None = None  # of the step
    bound: Literal["upper", "lower", "exact"] = "upper"
    where: Where = Where()
    evidence: tuple[Evidence, ...] = ()
    link: str = ""
    confidence: Literal["measured", "inferred"] = "measured"
    overlaps: tuple[str, ...] = ()  # other findings that claim the same time
    rests_on: tuple[
        Figure, ...
    ] = ()  # figures that it would be wrong without; what it claims decides, if it names none
    claim: Union | None = None
    saved: float = 1.0  # the share of the claimed time that the advice saves at most
    # The GPU activities whose time is claimed, by row; None: those that run in it and give it its bucket.
    work: Ints | None = None
    # The GPU activities that are there only because of the cause, by row.
    undone: Ints | None = None
    # What the driving threads do because of the cause, beside a busy GPU, too; None: only what they do at some of the
    # time claimed.
    host: Union | None = None
    # A cost of steps that the means leave out, such as compiling: where it counts, costs are spread over all steps.
    every_step: bool = False
    once: bool = False  # a cost of steps that the means leave out, and of no other: it takes nothing of a counted step
    general: bool = False  # it names no single cause: one that explains half of it is to be told first
    claimed_ns: float | None = None  # per step: the time claimed that no costlier finding claims, too
    rest: bool = False  # the cost leaves out what other findings count, so it is not all that removing the cause saves
    unprofiled: bool = False  # the step that cost and share are of is shorter than the recorded one
    over_steps: int = 0  # how many steps the cost is spread over, where the means leave some of them out
    then_bound_by: Bound | None = None  # what bounds the step without the cause, where a replay tells
    of_recording: bool = False  # the recording has no steps: it is what is bounded

    @property
    def title(self) -> str:
        """Headline and evidence as one text, without a full stop at its end."""
        return ". ".join(filter(None, (self.headline, self.why))).rstrip(".")

    @property
    def total(self) -> str:
        """The cost of all the steps that it is spread over, `10.5 ms in all` or `21.8 ms, once`; empty where it is one
        of each counted step, as the means are."""
        if not self.over_steps or self.cost_ns is None:
            return ""
        return f"{duration(self.cost_ns * self.over_steps)}{', once' if self.once else ' in all'}"

    @property
    def advice(self) -> str:
        """The finding's own advice, followed by that of the findings that are part of it."""
        return " ".join(filter(None, (self.do, *self.also)))

    @property
    def then(self) -> str:
        """What would bound the step without the cause, as a clause: `without this cause, the GPU's work would bound
        the step`; empty if unknown. It also says why little of the time claimed is saved."""
        if self.then_bound_by is None:
            return ""
        still = self.then_bound_by == "host" and self.id in _ABOUT_THE_HOST
        clause = f"{'even ' if still else ''}without this cause, {_BOUND_BY[self.then_bound_by]} would bound the step"
        if not self.rest and self.cost_ns and self.cost_ns < _LITTLE_OF_CLAIMED * (self.claimed_ns or 0.0):
            clause += f", so removing it saves only {duration(self.cost_ns)}"
        return of_the_recording(clause) if self.of_recording else clause

    def document(self) -> dict[str, Any]:
        """The finding as an entry of the JSON report."""
        content = {name: getattr(self, name) for name in _PLAIN}
        evidence = [asdict(event) for event in self.evidence]
        listed = {name: list(getattr(self, name)) for name in ("also", "overlaps", "rests_on")}
        return {**content, "where": asdict(self.where), "evidence": evidence, **listed}


def as_clause(sentence: str) -> str:
    """The sentence as it goes on after other words, such as `At model.py:12, `: without its capital letter."""
    word = sentence.partition(" ")[0]
    return sentence if word in _NAMES or not word[1:].islower() else sentence[:1].lower() + sentence[1:]


def table(causes: list[Finding]) -> pa.Table:
    """Findings as rows."""
    rows = [
        {
            **cause.document(),
            "where": str(cause.where) or None,
            "overlaps": ", ".join(cause.overlaps) or None,
            "also": " ".join(cause.also) or None,
            "rests_on": ", ".join(cause.rests_on) or None,
        }
        for cause in causes
    ]
    return pa.Table.from_pylist(rows, schema=FINDINGS)


def evidence(profile: Profile, rows: Ints | Rows, limit: int = MOST) -> tuple[Evidence, ...]:
    """The longest of these events, the longest first, ties in order of time."""
    longest = np.lexsort((rows, -profile.trace.dur_ns[rows]))[:limit]
    return in_order(profile, np.asarray(rows, np.int64)[longest], limit)


def in_order(profile: Profile, rows: Ints, limit: int = MOST) -> tuple[Evidence, ...]:
    """The first of these events, in the order given."""
    trace, rows = profile.trace, rows[:limit]
    steps = trace.steps.of(trace.ts_ns[rows])
    return tuple(
        Evidence(
            event=row,
            step=trace.steps.number[step] if step >= 0 else None,
            name=trace.name(row),
            start_ns=int(trace.ts_ns[row]),
            dur_ns=int(trace.dur_ns[row]),
        )
        for row, step in zip(rows.tolist(), steps.tolist(), strict=True)
    )


def blamed_events(profile: Profile, piece_mask: Bools) -> Ints:
    """The events that some pieces of counted steps are blamed on; none where nothing was recorded meanwhile."""
    pieces = profile.attribution.pieces
    rows = distinct(pieces.event[piece_mask & profile.counted[pieces.step]]).astype(np.int64)
    return rows[rows >= 0]
