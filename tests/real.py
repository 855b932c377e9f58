"""Where the real traces are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

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


def recorded_by(path: Path) -> dict[str, Any]:
    """What recorded a trace, as far as the file says, and how much: GPU, CUDA or HIP runtime, events and steps."""
    from tracekit.trace import Trace

    trace = Trace.load(path)
    cuda, hip = (trace.meta.get(f"{api}_runtime_version") for api in ("cuda", "hip"))
    runtime = f"CUDA {cuda // 1000}.{cuda % 1000 // 10}" if cuda else ""
    return {
        "gpu": str(trace.gpus[0].get("name", "")) if trace.gpus else "",
        "runtime": f"HIP {hip // 10**7}.{hip // 10**5 % 100}" if hip else runtime,
        "events": len(trace.ts_ns),
        "steps": len(trace.steps),
    }
