"""What bounds the step, why is it slow, and what should be changed?"""

from collections.abc import Iterator

from tracekit.findings import Finding, table
from tracekit.profile import Profile
from tracekit.report.blocks import Block, Excerpt, Table
from tracekit.report.cards import cards
from tracekit.report.model import Report
from tracekit.report.owned import owned
from tracekit.report.registry import of_variant
from tracekit.report.section import Contents
from tracekit.report.source_costs import source_costs

_OF_CHEAP_ONES = ["title", "cost_ns", "share"]
_CONTEXT_LINES = 2  # lines above and below the one that a finding names


@of_variant("findings", "Findings", rank=10, stage="lead")
def findings(report: Report, profile: Profile) -> Contents:
    """The verdict and the findings of a variant, costliest first; the cheapest only where everything is requested."""
    diagnosis = report.diagnoses[profile.name]
    blocks: tuple[Block, ...] = (cards({profile.name: diagnosis}),)
    if cheap := [finding for finding in diagnosis.all_findings if finding not in diagnosis.findings]:
        blocks += (Table("findings", table(cheap).select(_OF_CHEAP_ONES), detail=True, exported=False),)
    blocks += tuple(_excerpts(report, profile, diagnosis.findings))
    worth = max((finding.share or 0.0 for finding in diagnosis.findings), default=0.0)
    return Contents(blocks, worth=worth, tables={"findings": lambda: table(diagnosis.all_findings)})


def _excerpts(report: Report, profile: Profile, findings: list[Finding]) -> Iterator[Excerpt]:
    """The lines that findings name, with those around them, where the recording has the file."""
    places = dict.fromkeys((finding.where.file, finding.where.line) for finding in findings)
    variant = (
        next((owners for owners in owned(report) if owners.name == profile.name), None)
        if any(file for file, _ in places)
        else None
    )
    for file, line in places:
        if variant is not None and line is not None and file in variant.means.sources:
            costs = source_costs([variant], file)
            first, lines = _surrounding_lines(costs.text.splitlines(), line)
            yield Excerpt(file, first, lines, costs.alone, costs.fused_by_line(), detail=True)


def _surrounding_lines(lines: list[str], line: int) -> tuple[int, tuple[str, ...]]:
    """The number of the first line to show, and the lines from there, without empty ones at either end."""
    numbers = [k for k in range(max(line - _CONTEXT_LINES, 1), line + _CONTEXT_LINES + 1) if k <= len(lines)]
    written = [k for k in numbers if lines[k - 1].strip()] or [line]
    return written[0], tuple(lines[written[0] - 1 : written[-1]])
