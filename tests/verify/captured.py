"""A script under tracekit, run from the command line as its user would."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tracekit import run as runs
from tracekit.run import Run, Variant

from . import printed
from .compile_trace import Counts
from .printed import Printed
from .scripts import Script
from .workplace import PYTHON, lay_out

_SHORT = ("--steps", "3", "--warmup", "3", "--passes", "1")


@dataclass(frozen=True)
class Captured:
    """What one capture wrote, printed and left behind; `run` is None if it was refused."""

    code: int
    output: str
    run: Run | None
    passes: dict[str, dict[str, Printed]]  # variant → pass → what the script printed
    files: dict[str, str]  # new or changed, the capture's own left out


def capture(script: Script, parent: Path) -> Captured:
    """Capture a script in a fresh folder."""
    workplace = lay_out(parent)
    before = workplace.files()
    done = subprocess.run(
        [PYTHON, "-m", "tracekit", "capture", *_options(script), *script.command(), "--", *script.given(False)],
        cwd=workplace.folder,
        env=workplace.environment(script.environment),
        capture_output=True,
        text=True,
        check=False,
    )
    after = workplace.files()
    file = workplace.folder / "run.json"
    run = runs.read(file) if file.exists() else None
    return Captured(
        done.returncode,
        done.stderr,
        run,
        {each.name: _passes(file, each) for each in run.variants} if run else {},
        {name: content for name, content in after.items() if before.get(name) != content and not _is_ours(name)},
    )


def counts(variant: Variant) -> Counts:
    """The counts of a variant's ledger."""
    ledger = variant.ledger
    return Counts(ledger.graphs, ledger.recompiles, len(ledger.breaks))


def _options(script: Script) -> list[str]:
    return [
        "--backend",
        script.backend,
        "--variants",
        ",".join(script.variants),
        *_SHORT,
        "--device",
        "cpu",
        *script.capture.split(),
    ]


def _passes(file: Path, variant: Variant) -> dict[str, Printed]:
    """The logs beside its traces: one for each pass, except the one that rounds differently on purpose."""
    trace = variant.traces.steady or variant.traces.cold
    logs = sorted((file.parent / trace).parent.glob("*.log")) if trace else []
    plain = [log for log in logs if not log.stem.endswith("-rounded")]
    return {log.stem: printed.read(log.read_text(errors="replace")) for log in plain}


def _is_ours(name: str) -> bool:
    return re.match(r"run(-[\w-]+/.*|\.json)$", name) is not None
