"""Writes what these pages take from the code: SCHEMA.md and the pictures, both of the sample run. `make pages`."""

from pathlib import Path

from tracekit.faces.parquet import describe
from tracekit.plots import plot
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.report.tables import every_table

HERE = Path(__file__).parent
PICTURES = ("waterfall", "attribution")

if __name__ == "__main__":
    sample = report(open_subject([HERE.parent / "sample_traces" / "run.json"]))
    (HERE / "SCHEMA.md").write_text(describe(every_table(sample)), encoding="utf-8")
    (HERE / "images").mkdir(exist_ok=True)
    for kind in PICTURES:
        (HERE / "images" / f"{kind}.svg").write_bytes(plot(sample, kind).content("svg"))
