"""Everything that the README and the pages of docs name exists, and the README's table has the whole package."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_picture_has_every_package() -> None:
    packages = {file.parent.name for file in ROOT.glob("tracekit/*/__init__.py")}
    assert packages == set(re.findall(r"^\| `tracekit/(\w+)/`", README.read_text(), re.MULTILINE))


def test_the_picture_has_every_module() -> None:
    modules = {file.name for file in ROOT.glob("tracekit/*.py") if not file.name.startswith("__")}
    rows = re.findall(r"^\| (`tracekit/.*?) \|", README.read_text(), re.MULTILINE)
    assert modules == {name for row in rows for name in re.findall(r"(\w+\.py)", row)}


def test_tests_mirror_the_package() -> None:
    packages = {file.parent.name for file in ROOT.glob("tracekit/*/__init__.py")}
    assert packages - {"errors"} <= {folder.name for folder in (ROOT / "tests").iterdir()}  # tests raise these


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_files_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text()
    named = re.findall(r"`((?:tracekit|tests|recipes|docs|sample_traces)/[\w./]+)`", text)
    linked = re.findall(r"\]\(([\w./-]+)(?:#[\w-]+)?\)", text)
    missing = [path for path in named if "NAME" not in path and not (ROOT / path).exists()]
    missing += [path for path in linked if not (page.parent / path).exists()]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_sections_lead_to_one(page: Path) -> None:
    for path, section in re.findall(r"\]\(([\w./-]*\.md)#([\w-]+)\)", page.read_text()):
        headings = re.findall(r"^#+ (.*)$", (page.parent / path).read_text(), re.MULTILINE)
        assert section in [re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings]


def test_every_page_is_in_the_menu_of_the_site() -> None:
    menu = re.findall(r"^  - .*: ([\w.]+)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(menu) == sorted(page.name for page in PAGES if page.parent.name == "docs")
