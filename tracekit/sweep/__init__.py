"""Sweeps: capture every cell of a grid into the folder of a study, on each device one cell at a time.

    sweep.toml ──read_sweep──▶ Sweep ──cells──▶ [Cell] ──sweep──▶ study/cells/NAME/{cell.json, run.json, …}

`tracekit.study` works out what follows from the cells; it needs nothing from the capture package.
"""

from tracekit.sweep.runner import SweepOptions, sweep
from tracekit.sweep.sweep_file import Grid, Sweep, cells, read_sweep

__all__ = ["Grid", "Sweep", "SweepOptions", "cells", "read_sweep", "sweep"]
