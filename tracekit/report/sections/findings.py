"""What bounds the step, why is it slow, and what should be changed? Findings as people read them, one card each: what
is slow, what it costs, at which line, why, and what to do.
"""

from collections.abc import Iterator, Mapping

from tracekit.base.units import duration, percent
from tracekit.findings import Diagnosis, Finding, Verdict, alike, as_clause, table
from tracekit.profile import Profile
from tracekit.report.blocks import Block, Card, Cards, Excerpt, Table
from tracekit.report.model import Report
from tracekit.report.owner_costs import owners_by_variant, source_costs
from tracekit.report.section import Contents, of_variant

_OF_CHEAP_ONES = ["title", "cost_ns", "share"]
_CONTEXT_LINES = 2  # lines above and below the one that a finding names


def cards(diagnoses: Mapping[str, Diagnosis]) -> Cards:
    """The findings of these variants that are worth telling, those that are equal as one card; of a variant without
    any, the verdict."""
    groups = [{name: finding for name, (_, finding) in group.by_variant.items()} for group in alike(diagnoses)]
    verdicts: dict[str, tuple[Verdict, list[str]]] = {}
    for name, diagnosis in diagnoses.items():
        if not diagnosis.findings:
            verdicts.setdefault(diagnosis.verdict.sentence, (diagnosis.verdict, []))[1].append(name)
    of_verdicts = (
        Card(verdict.headline, tuple((name, "") for name in names), why=verdict.why)
        for verdict, names in verdicts.values()
    )
    return Cards(
        (*(sentence(next(iter(findings.values()))) for findings in groups), *verdicts),
        cards=(*map(_card, groups), *of_verdicts),
        several=len(diagnoses) > 1,
    )


def _card(findings: dict[str, Finding]) -> Card:
    name, finding = next(iter(findings.items()))
    of_variant = {  # whose the figures in these sentences are
        part: f"{name}: " if len({getattr(finding, part) for finding in findings.values()}) > 1 else ""
        for part in ("why", "do")
    }
    then_clause = f" {finding.then[:1].upper()}{finding.then[1:]}." if finding.then else ""
    return Card(
        finding.headline,
        tuple((name, cost(finding)) for name, finding in findings.items()),
        _place(finding),
        f"{of_variant['why']}{finding.why}{then_clause}".strip(),
        f"{of_variant['do']}{finding.do}",
        finding.also,
        None if finding.where.file is None or finding.where.line is None else (finding.where.file, finding.where.line),
    )


def _place(finding: Finding) -> str:
    """The user's line and function; empty where the headline names the line."""
    location = finding.where
    if location.file is None or location.at in finding.headline:
        return ""
    place = location.at.removeprefix(" at ").removeprefix(" in ")
    return f"{place} {location.function}" if location.function is not None else place


def cost(finding: Finding) -> str:
    """What it costs a step and how much of it that is, as `up to 1.50 ms of 2.58 ms a step (58.3 %)`; `unprofiled` says
    that the sentences beside it tell of longer, recorded steps. Of the whole recording, where the means leave out steps
    that it is about; a total, where it happens once. Empty if it has no cost."""
    if finding.cost_ns is None:
        return ""
    bound = {"upper": "up to ", "lower": "at least ", "exact": ""}[finding.bound]
    if finding.once and finding.total:
        return finding.total
    if not finding.share:
        return f"{bound}{duration(finding.cost_ns)} a step"
    if over_steps := finding.over_steps:
        recorded = duration(finding.cost_ns / finding.share * over_steps)
        return f"{bound}{duration(finding.cost_ns * over_steps)} of the {recorded} recorded ({percent(finding.share)})"
    step = duration(finding.cost_ns / finding.share)
    span = "unprofiled" if finding.unprofiled else "a step"
    return f"{bound}{duration(finding.cost_ns)} of {step} {span} ({percent(finding.share)})"


def sentence(finding: Finding) -> str:
    """A finding as one paragraph: headline, cost, evidence, what to change."""
    location, headline = finding.where.at, finding.headline.rstrip(".")
    located = headline if location in headline else f"{location[1].upper()}{location[2:]}, {as_clause(headline)}"
    cost_clause = f" – cost: {cost(finding)}" if finding.cost_ns is not None else ""
    then_clause = f"; {finding.then}" if finding.then else ""
    why = f"{finding.why} " if finding.why else ""
    return f"{located}{cost_clause}{then_clause}. {why}{finding.advice}".strip()


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
        next((owners for owners in owners_by_variant(report) if owners.name == profile.name), None)
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
