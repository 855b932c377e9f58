"""Everything that the README and the pages of docs name exists, and CONTRIBUTING's table has the whole package."""

import argparse
import importlib
import re
import shutil
from pathlib import Path

import pytest
from real import trace_path

from tracekit.cli.program import VERBS
from tracekit.faces import Options
from tracekit.faces.text import draw as text
from tracekit.installed import sample_run
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.tui.keys import KEYS

ROOT = Path(__file__).resolve().parents[1]
README, HOUSE = ROOT / "README.md", ROOT / "CONTRIBUTING.md"
PAGES = [README, HOUSE, *sorted((ROOT / "docs").glob("*.md"))]


def test_the_picture_has_every_package() -> None:
    packages = {file.parent.name for file in ROOT.glob("tracekit/*/__init__.py")}
    assert packages == set(re.findall(r"^\| `tracekit/(\w+)/`", HOUSE.read_text(), re.MULTILINE))


def test_the_picture_has_every_module() -> None:
    modules = {file.name for file in ROOT.glob("tracekit/*.py") if not file.name.startswith("__")}
    rows = re.findall(r"^\| (`tracekit/.*?) \|", HOUSE.read_text(), re.MULTILINE)
    assert modules == {name for row in rows for name in re.findall(r"(\w+\.py)", row)}


def test_tests_mirror_the_package() -> None:
    packages = {file.parent.name for file in ROOT.glob("tracekit/*/__init__.py")}
    assert packages - {"errors"} <= {folder.name for folder in (ROOT / "tests").iterdir()}  # tests raise these


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_files_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text()
    named = re.findall(r"`((?:tracekit|tests|recipes|docs|sample_traces)/[\w./]+)`", text)
    linked = re.findall(r"\]\(([\w./-]+)(?:#[\w-]+)?\)", text)
    figures = re.findall(r'"(tracekit/[a-z_/]+)"', (ROOT / "tracekit/watching/history.py").read_text())
    files = [name for name in named if "NAME" not in name and name not in figures]
    missing = [path for path in files if not (ROOT / path).exists()]
    missing += [path for path in linked if not (page.parent / path).exists()]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_sections_lead_to_one(page: Path) -> None:
    for path, section in re.findall(r"\]\(([\w./-]*\.md)#([\w-]+)\)", page.read_text()):
        headings = re.findall(r"^#+ (.*)$", (page.parent / path).read_text(), re.MULTILINE)
        assert section in [re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings]


def test_every_page_is_in_the_menu_of_the_site() -> None:
    menu = re.findall(r"^  - .*: ([\w.-]+)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(menu) == sorted(page.name for page in PAGES if page.parent.name == "docs")


def test_the_readme_is_read_in_one_go() -> None:
    assert len(README.read_text().splitlines()) <= 120


def example(page: Path, start: str) -> str:
    return start + page.read_text().partition(start)[2].partition("```")[0].rstrip().removesuffix("…").rstrip()


def shown(paths: list[Path]) -> str:
    return "\n".join(line.rstrip() for line in text(report(open_subject(paths)), Options()).splitlines())


def test_the_example_is_what_a_report_says_today(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    parts = example(README, "3.53 → 2.15").split("…\n")
    assert sum(len(part.splitlines()) for part in parts) >= 20
    report = shown([sample_run()])
    assert all(part in report for part in parts)


@pytest.mark.traces
def test_the_example_of_reading_is_what_a_report_says_today(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    names = {"eager": "leimao_eager_rtx5080", "replay": "leimao_cudagraph_manual_rtx5080"}
    for name, trace in names.items():
        shutil.copy(trace_path(trace), tmp_path / f"{name}.json.gz")
    said = example(ROOT / "docs" / "reading.md", "1  Dispatch-bound")
    assert len(said.splitlines()) >= 8
    assert said in shown([tmp_path / f"{name}.json.gz" for name in names])


def test_the_verbs_and_options_of_the_tasks_exist() -> None:
    page = (ROOT / "docs" / "tasks.md").read_text()
    commands = re.findall(r"^\$ (?:\w+=\S+ )?tracekit ([^#\n]*)", page, re.MULTILINE)
    verbs = {verb.name: verb for verb in VERBS}
    assert len(commands) >= 8
    for words in map(str.split, commands):
        parser = argparse.ArgumentParser()
        verbs[words[0]].arguments(parser)
        assert parser.parse_known_args(words[1:])[1] == []


def test_the_page_on_the_terminal_has_every_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
    page = importlib.import_module("hooks").on_page_markdown((ROOT / "docs" / "tui.md").read_text())
    assert [key.id for key in KEYS if key.tooltip and f"| {key.tooltip} |" not in page] == []
