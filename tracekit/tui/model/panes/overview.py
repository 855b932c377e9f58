"""How long a step takes, what bounds it, where its time goes, and which steps stand out."""

from collections.abc import Iterator

import pyarrow as pa

from tracekit.engine.buckets import ON_THE_GPU
from tracekit.findings import Finding
from tracekit.report.headline import headline
from tracekit.report.sections.step_series import lines
from tracekit.sanitize import sanitize
from tracekit.trace.schema import LABEL, column
from tracekit.tui.model.bucket_table import BucketTable, bucket_sheet, bucket_table, of_steps
from tracekit.tui.model.content import Content, Piece, prose
from tracekit.tui.model.opened import Opened
from tracekit.tui.model.panes.pane import Pane
from tracekit.tui.model.selection import Selection
from tracekit.tui.model.sheet import Sheet
from tracekit.tui.model.strip import strip_of

VIEWS = ("wall", "host")
_LONGEST = 2000  # characters of a sentence: a name in it may have millions
_FINDINGS = pa.schema(
    [
        column("cost_ns", pa.float64(), "cost per step: the most that a fix would save", "ns", title="costs"),
        column("share", pa.float64(), "share of the step", "share"),
        column("variant", LABEL, "variant that the step belongs to", role="name"),
        column("finding", pa.string(), "what makes the step slow, and what to change"),
        column("advice", pa.string(), "what to change", role="detail"),
        column("where", pa.string(), "what is to blame", role="detail"),
        column("file", pa.string(), "your file", role="source"),
        column("line", pa.int64(), "line number in the file", role="source"),
        column("place", pa.int64(), "index into the list of the variant's findings", role="plumbing"),
    ]
)


def overview(opened: Opened, selection: Selection) -> Content:
    """The verdict, the findings, the buckets side by side, and the steps one by one."""
    narrowed = opened.narrowed(selection)
    numbers = breakdown_of(narrowed, selection)
    findings = findings_sheet(narrowed, selection)
    strip = strip_of(lines(narrowed.report, selection.view), selection.of("steps"))
    lines_said = (sanitize(line, _LONGEST) for line in headline(narrowed.report))
    pieces: list[Piece] = [prose(*lines_said, tone="lead")]
    if problems := opened.report.subject.problems:
        pieces.append(prose(*(f"{name}: {why}" for name, why in problems), title="Problems"))
    if len(findings):
        pieces.append(findings)
    else:
        pieces.append(prose(*(each.verdict.sentence for each in narrowed.report.diagnoses.values())))
    pieces.append(numbers)
    if numbers.lines:
        pieces.append(bucket_sheet(numbers, lambda row: _of_bucket(numbers, row, selection)))
    pieces.append(strip)
    return Content(tuple(pieces))


def breakdown_of(opened: Opened, selection: Selection) -> BucketTable:
    """Where the time of the selected steps goes, or that of all counted steps if none are selected."""
    steps = selection.of("steps")
    if steps is None:
        return bucket_table(opened.report, selection.view)
    return of_steps(opened.report, selection.view, *steps)


def findings_sheet(opened: Opened, selection: Selection) -> Sheet:
    """The findings of all variants that are worth reporting: doubts first, then the costliest."""
    listed = [*_findings(opened)]
    listed.sort(key=lambda entry: (entry[2].cost_ns is not None, -(entry[2].cost_ns or 0.0)))
    several = len(opened.variants) > 1
    rows = [
        {
            "cost_ns": finding.cost_ns,
            "share": finding.share,
            "variant": name if several else None,
            "finding": sanitize(finding.title),
            "advice": sanitize(finding.advice) or None,
            "where": sanitize(str(finding.where)) or None,
            "file": finding.where.file,
            "line": finding.where.line,
            "place": index,
        }
        for name, index, finding in listed
    ]

    def enter(row: int) -> Selection:
        name, index, finding = listed[row]
        return selection.narrowed("finding", (name, index), finding.id.replace("_", " "), "finding")

    table = pa.Table.from_pylist(rows, schema=_FINDINGS)
    return Sheet("findings", table, enter=enter)


def _findings(opened: Opened) -> Iterator[tuple[str, int, Finding]]:
    for name in opened.variants:
        for index, finding in enumerate(opened.report.diagnoses[name].findings):
            yield name, index, finding


def _of_bucket(numbers: BucketTable, row: int, selection: Selection) -> Selection | None:
    """Where Enter on a bucket leads: to its kernels, or to the events on the host that are to blame for it."""
    line = numbers.lines[row]
    if not line.key:
        return None
    return selection.narrowed("bucket", line.key, line.label, "kernels" if line.key in ON_THE_GPU else "operators")


OVERVIEW = Pane(
    "overview",
    "Overview",
    "How long a step takes, what makes it slow, and where its time goes. Enter on a finding shows its evidence, on a "
    "bucket what it is made of. The bars share one scale; their parts are in the order of the table. Δ is the "
    "difference from the baseline; ~ marks one within noise. In the lines of steps, C marks a step that compiles and ! "
    "an outlier; Enter selects a step, Shift with the arrow keys several.",
    overview,
    chapters=frozenset({"headline", "findings", "wall", "host", "step_series"}),
)
