"""What did rules and analyses find? Findings as people read them, one card each: what is slow, what it costs, at which
line, why, and what to do. The answers of analyses, and their kernels side by side: which do variants share, and what
does each take in each of them?
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from tracekit.base.names import HEAD, short
from tracekit.base.units import duration, percent
from tracekit.findings import Diagnosis, Finding, Verdict, alike, as_clause, table
from tracekit.findings.tried import with_results
from tracekit.profile import Profile
from tracekit.report.blocks import Block, Card, Cards, Excerpt, Sentences, Table
from tracekit.report.model import Report
from tracekit.report.owner_costs import owners_by_variant, source_costs
from tracekit.report.section import Contents, Section, made_by, of_run, of_variant
from tracekit.trace.schema import column

INFERRED = "This is inferred: the recording does not prove it."
_OF_CHEAP_ONES = ["title", "cost_ns", "share"]
_ANALYSIS = "kernels"  # that is shown side by side
_CONTEXT_LINES = 2  # lines above and below the one that a finding names


def cards(diagnoses: Mapping[str, Diagnosis]) -> Cards:
    """The findings of these variants that are worth telling, those that are equal as one card; of a variant without
    any, the verdict."""
    groups = [{name: finding for name, (_, finding) in group.by_variant.items()} for group in alike(diagnoses)]
    verdicts: dict[str, tuple[Verdict, list[str]]] = {}
    for name, diagnosis in diagnoses.items():
        if not (diagnosis.findings or diagnosis.unlisted):
            verdicts.setdefault(diagnosis.verdict.sentence, (diagnosis.verdict, []))[1].append(name)
    of_verdicts = (
        Card(verdict.headline, tuple((name, "") for name in names), why=verdict.why, id=verdict.id)
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
    # The user's line and function, except where the headline names the line.
    location = finding.where
    place = location.at.removeprefix(" at ").removeprefix(" in ")
    is_named = location.file is None or location.at in finding.headline
    return Card(
        finding.headline,
        tuple((name, cost(finding)) for name, finding in findings.items()),
        "" if is_named else " ".join(filter(None, (place, location.function))),
        f"{of_variant['why']}{_marked(finding)}{then_clause}".strip(),
        f"{of_variant['do']}{finding.do}",
        finding.also,
        None if location.file is None or location.line is None else (location.file, location.line),
        finding.id,
    )


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
    return " ".join(filter(None, (f"{located}{cost_clause}{then_clause}.", _marked(finding), finding.advice)))


def _marked(finding: Finding) -> str:
    """Why the finding is one, and whether that is inferred."""
    return " ".join(filter(None, (finding.why, INFERRED if finding.confidence == "inferred" else "")))


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
            lines = costs.text.splitlines()
            numbers = range(max(line - _CONTEXT_LINES, 1), min(line + _CONTEXT_LINES, len(lines)) + 1)
            written = [number for number in numbers if lines[number - 1].strip()] or [line]  # no empty ones at the ends
            shown_lines = tuple(lines[written[0] - 1 : written[-1]])
            yield Excerpt(file, written[0], shown_lines, costs.alone, costs.fused_by_line(), detail=True)


@made_by("analyses")
def answers(report: Report) -> Iterator[Section]:
    """A section for each analysis and variant."""
    for profile, answer in report.answers:
        blocks: list[Block] = [Sentences((with_results(answer.sentence, report.attempts[profile.name]),))]
        if answer.table.num_rows:
            blocks.append(Table(answer.analysis, answer.table))
        yield Section(
            id=answer.analysis,
            title=answer.title,
            scope="variant",
            stage="body",
            rank=answer.rank,
            contents=Contents(tuple(blocks), worth=answer.worth, status=answer.status),
            variant=profile.name,
        )


@of_run("joined_kernels", "Kernels side by side", rank=21)
def joined_kernels(report: Report) -> Contents | None:
    """A row for each name of a kernel or copy, most time first; a column for each variant, and its difference."""
    times = {
        profile.name: dict(zip(answer.table["name"].to_pylist(), answer.table["step_ns"].to_pylist(), strict=True))
        for profile, answer in report.answers
        if answer.analysis == _ANALYSIS and len(answer.table)
    }
    if len(times) < 2:
        return None
    baselines = {name: base for name, base in report.baselines.items() if base in times}
    variants_of = Counter(name for kernel_ns in times.values() for name in kernel_ns)
    names = sorted(variants_of, key=lambda name: -max(kernel_ns.get(name) or 0.0 for kernel_ns in times.values()))
    shared = [*variants_of.values()].count(len(times))
    everywhere = f"{shared} of {len(names)} kernels and copies are in all variants"
    exclusive_texts = []
    for name, kernel_ns in times.items():
        alone_ns = [ns or 0.0 for kernel, ns in kernel_ns.items() if variants_of[kernel] == 1]
        if alone_ns:
            exclusive_texts.append(f"{len(alone_ns)} in {name} alone ({duration(sum(alone_ns))} a step)")
    sentence = f"{everywhere}; {', '.join(exclusive_texts)}." if exclusive_texts else f"{everywhere}."
    rows = _table(names, times, baselines)
    worth = max((answer.worth or 0.0 for _, answer in report.answers if answer.analysis == _ANALYSIS), default=0.0) / 2
    return Contents((Sentences((sentence,)), Table("joined_kernels", rows)), worth=worth)


def _table(names: list[str], times: Mapping[str, Mapping[str, float | None]], baselines: Mapping[str, str]) -> pa.Table:
    fields = [column("name", pa.string(), "name as written", role="kernel")]
    columns: list[Sequence[object]] = [names]
    titles = dict(zip(times, short([*times], HEAD), strict=True))
    for variant, kernel_ns in times.items():
        meaning = "time per counted step; null where it does not run"
        fields.append(column(f"{variant}_ns", pa.float64(), meaning, "ns", title=titles[variant]))
        columns.append([kernel_ns.get(name) for name in names])
    for variant in (variant for variant in times if baselines.get(variant) in times):
        base = times[baselines[variant]]
        meaning = f"difference from {baselines[variant]}"
        fields.append(column(f"Δ {variant}_ns", pa.float64(), meaning, "ns", title=f"Δ {titles[variant]}"))
        columns.append([(times[variant].get(name) or 0.0) - (base.get(name) or 0.0) for name in names])
    schema = pa.schema(fields)
    return pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, fields, strict=True)], schema=schema)
