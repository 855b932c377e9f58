"""Why is a step slow, and what is to be changed?"""

from tracekit.findings import Finding, table
from tracekit.profile import Profile
from tracekit.report.blocks import Sentences
from tracekit.report.model import Report
from tracekit.report.registry import of_variant
from tracekit.report.section import Contents
from tracekit.units import duration, percent


@of_variant("findings", "Findings", rank=10, stage="lead")
def findings(report: Report, profile: Profile) -> Contents | None:
    """The findings of a variant, dearest first."""
    causes = report.findings[profile.name]
    if not causes:
        return None
    worth = max(finding.share or 0.0 for finding in causes)
    return Contents((Sentences(tuple(map(_sentence, causes))),), worth=worth, tables={"findings": table(causes)})


def _sentence(finding: Finding) -> str:
    title = finding.title.rstrip(".")
    cost = f" – {duration(finding.cost_ns)} a step" if finding.cost_ns is not None else ""
    share = f" ({percent(finding.share)})" if cost and finding.share is not None else ""
    return f"{title}{cost}{share}. {finding.advice}".strip()
