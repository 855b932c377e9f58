"""Real training scripts: a capture of each agrees with a plain run."""

import importlib.util
import os
from dataclasses import replace

import pytest

from . import captured, scripts
from .comparison import closest, compare, is_busy
from .scripts import Script

_VERIFY = pytest.mark.skipif(not os.environ.get("TRACEKIT_VERIFY"), reason="TRACEKIT_VERIFY is not set: make verify")
_ATTEMPTS = 3  # at the pace, if others use the machine, too
_ALL = scripts.read()


def _each(chosen: list[Script], *marks: pytest.MarkDecorator) -> list[object]:
    return [pytest.param(each, id=each.name, marks=[*marks, *_marks(each)]) for each in chosen]


def _marks(script: Script) -> list[pytest.MarkDecorator]:
    absent = [name for name in script.needs if importlib.util.find_spec(name) is None]
    marks = [pytest.mark.skipif(bool(absent), reason=f"needs {', '.join(absent)}")]
    return [*marks, pytest.mark.xfail(strict=True, reason=script.xfail)] if script.xfail else marks


@pytest.mark.parametrize("script", _each([each for each in _ALL.values() if not each.refused], _VERIFY))
def test_a_capture_says_what_a_plain_run_does(script, tmp_path, record_property):
    wrong = _compared(script, tmp_path, record_property)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("script", _each([each for each in _ALL.values() if each.refused], _VERIFY))
def test_a_script_with_nothing_to_measure_is_told_what_to_do(script, tmp_path):
    capture = captured.capture(script, tmp_path)
    assert capture.code == 1
    assert script.refused in capture.output
    assert "Traceback" not in capture.output


@pytest.mark.parametrize("script", _each([each for each in _ALL.values() if each.ci]))
def test_the_fastest_of_them(script, tmp_path, record_property):
    wrong = _compared(replace(script, variants=("compiled",), compares_pace=False), tmp_path, record_property)
    assert not wrong, "\n".join(wrong)


def test_every_script_has_a_row():
    files = {path.stem for path in scripts.HERE.glob("*.py")} - {"steplog"}
    assert files == {each.name for each in _ALL.values() if not each.module}
    assert all(
        (scripts.HERE / each.module.replace(".", "/")).with_suffix(".py").is_file()
        for each in _ALL.values()
        if each.module
    )


def _compared(script, folder, record_property):
    """Every difference, as a sentence; the results become rows of the table."""
    rows, wrong = compare(script, folder)
    for _ in range(_ATTEMPTS - 1):
        if not script.compares_pace or wrong or all(row.keeps_pace for row in rows) or is_busy():
            break
        again, wrong = compare(script, folder)
        rows = [*map(closest, rows, again)]
    for row in rows:
        record_property("verified", row.cells)
    return [*wrong, *(row.out_of_pace for row in rows if script.compares_pace and not (row.keeps_pace or row.busy))]
