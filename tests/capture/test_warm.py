"""A forked process behaves like a new interpreter, except for what it has already imported."""

import os
import subprocess
import sys

import pytest
import warm

pytestmark = pytest.mark.skipif(bool(os.environ.get("TRACEKIT_VERIFY")), reason="nothing is forked then")
SEES = """
import os, sys, tempfile, threading
print(sys.path, sys.argv, __name__, os.getcwd(), tempfile.gettempdir(), threading.active_count(), hash("text"))
print("told", file=sys.stderr)
sys.exit("the end")
"""


@pytest.mark.parametrize("form", ["-c", "-m", "file"])
def test_it_sees_what_a_new_interpreter_sees_and_ends_as_it_ends(tmp_path, monkeypatch, form):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (tmp_path / "sees.py").write_text(SEES)
    program = {"-c": ["-c", SEES], "-m": ["-m", "sees"], "file": ["sees.py"]}[form]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    new = subprocess.run(
        [sys.executable, *program, "-x"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    forked = warm.run([*program, "-x"], cwd=tmp_path)
    said = [(each.returncode, each.stdout.replace("'-m'", ""), each.stderr) for each in (new, forked)]
    assert said[0] == said[1]
    assert said[0][0] == 1


def test_it_has_torch_and_dies_of_signals():
    done = warm.run(["-c", "import sys, os, signal; print('torch' in sys.modules, flush=True); os.abort()"])
    assert (done.returncode, done.stdout) == (-6, "True\n")


@pytest.mark.parametrize("name", ["PYTHONPATH", "OMP_NUM_THREADS", "TORCHINDUCTOR_MAX_AUTOTUNE"])
def test_what_is_read_at_the_start_asks_for_a_new_interpreter(name):
    assert warm.is_same({**os.environ, **warm.FIXED, "OTHER": "1", "TORCHINDUCTOR_CACHE_DIR": "/elsewhere"})
    assert not warm.is_same({**os.environ, **warm.FIXED, name: "7"})
