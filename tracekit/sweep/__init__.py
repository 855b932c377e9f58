"""Sweeps: every cell of a grid captured, one after the other per device, into the folder of a study."""

from tracekit.sweep.runner import SweepOptions, sweep

__all__ = ["SweepOptions", "sweep"]
