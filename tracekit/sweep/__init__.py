"""Sweeps: every cell of a grid captured, one after the other per device, into the folder of a study.

    sweep.toml ──read_sweep──▶ Sweep ──cells──▶ [Cell] ──sweep──▶ study/cells/NAME/{cell.json, run.json, …}

What follows from the cells is worked out by `tracekit.study`, which needs nothing of a capture.
"""

from tracekit.sweep.grid import cells
from tracekit.sweep.runner import SweepOptions, sweep
from tracekit.sweep.sweep_file import Grid, Sweep, read_sweep

__all__ = ["Grid", "Sweep", "SweepOptions", "cells", "read_sweep", "sweep"]
