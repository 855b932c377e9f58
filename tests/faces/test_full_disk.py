"""A file that cannot be written is reported in one sentence, and the earlier file stays, for bytes and for streams."""

import subprocess
import sys

import pytest
from small import training

LIMIT = "ulimit -f 1"  # a file ends after one KiB, as on a full disk


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ("report {trace} --format xlsx -o {out}", "report.xlsx"),
        ("report {trace} --format perfetto -o {out}", "x.json.gz"),
    ],
)
def test_the_old_file_stays(tmp_path, arguments, name):
    trace, out = training(tmp_path / "t.json", steps=40), tmp_path / "out" / name
    out.parent.mkdir()
    out.write_text("what was there")
    command = arguments.format(trace=trace, out=out)
    ran = subprocess.run(
        ["bash", "-c", f"{LIMIT}; MPLCONFIGDIR={tmp_path} {sys.executable} -m tracekit {command} 2>&1 | cat"],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin", "TRACEKIT_NO_CACHE": "1", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    (sentence,) = [line for line in ran.stdout.splitlines() if line.startswith("tracekit:")]
    assert sentence == f"tracekit: {out} cannot be written (File too large). Choose another path with -o."
    assert "Traceback" not in ran.stdout
    assert out.read_text() == "what was there"
    assert [path.name for path in out.parent.iterdir()] == [name]
