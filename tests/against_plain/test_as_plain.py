"""What a busy machine does not change: a timed process gets as many pages anew as a plain one, and imports little."""

import math
import os
import sys
from pathlib import Path

import pytest

from tests.against_plain.comparing import SCRIPTS, plain
from tracekit.capture.job import Job
from tracekit.capture.live import live_pass
from tracekit.run import Requested

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has views, and pipes with names")
_FEW = 60  # faults a step that cost nothing to speak of
_ALLOWED = {"live", "recipe", "script_steps", "script_variant", "step_ends", "step_clock", "graph_log", "clocks"} | {
    *("replaced", "stopping", "entering", "beginning", "program")
}


def turns_of(script: Path, folder: Path) -> list:
    """The turns that a process of the script takes."""
    job = Job(
        stage="live", program=str(script), is_script=True, threads=1, requested=Requested(compile=False),
        folder=str(folder), caches=str(folder), round=1,
    )  # fmt: skip
    scratch = folder / "scratch"
    scratch.mkdir(parents=True)
    with live_pass(job, scratch, folder / "log", 120.0) as live:
        live.wait()
        for _ in range(3):
            live.take_turn(250_000_000)
        live.end(traced=False)
        result = live.result()
    assert result.outcome == "ok", (folder / "log").read_text()
    return result.turns


@pytest.mark.parametrize("name", ["adversarial", "tiny_operators"])
def test_a_timed_process_faults_as_a_plain_one(name, tmp_path):
    if os.environ.get("TRACEKIT_VIEW") == "off":
        pytest.skip("no views")
    script = SCRIPTS / f"{name}.py"
    turns = turns_of(script, tmp_path)
    ours = sum(turn.minor_faults for turn in turns) / sum(turn.steps for turn in turns)
    plainly = plain(script, False, tmp_path, threads=1).faults
    assert abs(math.log(max(ours, _FEW) / max(plainly, _FEW))) < math.log(2), (ours, plainly)


def test_until_its_last_turn_it_imports_only_what_steps_need(tmp_path):
    noted = Path("/dev/shm", f"tracekit-imports-{os.getpid()}")
    script = tmp_path / "mine" / "script.py"
    script.parent.mkdir()
    text = (SCRIPTS / "tiny_operators.py").read_text().replace("for _ in", "for step in")
    text = text.replace("import torch\n", f"import sys\nimport torch\nsys.path.append({str(SCRIPTS)!r})\n", 1)
    script.write_text(f"{text}    if step == 30: open({str(noted)!r}, 'w').write(' '.join(sys.modules))\n")
    try:
        turns_of(script, tmp_path / "pass")
        imported = noted.read_text().split()
    finally:
        noted.unlink(missing_ok=True)
    assert {name for name in imported if name.startswith(("msgspec", "tracekit.run", "tracekit.base"))} == set()
    child = "tracekit.capture.child."
    assert {name.removeprefix(child) for name in imported if name.startswith(child)} <= _ALLOWED
