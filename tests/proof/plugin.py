"""A pytest plugin that writes how each test ended, its figures and its generated examples to a file.

python -m pytest -p tests.proof.plugin --proof=FILE
"""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

_PASSING = re.compile(r"(\d+) passing")  # as Hypothesis describes what a property test tried
_EXAMPLES = "generated examples"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--proof", type=Path, metavar="FILE", help="write how each test ended, with its figures, to FILE")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--proof")
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Collector(path))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Any:
    """Count the examples of a property test, once the wrapper of Hypothesis inside this one has described them."""
    try:
        return (yield)
    finally:
        if described := getattr(item, "hypothesis_statistics", ""):
            item.user_properties.append((_EXAMPLES, sum(map(int, _PASSING.findall(described)))))


class _Collector:
    """Keeps the reports of all tests, those of other workers included."""

    def __init__(self, path: Path) -> None:
        self._path, self._began = path, time.monotonic()
        self._tests: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test passes if its call does; it fails with its set-up or its end, too."""
        if report.when != "call" and report.passed:
            return
        figures = dict(report.user_properties)
        self._tests[report.nodeid] = {
            "outcome": report.outcome,
            "examples": figures.pop(_EXAMPLES, 0),
            "figures": figures,
            "why": _reason(report) if report.skipped else "",
        }

    def pytest_sessionfinish(self) -> None:
        recorded = {"seconds": time.monotonic() - self._began, "tests": self._tests}
        self._path.write_text(json.dumps(recorded, indent=1), encoding="utf-8")


def _reason(report: pytest.TestReport) -> str:
    """Why a test was skipped, or is expected to fail."""
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    return str(getattr(report, "wasxfail", ""))
