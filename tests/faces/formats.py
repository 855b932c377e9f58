"""Every format, written as the command line writes it."""

from __future__ import annotations

from pathlib import Path

from tracekit import faces
from tracekit.faces import Options
from tracekit.faces.shared.output_files import Overwriting, write
from tracekit.report import Report

FOLDERS = ("csv", "parquet")
READ = ("text", "markdown", "html", "latex")  # by people
TEXTS = (*READ, "json")  # one text that shows every block


def written(report: Report, folder: Path, name: str) -> Path:
    """The report in one format, with every row: a file, or a folder of files."""
    face = faces.find(name)
    path = folder / f"report.{name}" if face.draw is not None else folder / name
    write(face, report, path, Options(rows=10_000, full=True), Overwriting())
    return path
