"""One finding: what it claims, what to change, and the events behind it."""

import pyarrow as pa

from tracekit.findings import Finding, Where, alike
from tracekit.kernel_names import short_kernel
from tracekit.profile import Profile
from tracekit.sanitize import sanitize
from tracekit.trace.schema import column
from tracekit.tui.model.content import Content, Piece, prose
from tracekit.tui.model.opened import Opened
from tracekit.tui.model.panes.instances import event_label
from tracekit.tui.model.panes.pane import Pane
from tracekit.tui.model.selection import Selection
from tracekit.tui.model.sheet import Sheet
from tracekit.units import duration, percent

_EVIDENCE = pa.schema(
    [
        column("step", pa.int64(), "the N of the step in which it starts", role="identity"),
        column("name", pa.string(), "name of the event", role="name"),
        column("dur_ns", pa.int64(), "duration", "ns"),
        column("event", pa.int64(), "row of the events table", role="plumbing"),
        column("file", pa.string(), "your file", role="source"),
        column("line", pa.int64(), "line number in the file", role="source"),
    ]
)

_CULPRIT = pa.schema(
    [
        column("what", pa.string(), "line, function, kernel, operator or module", role="name"),
        column("culprit", pa.string(), "its name"),
        column("file", pa.string(), "your file", role="source"),
        column("line", pa.int64(), "line number in the file", role="source"),
    ]
)


def finding(opened: Opened, selection: Selection) -> Content:
    """What it costs each variant that has it, what to change, why, the culprit, and the longest of the events."""
    chosen = selection.of("finding")
    if chosen is None:
        return Content((prose("No finding is selected: press Enter on one in the overview."),))
    name, index = chosen
    shown = opened.report.diagnoses[name].findings[index]
    of = next(
        {name: finding for name, (_, finding) in group.by_variant.items()}
        for group in alike(opened.narrowed(selection).report.diagnoses)
        if group.by_variant.get(name, (None,))[0] == index
    )
    pieces: list[Piece] = [
        prose(shown.headline, tone="lead"),
        prose(*(_cost(finding, name) for name, finding in of.items())),
        prose(
            *filter(None, (shown.do, *shown.also, shown.link and f"Read more: {shown.link}")), title="What to change"
        ),
    ]
    whys = {finding.why: name for name, finding in reversed(of.items()) if finding.why}
    said = [f"{name}: {why}" if len(of) > 1 else why for why, name in reversed(whys.items())]
    if shown.confidence == "inferred":
        said.append("This is inferred: the recording does not prove it.")
    if said:
        pieces.append(prose(*said, title="Why"))
    pieces += [_evidence(opened.profile(name), finding, selection, len(of) > 1) for name, finding in of.items()]
    if str(shown.where):
        pieces.append(_culprit(opened.profile(name), shown.where, selection))
    return Content(tuple(pieces))


def _cost(shown: Finding, name: str) -> str:
    if shown.cost_ns is None:
        return name
    bound = {"upper": "up to ", "lower": "at least ", "exact": ""}[shown.bound]
    share = f" ({percent(shown.share)})" if shown.share is not None else ""
    then = f"; {shown.then}" if shown.then else ""
    return f"{name}: {bound}{duration(shown.cost_ns)} a step{share}{then}"


def _culprit(profile: Profile, where: Where, selection: Selection) -> Sheet:
    """What is to blame: a row for each line, function, kernel, operator or module, which leads to the pane of it."""
    behind = "kernels" if profile.trace.device == "gpu" else "instances"
    line = f"{where.file}:{where.line}" if where.line is not None else where.file
    targets: dict[str, tuple[str | None, Selection | None]] = {
        "line": (line, None),
        "function": (where.function, None),
        "kernel": (where.kernel, selection.narrowed("kernel", where.kernel, _crumb(where.kernel), "instances")),
        "operator": (
            where.operator,
            selection.narrowed("operator", where.operator, _crumb(where.operator), behind),
        ),
        "module": (where.module, None),
    }
    if where.file is not None and where.line is not None:
        to_line = selection.narrowed("line", (where.file, where.line), _crumb(line), "source")
        targets["line"] = (line, to_line)
    rows = [(what, name, target) for what, (name, target) in targets.items() if name]
    columns = {
        "what": [what for what, _, _ in rows],
        "culprit": [sanitize(name) for _, name, _ in rows],
        "file": [where.file for _ in rows],
        "line": [where.line for _ in rows],
    }
    table = pa.Table.from_pydict(columns, schema=_CULPRIT)
    return Sheet("culprit", table, "To blame", lambda row: rows[row][2])


def _crumb(name: str | None) -> str:
    return sanitize(short_kernel(name or ""), 32)


def _evidence(profile: Profile, shown: Finding, selection: Selection, is_named: bool) -> Sheet | Piece:
    of = f" in {sanitize(profile.name)}" if is_named else ""
    if not shown.evidence:
        return prose(f"No single event causes this{of}.", tone="quiet")
    rows = [
        {
            "step": each.step,
            "name": each.name,
            "dur_ns": each.dur_ns,
            "event": each.event,
            "file": shown.where.file,
            "line": shown.where.line,
        }
        for each in shown.evidence
    ]

    def enter(row: int) -> Selection:
        each = shown.evidence[row]
        label = event_label(profile, each.event)
        return selection.narrowed("event", (profile.name, each.event), label, "timeline")

    return Sheet("evidence", pa.Table.from_pylist(rows, schema=_EVIDENCE), f"Its longest events{of}", enter)


FINDING = Pane(
    "finding",
    "Finding",
    "One cause of a slow step: what it costs, what to change, and the longest of its events. Enter shows one of them "
    "on the timeline.",
    finding,
    is_listed=False,
)
