"""The page's example for torch.profiler runs as it is; tests/verify runs those for the frameworks, which it needs."""

import re
from pathlib import Path

import warm

from tracekit import run as runs

PAGE = Path(__file__).parents[2] / "docs" / "in-the-loop.md"


def test_the_example_leaves_a_run_and_its_report(tmp_path):
    code = re.search(r"^## With torch\.profiler\n+```python\n(.*?)```", PAGE.read_text(), re.M | re.S)[1]
    done = warm.run(["-c", code], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    traces = tmp_path / "traces"
    assert [variant.name for variant in runs.read(traces / "run.json").variants] == ["cycle 1", "cycle 2"]
    assert "cycle 2" in (traces / "report.html").read_text()
    assert len([*traces.glob("*.pt.trace.json.gz")]) == 2  # as wandb.save finds them
