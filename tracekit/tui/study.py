"""The terminal UI of a study: its cells, their outcomes and the tables of its report as sheets; Enter opens the run of
a cell, and quitting that leads back.
"""

from pathlib import Path

import pyarrow as pa
from msgspec import Struct

from tracekit.report import report
from tracekit.report.sections.study_cells import SETTING, VARIANT
from tracekit.study import Study, read_study
from tracekit.study.recommendations import recommend
from tracekit.study.settings import settings
from tracekit.study.store import RUN
from tracekit.trace.schema import column
from tracekit.tui.model.sheet import Sheet
from tracekit.tui.paged import PagedApp, sheets

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


class StudyPages(Struct, frozen=True):
    """The pages, the one of the cells first; `runs` has the run of each row of that page, or None if it has none."""

    study: Study
    pages: list[Sheet]
    runs: list[Path | None]


def study_pages(folder: Path) -> StudyPages:
    """Read a study. Raises BadStudyError, and EmptyStudyError where no cell was planned."""
    from tracekit.profile import open_subject

    study = read_study(folder)
    rows, runs = list[dict[str, object]](), list[Path | None]()
    for setting in settings(study):
        baseline, advice = setting.groups[0], recommend(setting).sentence
        for group in setting.groups:
            for result in group.results:
                measured, against = result.measured, baseline.measured.get(result.cell.seed)
                memory = result.variant.memory if result.variant is not None else None
                speed_up = None
                if measured is not None and against is not None and group is not baseline:
                    speed_up = against.step_ns / measured.step_ns
                row = {
                    "setting": setting.name,
                    "variant": group.variant,
                    "seed": result.cell.seed,
                    "outcome": result.outcome,
                    "step_ns": measured.step_ns if measured is not None else None,
                    "speed_up": speed_up,
                    "compile_ns": measured.compile_ns if measured is not None else None,
                    "above_start_bytes": memory.above_start_bytes if memory is not None else None,
                    "took_ns": result.record.seconds * 1e9 if result.record is not None else None,
                    "why": result.record.error if result.record is not None else "it has not been run yet",
                    "recommendation": advice,
                    "folder": str(result.folder),
                }
                rows.append(row)
                runs.append(result.folder / RUN if result.run is not None else None)
    cells = Sheet("cells", pa.Table.from_pylist(rows, CELLS), "Cells", runs.__getitem__)
    sections = report(open_subject([folder])).sections
    pages = [page for section in sections if section.id != "variants" for page in sheets(section)]
    return StudyPages(study, [cells, *pages], runs)


def browse(folder: Path) -> int:
    """Show a study, and the runs of the cells that the user opens, until the user quits. Raises TracekitError."""
    from tracekit.tui.app import build_app

    pages, row = study_pages(folder), 0
    while True:
        app = StudyApp(pages, row)
        app.run()
        if app.chosen is None:
            return app.return_code or 0
        row, run = app.chosen, pages.runs[app.chosen]
        assert run is not None
        opened = build_app([run])
        opened.run()
        if opened.return_code and opened.failure is None:  # a signal or a bug in tracekit ended it
            return opened.return_code


class StudyApp(PagedApp):
    """The pages of a study; `chosen` is the row of the cell whose run the user wants to open."""

    def __init__(self, pages: StudyPages, row: int = 0) -> None:
        super().__init__(f"study {pages.study.folder.resolve().name}", pages.pages, row)
        self._study = pages.study

    @property
    def state(self) -> str:
        """How many cells succeeded."""
        succeeded = sum(result.outcome == "ok" for result in self._study.results)
        return f"{succeeded} of {len(self._study.results)} cells succeeded"
