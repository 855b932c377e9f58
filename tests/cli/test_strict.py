"""`tracekit report --strict` fails where figures must not be believed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trace.broken_laws import CASES, loop, text_of
from tracekit.cli import main


@pytest.mark.parametrize(
    ("case", "code"), [("lost_work of a step", 3), ("two_clocks", 3), ("lost_work of one in many", 0), (None, 0)]
)
def test_the_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str | None, code: int) -> None:
    path = tmp_path / "trace.json"
    path.write_text(text_of(CASES[case].damaged if case else loop()))
    assert main(["report", str(path), "--strict"]) == code
    strict = capsys.readouterr().out
    assert main(["report", str(path)]) == 0
    assert capsys.readouterr().out == strict  # the report itself is the same
