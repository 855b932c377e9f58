"""A script without tracekit: a Python process that is observed only through torch's own logs."""

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from . import compile_trace, printed
from .compile_trace import Counts
from .printed import Printed
from .scripts import Script
from .workplace import PYTHON, lay_out

_TIMEOUT = 900


@dataclass(frozen=True)
class Plain:
    """What one plain run printed, compiled and left behind."""

    code: int
    output: str
    printed: Printed
    counts: Counts
    files: dict[str, str]  # new or changed


def run(script: Script, parent: Path, compiled: bool) -> Plain:
    """Run a script in a fresh folder."""
    workplace = lay_out(parent)
    before = workplace.files()
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        logs = Path(folder)
        watching = {
            "TORCH_TRACE": str(logs / "trace"),
            "TORCH_LOGS": "recompiles,graph_breaks",
            "TORCHINDUCTOR_CACHE_DIR": str(logs / "inductor"),
        }
        done = subprocess.run(
            [PYTHON, *script.command(), *script.given(compiled)],
            cwd=workplace.folder,
            env=workplace.environment({**script.settings(compiled), **watching}),
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=False,
        )
        counts = compile_trace.structured(logs / "trace")
    assert (counts.recompiles, counts.breaks) == compile_trace.logged(done.stderr), "torch's two logs disagree"
    after = workplace.files()
    changed = {name: content for name, content in after.items() if before.get(name) != content}
    return Plain(done.returncode, done.stdout + done.stderr, printed.read(done.stdout), counts, changed)
