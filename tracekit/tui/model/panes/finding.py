"""One finding: what it claims, what to change, and the events behind it."""

import pyarrow as pa

from tracekit.findings import Finding
from tracekit.profile import Profile
from tracekit.sanitize import sanitize
from tracekit.trace.schema import column
from tracekit.tui.model.content import Content, Piece, prose
from tracekit.tui.model.opened import Opened
from tracekit.tui.model.panes.pane import Pane
from tracekit.tui.model.selection import Selection
from tracekit.tui.model.sheet import Sheet
from tracekit.units import duration, percent

_EVIDENCE = pa.schema(
    [
        column("step", pa.int64(), "the N of the step in which it starts", role="identity"),
        column("name", pa.string(), "what it is", role="name"),
        column("dur_ns", pa.int64(), "how long it lasts", "ns"),
        column("event", pa.int64(), "row of the events table", role="plumbing"),
        column("file", pa.string(), "your file", role="source"),
        column("line_number", pa.int64(), "line in it", role="source"),
    ]
)


def finding(opened: Opened, selection: Selection) -> Content:
    """The sentence, the advice, the culprit, and the longest of the events."""
    chosen = selection.of("finding")
    if chosen is None:
        return Content((prose("No finding is selected: Enter on one of the overview."),))
    name, place = chosen
    shown = opened.report.diagnoses[name].findings[place]
    pieces: list[Piece] = [
        prose(_cost(shown, name), tone="lead"),
        prose(shown.title),
        prose(*filter(None, (shown.advice, shown.link and f"Read on: {shown.link}")), title="What to change"),
    ]
    if str(shown.where):
        pieces.append(prose(str(shown.where), title="Culprit"))
    if shown.confidence == "inferred":
        pieces.append(prose("This is inferred: the recording does not prove it."))
    pieces.append(_evidence(opened.profile(name), shown, selection))
    return Content(tuple(pieces))


def _cost(shown: Finding, name: str) -> str:
    said = f"{name}: {shown.id.replace('_', ' ')}"
    if shown.cost_ns is not None:
        bound = {"upper": "at most ", "lower": "at least ", "exact": ""}[shown.bound]
        said += f", {bound}{duration(shown.cost_ns)} a step"
    return f"{said} ({percent(shown.share)})" if shown.share is not None else said


def _evidence(profile: Profile, shown: Finding, selection: Selection) -> Sheet | Piece:
    if not shown.evidence:
        return prose("No single event stands for it.", tone="quiet")
    rows = [
        {
            "step": each.step,
            "name": each.name,
            "dur_ns": each.dur_ns,
            "event": each.event,
            "file": shown.where.file,
            "line_number": shown.where.line,
        }
        for each in shown.evidence
    ]

    def enter(row: int) -> Selection:
        each = shown.evidence[row]
        label = f"{sanitize(each.name, 30)} {duration(each.dur_ns)}"
        return selection.narrowed("event", (profile.name, each.event), label, "event")

    return Sheet("evidence", pa.Table.from_pylist(rows, schema=_EVIDENCE), "Its longest events", enter)


FINDING = Pane(
    "finding",
    "Finding",
    "One cause of a slow step: what it costs, what to change, and the longest of its events. Enter shows one of them.",
    finding,
    is_listed=False,
)
