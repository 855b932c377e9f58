"""One finding: what it claims, what to change, and the events behind it."""

import pyarrow as pa

from tracekit.base.names import sanitize
from tracekit.findings import Finding, Where, alike
from tracekit.profile import Profile
from tracekit.report.sections.findings import cost
from tracekit.trace.schema import column
from tracekit.tui.model.content import Content, Pane, Piece, prose
from tracekit.tui.model.opened import OpenReport
from tracekit.tui.model.panes.instances import event_label
from tracekit.tui.model.selection import Selection
from tracekit.tui.model.sheet import Sheet
from tracekit.vocabulary.kernel_names import short_kernel

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


def finding(opened: OpenReport, selection: Selection) -> Content:
    """What it costs each variant that has it, what to change, why, the culprit, and the longest of the events."""
    finding_key = selection.of("finding")
    if finding_key is None:
        return Content((prose("No finding is selected: press Enter on one in the overview."),))
    name, index = finding_key
    selected_finding = opened.report.diagnoses[name].findings[index]
    by_variant = next(
        {name: finding for name, (_, finding) in group.by_variant.items()}
        for group in alike(opened.narrowed(selection).report.diagnoses)
        if group.by_variant.get(name, (None,))[0] == index
    )
    pieces: list[Piece] = [
        prose(selected_finding.headline, tone="lead"),
        prose(*(_cost(finding, name) for name, finding in by_variant.items())),
        prose(
            *filter(
                None,
                (
                    selected_finding.do,
                    *selected_finding.also,
                    selected_finding.link and f"Read more: {selected_finding.link}",
                ),
            ),
            title="What to change",
        ),
    ]
    whys = {finding.why: name for name, finding in reversed(by_variant.items()) if finding.why}
    reasons = [f"{name}: {why}" if len(by_variant) > 1 else why for why, name in reversed(whys.items())]
    if selected_finding.confidence == "inferred":
        reasons.append("This is inferred: the recording does not prove it.")
    if reasons:
        pieces.append(prose(*reasons, title="Why"))
    pieces += [
        _evidence(opened.profile(name), finding, selection, len(by_variant) > 1) for name, finding in by_variant.items()
    ]
    if str(selected_finding.where):
        pieces.append(_culprit(opened.profile(name), selected_finding.where, selection))
    return Content(tuple(pieces))


def _cost(finding: Finding, name: str) -> str:
    if finding.cost_ns is None:
        return name
    consequence = f"; {finding.then}" if finding.then else ""
    return f"{name}: {cost(finding)}{consequence}"


def _culprit(profile: Profile, culprit: Where, selection: Selection) -> Sheet:
    """What is to blame: a row for each line, function, kernel, operator or module, which leads to the pane of it."""
    behind = "kernels" if profile.trace.device == "gpu" else "instances"
    line = f"{culprit.file}:{culprit.line}" if culprit.line is not None else culprit.file
    targets: dict[str, tuple[str | None, Selection | None]] = {
        "line": (line, None),
        "function": (culprit.function, None),
        "kernel": (culprit.kernel, selection.narrowed("kernel", culprit.kernel, _crumb(culprit.kernel), "instances")),
        "operator": (
            culprit.operator,
            selection.narrowed("operator", culprit.operator, _crumb(culprit.operator), behind),
        ),
        "module": (culprit.module, None),
    }
    if culprit.file is not None and culprit.line is not None:
        to_line = selection.narrowed("line", (culprit.file, culprit.line), _crumb(line), "source")
        targets["line"] = (line, to_line)
    rows = [(kind, name, target) for kind, (name, target) in targets.items() if name]
    columns = {
        "what": [kind for kind, _, _ in rows],
        "culprit": [sanitize(name) for _, name, _ in rows],
        "file": [culprit.file for _ in rows],
        "line": [culprit.line for _ in rows],
    }
    table = pa.Table.from_pydict(columns, schema=_CULPRIT)
    return Sheet("culprit", table, "To blame", lambda row: rows[row][2])


def _crumb(name: str | None) -> str:
    return sanitize(short_kernel(name or ""), 32)


def _evidence(profile: Profile, finding: Finding, selection: Selection, is_named: bool) -> Sheet | Piece:
    variant_phrase = f" in {sanitize(profile.name)}" if is_named else ""
    if not finding.evidence:
        return prose(f"No single event causes this{variant_phrase}.", tone="quiet")
    rows = [
        {
            "step": instance.step,
            "name": instance.name,
            "dur_ns": instance.dur_ns,
            "event": instance.event,
            "file": finding.where.file,
            "line": finding.where.line,
        }
        for instance in finding.evidence
    ]

    def enter(row: int) -> Selection:
        instance = finding.evidence[row]
        label = event_label(profile, instance.event)
        return selection.narrowed("event", (profile.name, instance.event), label, "timeline")

    return Sheet("evidence", pa.Table.from_pylist(rows, schema=_EVIDENCE), f"Its longest events{variant_phrase}", enter)


FINDING = Pane(
    "finding",
    "Finding",
    "One cause of a slow step: what it costs, what to change, and the longest of its events. Enter shows one of them "
    "on the timeline.",
    finding,
    is_listed=False,
)
