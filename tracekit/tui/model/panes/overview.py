"""How long a step takes, what bounds it, where its time goes, and which steps stand out."""

from tracekit.base.names import sanitize
from tracekit.report.sections.doubts import doubt_lines
from tracekit.report.sections.headline import at_a_glance, headline, step_lines
from tracekit.tui.model.bucket_table import BucketTable, bucket_sheet, bucket_table, of_steps
from tracekit.tui.model.content import Content, Pane, Piece, prose
from tracekit.tui.model.opened import OpenReport
from tracekit.tui.model.panes.findings import findings_sheet
from tracekit.tui.model.selection import Selection
from tracekit.tui.model.strip import strip_of

VIEWS = ("wall", "host")
_LONGEST = 2000  # characters of a sentence: a name in it may have millions


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
    pieces += [*_verdicts(narrowed), numbers]

    def enter(row: int) -> Selection:
        line = numbers.lines[row]
        return selection.to_bucket(line.key, line.label) if line.key else selection.at("timeline")

    if numbers.lines:
        pieces.append(bucket_sheet(numbers, enter))
    pieces.append(strip_of(step_lines(narrowed.report, selection.view), selection.of("steps")))
    return Content(tuple(pieces))


def _verdicts(opened: OpenReport) -> list[Piece]:
    """What bounds a step of the variants of which nothing is worth changing."""
    sentence_of = {
        name: sanitize(diagnosis.verdict.sentence, _LONGEST)
        for name, diagnosis in opened.report.diagnoses.items()
        if not diagnosis.findings
    }
    several = len(opened.report.diagnoses) > 1
    lines = (f"{sanitize(name)}: {sentence}" if several else sentence for name, sentence in sentence_of.items())
    return [prose(*lines)] if sentence_of else []


def breakdown_of(opened: OpenReport, selection: Selection) -> BucketTable:
    """Where the time of the selected steps goes, or that of all counted steps if none are selected."""
    steps = selection.of("steps")
    if steps is None:
        return bucket_table(opened.report, selection.view)
    return of_steps(opened.report, selection.view, *steps)


OVERVIEW = Pane(
    "overview",
    "Overview",
    "How long a step takes, what makes it slow, and where its time goes. Enter on a finding shows its evidence, on a "
    "bucket what it is made of. The bars share one scale; their parts are in the order of the table. Δ is the "
    "difference from the baseline; ~ marks one within noise, ≠ one that pairs of traces do not show. In the lines of "
    "steps, C marks a step that compiles and ! an outlier; Enter selects a step, Shift with the arrow keys several.",
    overview,
    chapters=frozenset({"doubts", "headline", "findings", "wall", "host", "step_series"}),
    key="V",
)
