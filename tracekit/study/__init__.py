"""A study: one run for each setting of a sweep, and what follows from all of them.

    sweep.toml ──tracekit.sweep──▶ [Cell] ──capture──▶ study/cells/NAME/{cell.json, run.json, …}
    study/ ──read_study──▶ Study ──settings, recommendations──▶ sections of the report

Each cell holds one variant at one setting, as a run that `tracekit capture` could have written.
"""

from tracekit.study.store import Cell, CellResult, Manifest, Record, Study, Thoroughness, is_study, read_study

__all__ = [
    "Cell",
    "CellResult",
    "Manifest",
    "Record",
    "Study",
    "Thoroughness",
    "is_study",
    "read_study",
]
