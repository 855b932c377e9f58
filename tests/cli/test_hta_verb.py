"""Without HTA, what needs it is refused with a sentence before anything is read."""

import pytest

from tracekit.cli.program import main
from tracekit.errors.asking import NeedsPackageError
from tracekit.hta import needed
from tracekit.installed import install_command

SENTENCE = f"tracekit: HTA needs traceinsight, which is not installed: {install_command('hta')}\n"


@pytest.mark.parametrize("arguments", [["report", "--hta", "nowhere.json"], ["hta", "nowhere.json", "queue-length"]])
def test_what_is_missing_is_named(arguments, capsys):
    try:
        needed()
    except NeedsPackageError:
        pass
    else:
        pytest.skip("HTA is installed")
    assert main(arguments) == 1
    assert capsys.readouterr().err == SENTENCE
