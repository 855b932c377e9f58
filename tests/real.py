"""Where the real traces are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TRACES = (ROOT / os.environ.get("TRACEKIT_TRACES", "../shared/traces")).resolve()


def trace_names() -> list[str]:
    """The names of the real traces, without the suffix; none if the folder is absent."""
    return sorted(path.name.removesuffix(".json.gz") for path in TRACES.glob("*.json.gz"))


def trace_path(name: str) -> Path:
    """A real trace by name; skips the test if the folder of the traces is absent."""
    if not TRACES.is_dir():
        pytest.skip(f"the real traces are not here ({TRACES}); set TRACEKIT_TRACES")
    return TRACES / f"{name}.json.gz"


def case_path(name: str) -> Path:
    """A small trace whose truth is known, from the folder `cases` beside that of the traces; skips if it is absent."""
    path = TRACES.parent / "cases" / name
    if not path.exists():
        pytest.skip(f"this case is not here: {path}")
    return path
