"""What cannot be asked about a trace alone: the averages in the process itself, and the compiler's log.

Both are of one recording, which is made for the purpose (`training.py`).
"""

import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.compare import reference
from tests.compare.judged import judged
from tests.compare.measured import ROOT, AbsentError, breakdowns, fastest, interpreter, version
from tests.compare.peer import Peer
from tests.compare.peers import ours, tlparse

# The same first table, with the compiler's log, which is in a folder of its own.
_WITH_LOG = Peer(
    "ours",
    "tracekit",
    "tracekit-torch",
    command=lambda python, files, _: [
        *(str(python), "-m", "tracekit", "report", str(files[0]), "--compile-log", str(files[1].parent)),
    ],
)


def asked(environments: Path, turns: int) -> dict[str, Any]:
    """Record, and ask `key_averages()`, tlparse and tracekit; times are in ns."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TORCH_TRACE": str(folder / "log")}
        environment["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"  # or a second run would compile nothing
        subprocess.run([sys.executable, "-P", "-m", "tests.compare.training", folder], check=True, env=environment)
        trace, log = folder / "trace.json.gz", next((folder / "log").glob("*.log"))
        recording = reference.read(trace).recording
        answers = breakdowns(ours.PEER, Path(sys.executable), [trace])
        if isinstance(answers, str):
            raise RuntimeError(answers)
        found: dict[str, Any] = {
            "torch": importlib.metadata.version("torch"),
            "recording_ns": recording[1] - recording[0],
            "averages": json.loads((folder / "averages.json").read_text(encoding="utf-8")),
            "ours": judged([trace], answers)[0],
        }
        tools = [(_WITH_LOG, Path(sys.executable), [trace, log])]
        try:
            python = interpreter(tlparse.PEER, environments)
            tools.append((tlparse.PEER, python, [log]))
            found["tlparse"] = version(tlparse.PEER, python)
        except AbsentError as error:
            found["absent"] = str(error)
        found["first_table"] = fastest(tools, turns)
        return found
