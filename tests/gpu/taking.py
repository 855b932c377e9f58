"""A trace of a step that is defined here, recorded by the same code as in captures."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.gpu.claims import Claims
from tests.gpu.rows import Rows


@dataclass(frozen=True)
class Taken:
    """A trace, and the means that the report gives for it, in ms."""

    path: Path
    variant: dict[str, Any]
    wall: dict[str, float]
    host: dict[str, float]
    syncs: str

    @property
    def rows(self) -> Rows:
        """The rows as Kineto wrote them."""
        return Rows(self.path)


def take(claims: Claims, name: str, step: Callable[[], Any], steps: int = 6, warmup: int = 2) -> Taken:
    """Record a trace of a number of steps, and read its report."""
    return read(record(claims.folder / "injected" / name, name, claims.device, step, steps, warmup))


def record(folder: Path, label: str, device: str, step: Callable[[], Any], steps: int, warmup: int = 2) -> Path:
    """Record a trace of a number of steps."""
    from tracekit.capture.child import timing
    from tracekit.capture.child.graph_log import GraphLog
    from tracekit.capture.child.traces import PlannedWindow, _Taking
    from tracekit.capture.compiler import CompileRecorder
    from tracekit.capture.job import Job

    folder.mkdir(parents=True, exist_ok=True)
    job = Job(stage="profile", program="", label=label, device=device, folder=str(folder))
    taking = _Taking(job, CompileRecorder(), GraphLog())
    timing.run_steps(taking.trace(PlannedWindow("steady", steps, warmup, {})), step)
    return folder / "steady.json.gz"


def read(path: Path) -> Taken:
    """Read the report of a trace."""
    from tracekit.faces.shared.document import as_document
    from tracekit.profile import open_subject
    from tracekit.report import report

    document = as_document(report(open_subject([path])))
    variant = document["variants"][0]
    mean = variant["mean"]
    wall, host = ({key: ns / 1e6 for key, ns in (mean[view] or {}).items()} for view in ("wall", "host"))
    syncs = next(each["sentence"] for each in document["answers"] if each["analysis"] == "syncs")
    return Taken(path, variant, defaultdict(float, wall), defaultdict(float, host), syncs)
