"""The findings of all variants as cards: what each costs, what is slow, why, and what to change."""

import pyarrow as pa

from tracekit.base.names import sanitize
from tracekit.base.units import duration, percent
from tracekit.findings import Finding, alike
from tracekit.trace.schema import LABEL, column
from tracekit.tui.model.opened import OpenReport
from tracekit.tui.model.selection import Selection
from tracekit.tui.model.sheet import Card, Sheet

_FINDINGS = pa.schema(
    [
        column("cost_ns", pa.float64(), "cost per step: the most that a fix would save", "ns", title="costs"),
        column("share", pa.float64(), "share of the step", "share"),
        column("variant", LABEL, "variant that the step belongs to", role="name"),
        column("finding", pa.string(), "what makes the step slow"),
        column("why", pa.string(), "the evidence", role="detail"),
        column("advice", pa.string(), "what to change", role="detail"),
        column("where", pa.string(), "what is to blame", role="detail"),
        column("file", pa.string(), "your file", role="source"),
        column("line", pa.int64(), "line number in the file", role="source"),
    ]
)


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
        }
        for group in groups
    ]

    def enter(row: int) -> Selection:
        name, (index, finding) = next(iter(groups[row].by_variant.items()))
        return selection.narrowed("finding", (name, index), finding.id.replace("_", " "), "finding")

    cards = [_card({name: finding for name, (_, finding) in group.by_variant.items()}, several) for group in groups]
    return Sheet("findings", pa.Table.from_pylist(rows, schema=_FINDINGS), enter=enter, cards=(*cards,))


def _card(by_variant: dict[str, Finding], several: bool) -> Card:
    first = next(iter(by_variant.values()))
    figures = tuple(
        (
            finding.total or (duration(finding.cost_ns) if finding.cost_ns is not None else ""),
            percent(finding.share) if finding.share is not None else "",
            *([sanitize(name)] if several else []),
        )
        for name, finding in by_variant.items()
    )
    variant_prefix = (
        f"{next(iter(by_variant))}: "
        if len(by_variant) > 1 and len({finding.why for finding in by_variant.values()}) > 1
        else ""
    )
    parts = (f"→ {first.advice}" if first.advice else "", f"{variant_prefix}{first.why}" if first.why else "")
    return Card(figures, sanitize(first.headline), tuple(sanitize(part, 2000) for part in parts if part))
