"""The long proofs print their results as a table, whichever worker ran them."""

from typing import Any

import pytest

_HEAD = ("script", "variant", "steps", "plain", "captured", "pace", "clock", "losses", "files")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    every = [
        report for kind in terminalreporter.stats.values() for report in kind if hasattr(report, "user_properties")
    ]
    measured = {tuple(value) for report in every for name, value in report.user_properties if name == "ranks"}
    for what, figure in sorted(measured):
        terminalreporter.write_line(f"{what}: {figure}")
    _tell_tables(terminalreporter, [value for each in every for name, value in each.user_properties if name == "table"])
    rows = {tuple(value) for report in every for name, value in report.user_properties if name == "verified"}
    if not rows:
        return
    terminalreporter.section("scripts, plain and captured: graphs / recompiles / breaks")
    terminalreporter.write_line(f"| {' | '.join(_HEAD)} |\n|{'---|' * len(_HEAD)}")
    for row in sorted(rows):
        terminalreporter.write_line(f"| {' | '.join(row)} |")


def _tell_tables(reporter: pytest.TerminalReporter, rows: list[list[Any]]) -> None:
    """Each row is the title of its table, and its cells by their columns."""
    for title in dict.fromkeys(title for title, _ in rows):
        cells = [row for of, row in rows if of == title]
        reporter.section(title)
        reporter.write_line(f"| {' | '.join(cells[0])} |\n|{'---|' * len(cells[0])}")
        for row in cells:
            reporter.write_line(f"| {' | '.join(map(str, row.values()))} |")
