"""A study: one run for each setting of a sweep, and what follows from all of them.

    sweep.toml ──read_sweep──▶ Sweep ──cells──▶ [Cell] ──tracekit.sweep──▶ study/cells/NAME/{cell.json, run.json, …}
    study/ ──read_study──▶ Study ──comparisons, recommendations──▶ sections of the report

Each cell holds one variant at one setting, as a run that `tracekit capture` could have written.
"""

from tracekit.study.cell import Cell
from tracekit.study.grid import cells
from tracekit.study.store import CellResult, Manifest, Record, Study, is_study, read_study
from tracekit.study.sweep_file import CaptureOptions, Grid, Sweep, read_sweep

__all__ = [
    "CaptureOptions",
    "Cell",
    "CellResult",
    "Grid",
    "Manifest",
    "Record",
    "Study",
    "Sweep",
    "cells",
    "is_study",
    "read_study",
    "read_sweep",
]
