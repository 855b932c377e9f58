"""A study as sheets: its cells and their outcomes, and the tables of its report."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from msgspec import Struct

from tracekit.report import report
from tracekit.report.blocks import Sentences, Table
from tracekit.report.section import Section
from tracekit.report.sections.study_cells import SETTING, VARIANT
from tracekit.sanitize import sanitize
from tracekit.study import CellResult, Study, read_study
from tracekit.study.recommendations import recommend
from tracekit.study.settings import Setting, settings
from tracekit.study.store import RUN
from tracekit.trace.schema import column
from tracekit.tui.model.sheet import Sheet

_REAL = pa.float64()
CELLS = pa.schema(
    [
        SETTING,
        VARIANT,
        column("seed", pa.int64(), "seed of every random number generator", role="identity"),
        column("outcome", pa.string(), "ok, oom, timeout, crash, error, skipped, interrupted, or planned"),
        column("step_ns", _REAL, "a step, unprofiled", "ns"),
        column(
            "speed_up", _REAL, "step time of the setting's first variant divided by its own, with the same seed", "×"
        ),
        column("compile_ns", _REAL, "time inside compilations", "ns"),
        column("above_start_bytes", pa.int64(), "peak memory beyond that before the first step", "B"),
        column("took_ns", _REAL, "time from its start to its end", "ns", role="detail"),
        column("why", pa.string(), "why it failed", role="detail"),
        column("recommendation", pa.string(), "recommendation for its setting", role="detail"),
        column("folder", pa.string(), "folder of the cell", role="detail"),
    ]
)


class Page(Struct, frozen=True):
    """One sheet and its title."""

    name: str
    title: str
    sheet: Sheet


class StudyPages(Struct, frozen=True):
    """The pages, the one of the cells first; `runs` has the run of each row of that page, or None if it has none."""

    study: Study
    pages: list[Page]
    runs: list[Path | None]


def study_pages(folder: Path) -> StudyPages:
    """Read a study. Raises BadStudyError, and EmptyStudyError where no cell was planned."""
    from tracekit.profile import open_subject

    study = read_study(folder)
    results = [result for setting in settings(study) for group in setting.groups for result in group.results]
    rows = [row for setting in settings(study) for row in _rows(setting)]
    runs = [_run(result) for result in results]
    cells = Page("cells", "Cells", Sheet("cells", pa.Table.from_pylist(rows, CELLS), enter=runs.__getitem__))
    sections = report(open_subject([folder])).sections
    pages = [page for section in sections if section.id != "variants" for page in _pages(section)]
    return StudyPages(study, [cells, *pages], runs)


def _rows(setting: Setting) -> Iterator[dict[str, Any]]:
    baseline = setting.groups[0]
    advice = recommend(setting).sentence
    for group in setting.groups:
        for result in group.results:
            measured, against = result.measured, baseline.measured.get(result.cell.seed)
            speed_up = None
            if measured is not None and against is not None and group is not baseline:
                speed_up = against.step_ns / measured.step_ns
            yield {
                "setting": setting.name,
                "variant": group.variant,
                "seed": result.cell.seed,
                "outcome": result.outcome,
                "step_ns": measured.step_ns if measured is not None else None,
                "speed_up": speed_up,
                "compile_ns": measured.compile_ns if measured is not None else None,
                "above_start_bytes": result.variant.memory.above_start_bytes if result.variant is not None else None,
                "took_ns": result.record.seconds * 1e9 if result.record is not None else None,
                "why": result.record.error if result.record is not None else "it has not been run yet",
                "recommendation": advice,
                "folder": str(result.folder),
            }


def _run(result: CellResult) -> Path | None:
    return result.folder / RUN if result.run is not None else None


def _pages(section: Section) -> Iterator[Page]:
    """The tables of a section; if it has none, its sentences as a table."""
    tables = [block for block in section.blocks if isinstance(block, Table) and len(block.rows)]
    for table in tables:
        title = section.title if table is tables[0] else table.name.replace("_", " ")
        yield Page(table.name, sanitize(title), Sheet(table.name, table.rows))
    sentences = [line for block in section.blocks if isinstance(block, Sentences) for line in block.lines]
    if sentences and not tables:
        rows = pa.table({"sentence": sentences}, schema=pa.schema([column("sentence", pa.string(), section.title)]))
        yield Page(section.id, sanitize(section.title), Sheet(section.id, rows))
