"""What is written in several places about packages is the same everywhere: names, versions, requirements."""

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tracekit.installed import DISTRIBUTION

ROOT = Path(__file__).resolve().parents[1]
PROJECT_TEXT = (ROOT / "pyproject.toml").read_text()
PROJECT = tomllib.loads(PROJECT_TEXT)["project"]
CONDA = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text()
CONTAINER = (ROOT / "packaging" / "Containerfile").read_text()
ON_CONDA = {"isal": "python-isal"}  # other names than on PyPI
README = (ROOT / "README.md").read_text()
LINKED = re.compile(r"\]\((?!https?:)([^)]+)\)")  # relative: nothing is beside the text on an index
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def listed(section: str, text: str = CONDA) -> set[str]:
    """The plain entries of a list in a YAML file."""
    block = re.search(rf"^( *){section}:\n((?:\1 +.*\n)+)", text, re.MULTILINE)
    assert block, section
    return set(re.findall(r"^ *- (\w.*)$", block[2], re.MULTILINE))


def split(requirement: str) -> tuple[str, str]:
    """`numpy>=1.26` → its name and its version."""
    match = re.fullmatch(r"([\w.-]+) *(.*)", requirement)
    assert match
    return match[1], match[2]


def test_the_distribution_has_the_name_that_messages_use() -> None:
    assert PROJECT["name"] == DISTRIBUTION


def test_conda_requires_what_pyproject_does() -> None:
    required = {split(requirement) for requirement in PROJECT["dependencies"]}
    wanted = {f"{ON_CONDA.get(name, name)} {version}" for name, version in required}
    assert listed("run") == wanted | {"python"}
    built_by = {" ".join(split(each)).strip() for each in tomllib.loads(PROJECT_TEXT)["build-system"]["requires"]}
    assert listed("host") == built_by | {"pip", "python"}
    assert f'match(python, "<{PROJECT["requires-python"].removeprefix(">=")}")' in CONDA
    assert f'version: "{PROJECT["version"]}"' in CONDA
    assert f"name: {DISTRIBUTION}\n" in CONDA
    assert f"summary: {PROJECT['description']}\n" in CONDA


def test_the_page_on_installing_has_every_extra_for_users() -> None:
    rows = re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", (ROOT / "docs" / "install.md").read_text(), re.MULTILINE)
    extras = PROJECT["optional-dependencies"]
    for_users = {extra: [split(each)[0] for each in extras[extra]] for extra in {*extras} - {"dev", "docs", "verify"}}
    assert {extra: packages.split(", ") for extra, packages in rows} == for_users


def test_the_container_has_extras_that_there_are() -> None:
    (built, installed) = re.findall(r"'(?:/source|tracekit-torch)\[([\w,]+)\]'", CONTAINER)
    assert built == installed
    assert {*built.split(",")} <= {*PROJECT["optional-dependencies"]}


def test_no_requirement_has_an_upper_bound_without_a_reason_beside_it() -> None:
    bounded = [line for line in PROJECT_TEXT.splitlines() if re.search(r'"[\w.-]+(\[.*\])?[^"]*(<|==|~=)[^"]*"', line)]
    assert [line for line in bounded if "#" not in line] == []


@pytest.mark.skipif(not WORKFLOWS, reason="a source distribution was unpacked without .github")
def test_every_python_that_is_promised_is_tested() -> None:
    promised = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    assert f">={promised[0]}" == PROJECT["requires-python"]
    tested = {
        file.stem: re.findall(r'"(.*?)"', match[1])
        for file in WORKFLOWS
        if (match := re.search(r"^ +python: \[(.*)\]$", file.read_text(), re.MULTILINE))
    }
    assert tested == {"test": promised, "release": promised, "newest": [promised[0], promised[-1]]}


@pytest.mark.skipif(not WORKFLOWS, reason="a source distribution was unpacked without .github")
def test_every_action_is_used_in_one_version_and_by_one_that_runs_on_todays_node() -> None:
    files = [*WORKFLOWS, ROOT / "action.yml", ROOT / "docs" / "checks.md"]
    used = {each for file in files for each in re.findall(r"uses: (actions/\S+)@(\S+)", file.read_text())}
    # Earlier ones ask for Node 20, which runners no longer have.
    first = {"checkout": 5, "setup-python": 6, "upload-artifact": 6, "download-artifact": 7}
    assert {name.removeprefix("actions/") for name, _ in used} == {*first}
    assert len(used) == len(first)
    assert all(int(version.removeprefix("v")) >= first[name.removeprefix("actions/")] for name, version in used)


@pytest.mark.parametrize("folder", ["tracekit", "docs", "recipes", "packaging", ".github", "."])
def test_nobody_is_told_to_install_another_tool(folder: str) -> None:
    """The name `tracekit` on PyPI is not this tracekit."""
    found = (ROOT / folder).rglob("*") if folder != "." else ROOT.glob("*.md")
    files = [file for file in found if file.suffix in (".py", ".md", ".toml", ".yaml", ".yml", ".ipynb", "")]
    texts = {file: file.read_text() for file in files if file.is_file()}
    wrong = re.compile(r"(?:install|uvx|pipx run|--with|--spec) '?tracekit\b(?!-torch)|(?<![\w/-])tracekit\[\w")
    assert [str(file) for file, text in texts.items() if wrong.search(text)] == []


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="a source distribution was unpacked")
def test_the_source_distribution_has_all_that_tests_read() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    there = {path.partition("/")[0] for path in listed.splitlines() if not path.startswith(".")}
    packed = tomllib.loads(PROJECT_TEXT)["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert there - {*packed} == {"LICENSE", "pyproject.toml"}  # which hatchling adds


def described(monkeypatch: pytest.MonkeyPatch, source: str) -> dict[str, Any]:
    """What the hook adds to the metadata; what builds packages need not be installed."""
    monkeypatch.setenv("TRACEKIT_SOURCE", source)
    for kind, interface in (("builders.hooks", "BuildHookInterface"), ("metadata", "MetadataHookInterface")):
        stand_in = SimpleNamespace(**{interface: object})
        monkeypatch.setitem(sys.modules, f"hatchling.{kind}.plugin.interface", stand_in)
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec
    assert spec.loader
    built = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(built)
    hook = built.DescriptionHook()
    hook.root = ROOT
    metadata = {"version": PROJECT["version"]}
    hook.update(metadata)
    return {name: value for name, value in metadata.items() if name != "version"}


def test_links_of_the_description_lead_to_the_files_of_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    made = described(monkeypatch, "https://github.com/me/mine")
    assert {*made} == {*PROJECT["dynamic"]}
    text = made["readme"]["text"]
    assert LINKED.findall(text) == []
    at = f"v{PROJECT['version']}"
    assert f"](https://github.com/me/mine/blob/{at}/docs/capture.md)" in text
    assert f"](https://github.com/me/mine/raw/{at}/docs/images/tui-overview.svg)" in text
    there = [ROOT / path for path in re.findall(rf"/(?:blob|raw)/{re.escape(at)}/([^)#]+)", text)]
    assert len(there) == len(LINKED.findall(README)) > 20
    assert [path for path in there if not path.is_file()] == []


def test_without_an_address_the_description_names_files_of_the_source_distribution(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = described(monkeypatch, "")
    assert {*made} == {"readme"}
    text = made["readme"]["text"]
    assert "](" not in text
    assert "what a capture does [`docs/capture.md`]" in text
    packed = tomllib.loads(PROJECT_TEXT)["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert {path.partition("/")[0] for path in LINKED.findall(README)} <= {*packed}
