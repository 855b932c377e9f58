"""The long proofs print their results as a table, whichever worker ran them."""

import pytest

_HEAD = ("script", "variant", "steps", "plain", "captured", "pace", "clock", "losses", "files")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    every = [
        report for kind in terminalreporter.stats.values() for report in kind if hasattr(report, "user_properties")
    ]
    measured = {tuple(value) for report in every for name, value in report.user_properties if name == "ranks"}
    for what, figure in sorted(measured):
        terminalreporter.write_line(f"{what}: {figure}")
    rows = {tuple(value) for report in every for name, value in report.user_properties if name == "verified"}
    if not rows:
        return
    terminalreporter.section("scripts, plain and captured: graphs / recompiles / breaks")
    terminalreporter.write_line(f"| {' | '.join(_HEAD)} |\n|{'---|' * len(_HEAD)}")
    for row in sorted(rows):
        terminalreporter.write_line(f"| {' | '.join(row)} |")
