"""What does a run say of its variants beside their traces?"""

import pyarrow as pa

from tracekit.report.blocks import Table
from tracekit.report.model import Report
from tracekit.report.registry import of_run
from tracekit.report.section import Contents
from tracekit.run_facts import facts
from tracekit.trace.schema import column


@of_run("run_facts", "The run", rank=40, stage="lead")
def run_facts(report: Report) -> Contents | None:
    """A line per fact, a column per variant; each is set against its own baseline."""
    values: dict[str, dict[str, str]] = {}
    for base, group in report.groups:
        for fact in facts(group, base):
            values.setdefault(fact.label, {}).update(fact.values)
    if not values:
        return None
    names = [member.name for member in report.members]
    schema = pa.schema(
        [column("", pa.string(), "what was measured"), *(column(n, pa.string(), "", role="figure") for n in names)]
    )
    rows = [{"": label, **{name: of.get(name) for name in names}} for label, of in values.items()]
    return Contents((Table("run_facts", pa.Table.from_pylist(rows, schema=schema), exported=False),))
