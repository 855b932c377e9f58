"""How long a step takes, what bounds it, where its time goes, and which steps stand out; the findings of all variants
as cards; and one of them in full, with the events behind it.
"""

import pyarrow as pa

from tracekit.base.names import sanitize
from tracekit.base.units import duration, percent
from tracekit.engine.buckets import BUCKETS
from tracekit.findings import Finding, Where, alike
from tracekit.profile import Profile
from tracekit.report.sections.findings import INFERRED, cost
from tracekit.report.sections.headline import at_a_glance, headline, step_lines
from tracekit.report.sections.run_facts import doubt_lines
from tracekit.trace.schema import LABEL, column
from tracekit.tui.model.bucket_table import BucketTable, bucket_sheet, bucket_table, of_steps
from tracekit.tui.model.content import Content, Pane, Piece, prose
from tracekit.tui.model.opened import OpenReport
from tracekit.tui.model.panes.instances import to_event
from tracekit.tui.model.selection import Selection
from tracekit.tui.model.sheet import Card, Sheet
from tracekit.tui.model.strip import strip_of
from tracekit.vocabulary.kernel_names import short_kernel

VIEWS = ("wall", "host")
_LONGEST = 2000  # characters of a sentence: a name in it may have millions
_SOURCE = (
    column("file", pa.string(), "your file", role="source"),
    column("line", pa.int64(), "line number in the file", role="source"),
)
_FINDINGS = pa.schema(
    [
        column("cost_ns", pa.float64(), "cost per step: the most that a fix would save", "ns", title="costs"),
        column("share", pa.float64(), "share of the step", "share"),
        column("variant", LABEL, "variant that the step belongs to", role="name"),
        column("finding", pa.string(), "what makes the step slow"),
        column("why", pa.string(), "the evidence", role="detail"),
        column("advice", pa.string(), "what to change", role="detail"),
        column("where", pa.string(), "what is to blame", role="detail"),
        *_SOURCE,
        column("id", LABEL, "the kind of finding", role="plumbing"),
    ]
)
_EVIDENCE = pa.schema(
    [
        column("step", pa.int64(), "the N of the step in which it starts", role="identity"),
        column("name", pa.string(), "name of the event", role="name"),
        column("dur_ns", pa.int64(), "duration", "ns"),
        column("event", pa.int64(), "row of the events table", role="plumbing"),
        *_SOURCE,
    ]
)
_CULPRIT = pa.schema(
    [
        column("what", pa.string(), "line, function, kernel, operator or module", role="name"),
        column("culprit", pa.string(), "its name"),
        *_SOURCE,
    ]
)


def overview(opened: OpenReport, selection: Selection) -> Content:
    """The verdict, the findings, the buckets side by side, and the steps one by one."""
    narrowed = opened.narrowed(selection)
    numbers = breakdown_of(narrowed, selection)
    findings = findings_sheet(narrowed, selection)
    glance = at_a_glance(narrowed.report, ())
    first = [glance.first, f"→ {glance.last}" if glance.last else ""]
    leading = [*doubt_lines(narrowed.report), *filter(None, first), *headline(narrowed.report)]
    pieces: list[Piece] = [prose(*(sanitize(line, _LONGEST) for line in leading), tone="lead")]
    if problems := opened.report.subject.problems:
        pieces.append(prose(*(f"{name}: {why}" for name, why in problems), title="Problems"))
    if len(findings):
        pieces.append(findings)
    # What bounds a step of the variants of which nothing is worth changing.
    diagnoses = narrowed.report.diagnoses
    verdicts = {name: diagnosis.verdict.sentence for name, diagnosis in diagnoses.items() if not diagnosis.findings}
    if verdicts:
        names = [f"{name}: " if len(diagnoses) > 1 else "" for name in verdicts]
        sentences = [sanitize(sentence, _LONGEST) for sentence in verdicts.values()]
        pieces.append(prose(*map("".join, zip(names, sentences, strict=True))))
    pieces.append(numbers)

    def enter(row: int) -> Selection:
        line = numbers.lines[row]
        return selection.to_bucket(line.key, line.label) if line.key else selection.at("timeline")

    if numbers.lines:
        pieces.append(bucket_sheet(numbers, enter))
    pieces.append(strip_of(step_lines(narrowed.report, selection.view), selection.of("steps")))
    return Content(tuple(pieces))


def breakdown_of(opened: OpenReport, selection: Selection) -> BucketTable:
    """Where the time of the selected steps goes, or that of all counted steps if none are selected."""
    steps = selection.of("steps")
    if steps is None:
        return bucket_table(opened.report, selection.view)
    return of_steps(opened.report, selection.view, *steps)


def findings_sheet(opened: OpenReport, selection: Selection) -> Sheet:
    """The findings that are worth telling, equal ones of several variants once: doubts first, then the costliest."""
    groups = alike(opened.report.diagnoses)
    several = len(opened.variants) > 1
    rows = [
        {
            "cost_ns": group.finding.cost_ns,
            "share": group.finding.share,
            "variant": ", ".join(group.by_variant) if several else None,
            "finding": sanitize(group.finding.headline),
            "why": sanitize(group.finding.why) or None,
            "advice": sanitize(group.finding.advice) or None,
            "where": sanitize(str(group.finding.where)) or None,
            "file": group.finding.where.file,
            "line": group.finding.where.line,
            "id": group.finding.id,
        }
        for group in groups
    ]

    def card(by_variant: dict[str, Finding]) -> Card:
        name, first = next(iter(by_variant.items()))
        figures = tuple(
            (
                finding.total or (duration(finding.cost_ns) if finding.cost_ns is not None else ""),
                percent(finding.share) if finding.share is not None else "",
                *([sanitize(variant)] if several else []),
            )
            for variant, finding in by_variant.items()
        )
        differ = len({finding.why for finding in by_variant.values()}) > 1
        why = f"{name}: {first.why}" if differ and first.why else first.why
        parts = (f"→ {first.advice}" if first.advice else "", why)
        return Card(figures, sanitize(first.headline), tuple(sanitize(part, _LONGEST) for part in parts if part))

    def enter(row: int) -> Selection:
        name, (index, finding) = next(iter(groups[row].by_variant.items()))
        return selection.narrowed("finding", (name, index), finding.id.replace("_", " "), "finding")

    cards = [card({name: finding for name, (_, finding) in group.by_variant.items()}) for group in groups]
    return Sheet("findings", pa.Table.from_pylist(rows, schema=_FINDINGS), enter=enter, cards=(*cards,))


def explained_id(opened: OpenReport, selection: Selection, sheet: Sheet | None, cursor: int) -> str:
    """The id of the finding or the bucket that is under the cursor or selected; empty for none."""
    if sheet is not None and sheet.name in ("findings", "buckets") and 0 <= cursor < len(sheet):
        row = sheet.row_at(cursor)
        if sheet.name == "findings":
            return str(sheet.table["id"][row].as_py())
        label = sheet.table["bucket"][row].as_py()
        return next((bucket.key for bucket in BUCKETS.values() if bucket.label == label), "")
    if selection.pane == FINDING.name and (key := selection.of("finding")) is not None:
        name, index = key
        found: Finding = opened.report.diagnoses[name].findings[index]
        return found.id
    return ""


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
    costs = [
        name if finding.cost_ns is None else f"{name}: {cost(finding)}{f'; {finding.then}' if finding.then else ''}"
        for name, finding in by_variant.items()
    ]
    link = selected_finding.link and f"Read more: {selected_finding.link}"
    advice = filter(None, (selected_finding.do, *selected_finding.also, link))
    pieces: list[Piece] = [
        prose(selected_finding.headline, tone="lead"),
        prose(*costs),
        prose(*advice, title="What to change"),
    ]
    whys = {finding.why: name for name, finding in reversed(by_variant.items()) if finding.why}
    reasons = [f"{name}: {why}" if len(by_variant) > 1 else why for why, name in reversed(whys.items())]
    if selected_finding.confidence == "inferred":
        reasons.append(INFERRED)
    reasons.append(f"Press m to read what {sanitize(selected_finding.id)} means, and when it is wrong.")
    pieces.append(prose(*reasons, title="Why"))
    pieces += [
        _evidence(opened.profile(name), finding, selection, len(by_variant) > 1) for name, finding in by_variant.items()
    ]
    if str(selected_finding.where):
        pieces.append(_culprit(opened.profile(name), selected_finding.where, selection))
    return Content(tuple(pieces))


def _evidence(profile: Profile, finding: Finding, selection: Selection, is_named: bool) -> Piece:
    variant_phrase = f" in {sanitize(profile.name)}" if is_named else ""
    if not finding.evidence:
        return prose(f"No single event causes this{variant_phrase}.", tone="quiet")
    place = {"file": finding.where.file, "line": finding.where.line}
    names = ("step", "name", "dur_ns", "event")

    def enter(row: int) -> Selection:
        return to_event(selection, profile, finding.evidence[row].event, "timeline")

    rows = [place | {name: getattr(event, name) for name in names} for event in finding.evidence]
    table = pa.Table.from_pylist(rows, schema=_EVIDENCE)
    return Sheet("evidence", table, f"Its longest events{variant_phrase}", enter)


def _culprit(profile: Profile, culprit: Where, selection: Selection) -> Sheet:
    """What is to blame: a row for each line, function, kernel, operator or module, which leads to the pane of it."""
    behind = "kernels" if profile.trace.device == "gpu" else "instances"
    line, to_line = culprit.file, None
    if culprit.file is not None and culprit.line is not None:
        line = f"{culprit.file}:{culprit.line}"
        to_line = selection.narrowed("line", (culprit.file, culprit.line), _crumb(line), "source")
    to_kernel = selection.narrowed("kernel", culprit.kernel, _crumb(culprit.kernel), "instances")
    to_operator = selection.narrowed("operator", culprit.operator, _crumb(culprit.operator), behind)
    culprits = [
        ("line", line, to_line),
        ("function", culprit.function, None),
        ("kernel", culprit.kernel, to_kernel),
        ("operator", culprit.operator, to_operator),
        ("module", culprit.module, None),
    ]
    rows = [(kind, sanitize(name), target) for kind, name, target in culprits if name]
    kinds, names, targets = zip(*rows, strict=True)
    columns = [kinds, names, [culprit.file] * len(rows), [culprit.line] * len(rows)]
    table = pa.table(dict(zip(_CULPRIT.names, columns, strict=True)), schema=_CULPRIT)
    return Sheet("culprit", table, "To blame", targets.__getitem__)


def _crumb(name: str | None) -> str:
    return sanitize(short_kernel(name or ""), 32)


OVERVIEW = Pane(
    "overview",
    "Overview",
    "How long a step takes, what makes it slow, and where its time goes. Enter on a finding shows its evidence, on a "
    "bucket what it is made of; m explains either. The bars share one scale; their parts are in the order of the "
    "table. Δ is the difference from the baseline; ~ marks one within noise, ≠ one that pairs of traces do not show. "
    "In the lines of steps, C marks a step that compiles and ! an outlier; Enter selects a step, Shift with the arrow "
    "keys several.",
    overview,
    chapters=frozenset({"doubts", "headline", "findings", "wall", "host", "step_series"}),
    key="V",
)
FINDING = Pane(
    "finding",
    "Finding",
    "One cause of a slow step: what it costs, what to change, and the longest of its events. Enter shows one of them "
    "on the timeline.",
    finding,
    is_listed=False,
)
