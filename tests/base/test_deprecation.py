"""A name that will go away still works, and tells whoever uses it when it goes and what to do."""

import re
import warnings

import pytest

import tracekit
from tracekit.base import deprecation
from tracekit.base.deprecation import Deprecation, deprecated
from tracekit.cli import main
from tracekit.cli.explain import ExplainVerb
from tracekit.cli.report import ReportVerb

OLD = {
    "python: tracekit.load": Deprecation("1.9", "use tracekit.open"),
    "python: area": Deprecation("1.0", "multiply"),
    "option: report --rows": Deprecation("1.1", "use --full"),
    "verb: report": Deprecation("2.0", "use tracekit tell"),
}


@pytest.fixture(autouse=True)
def old(monkeypatch):
    monkeypatch.setattr(deprecation, "DEPRECATED", OLD)


@deprecated("python: area")
def area(width, height):
    """Of a rectangle."""
    return width * height


def test_a_name_goes_two_minor_versions_later():
    assert [each.ends for each in OLD.values()] == ["1.11", "1.2", "1.3", "2.2"]


def test_a_function_works_and_warns_whoever_calls_it():
    with pytest.warns(FutureWarning, match=re.escape("area goes away in tracekit 1.2: multiply.")) as told:
        assert area(3, height=4) == 12
    assert told[0].filename == __file__
    assert (area.__name__, area.__doc__) == ("area", "Of a rectangle.")


def test_a_name_of_the_package_warns_where_it_is_used():
    with pytest.warns(FutureWarning, match=r"tracekit\.load goes away in tracekit 1\.11: use tracekit\.open") as told:
        assert tracekit.load.__module__ == "tracekit.notebook"
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tracekit.Trace.__name__ == "Trace"


@pytest.mark.parametrize("given", [["--rows", "3"], ["--rows=3"]])
def test_the_command_line_says_it_in_a_sentence_and_goes_on(capsys, monkeypatch, given):
    asked = []
    monkeypatch.setattr(ReportVerb, "run", lambda options: asked.append(options) or 0)
    assert main(["report", "sample", *given]) == 0
    assert [options.rows for options in asked] == [3]
    assert capsys.readouterr().err.splitlines() == [
        "tracekit: report goes away in tracekit 2.2: use tracekit tell.",
        "tracekit: report --rows goes away in tracekit 1.3: use --full.",
    ]


def test_other_options_are_used_in_silence(capsys, monkeypatch):
    monkeypatch.setattr(ExplainVerb, "run", lambda options: 0)
    assert main(["explain", "sample", "--budget-tokens", "300"]) == 0
    assert capsys.readouterr().err == ""
