"""Writes docs/SCHEMA.md: the tables that the sample run is exported as. `make schema`, or python -m docs.schema."""

from pathlib import Path

from tracekit.faces.parquet import describe
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.report.tables import every_table

HERE = Path(__file__).parent

if __name__ == "__main__":
    run = HERE.parent / "sample_traces" / "run.json"
    (HERE / "SCHEMA.md").write_text(describe(every_table(report(open_subject([run])))), encoding="utf-8")
