"""What bounds the step, why is it slow, and what should be changed?"""

from tracekit.findings import Finding, table
from tracekit.profile import Profile
from tracekit.report.blocks import Block, Sentences, Table
from tracekit.report.model import Report
from tracekit.report.registry import of_variant
from tracekit.report.section import Contents
from tracekit.units import duration, percent

_OF_CHEAP_ONES = ["title", "cost_ns", "share"]


@of_variant("findings", "Findings", rank=10, stage="lead")
def findings(report: Report, profile: Profile) -> Contents:
    """The verdict and the findings of a variant, costliest first; the cheapest only where everything is asked for."""
    diagnosis = report.diagnoses[profile.name]
    sentences = tuple(map(_sentence, diagnosis.findings)) or (diagnosis.verdict.sentence,)
    blocks: tuple[Block, ...] = (Sentences(sentences),)
    if cheap := [each for each in diagnosis.found if each not in diagnosis.findings]:
        blocks += (Table("findings", table(cheap).select(_OF_CHEAP_ONES), detail=True, exported=False),)
    worth = max((finding.share or 0.0 for finding in diagnosis.findings), default=0.0)
    return Contents(blocks, worth=worth, tables={"findings": lambda: table(diagnosis.found)})


def _sentence(finding: Finding) -> str:
    title = finding.title.rstrip(".")
    cost = duration(finding.cost_ns) if finding.cost_ns is not None else ""
    share = f" ({percent(finding.share)})" if cost and finding.share is not None else ""
    said = "" if cost in title else f" – {cost} a step"
    return f"{title}{said}{share}{_place(finding)}. {finding.advice}".strip()


def _place(finding: Finding) -> str:
    """The user's line, where the title does not name it; of a long path the end."""
    file, line = finding.where.file, finding.where.line
    if file is None or f"{file}:{line}" in finding.title:
        return ""
    *folders, name = file.split("/")
    shown = f"…/{folders[-1]}/{name}" if len(folders) > 1 else file
    return f", at {shown}:{line}" if line is not None else f", in {shown}"
