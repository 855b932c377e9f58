"""Another Python is checked before anything is captured, and what it lacks is reported in one sentence."""

import sys

import pytest

from tracekit.capture import preparation
from tracekit.errors.capturing import NoInterpreterError


def written(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_the_python_of_the_tests_can_run_a_pass():
    preparation.check(sys.executable)


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (f'exec "{sys.executable}" -I -S "$@"', "it has no torch and msgspec"),
        ('echo "Python 3.9"', "it is Python 3.9, but 3.11 or later is needed"),
        ("exit 3", "it ended with exit code 3"),
    ],
)
def test_a_python_that_lacks_something(tmp_path, script, why):
    path = written(tmp_path / "python", script)
    with pytest.raises(NoInterpreterError) as caught:
        preparation.check(path)
    assert str(caught.value).startswith(f"{path} cannot run a capture ({why}).")


def test_no_python_at_all(tmp_path):
    with pytest.raises(NoInterpreterError, match="No such file or directory"):
        preparation.check(str(tmp_path / "python"))
    (tmp_path / "text").write_text("")
    with pytest.raises(NoInterpreterError, match="Permission denied"):
        preparation.check(str(tmp_path / "text"))
