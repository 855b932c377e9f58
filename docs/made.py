"""Writes what these pages take from the code: SCHEMA.md and the pictures, both of the sample run, and the laws of a
trace. `make pages`.
"""

import re
from pathlib import Path

from tracekit.faces.parquet import describe
from tracekit.plots import plot
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.report.tables import every_table
from tracekit.trace.facts import SEVERITIES, all_laws

HERE = Path(__file__).parent
PICTURES = ("waterfall", "attribution")
_LAWS = re.compile(r"(?<=<!-- laws -->\n).*?(?=<!-- /laws -->)", re.DOTALL)


def with_laws(page: str) -> str:
    """The page with a row for each law, the gravest first, in the words of its docstring."""
    rows = ["| law | severity | spoils | when it is broken |", "|---|---|---|---|"]
    for law in sorted(all_laws(), key=lambda law: (SEVERITIES.index(law.severity), law.id)):
        meaning = " ".join((law.look.__doc__ or "").split())
        rows.append(f"| `{law.id}` | {law.severity} | {', '.join(law.touches) or '–'} | {meaning} |")
    return _LAWS.sub("\n".join([*rows, ""]), page)


if __name__ == "__main__":
    sample = report(open_subject([HERE.parent / "sample_traces" / "run.json"]))
    (HERE / "SCHEMA.md").write_text(describe(every_table(sample)), encoding="utf-8")
    traces = HERE / "traces.md"
    traces.write_text(with_laws(traces.read_text(encoding="utf-8")), encoding="utf-8")
    (HERE / "images").mkdir(exist_ok=True)
    for kind in PICTURES:
        (HERE / "images" / f"{kind}.svg").write_bytes(plot(sample, kind).content("svg"))
