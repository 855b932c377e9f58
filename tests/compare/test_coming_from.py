"""Every command of docs/coming-from.md runs, on the files that the page names, and says what the page shows."""

import argparse
import contextlib
import gzip
import io
import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.trace.nsys_export import in_both
from tracekit.cli import main
from tracekit.cli.program import VERBS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
STEPS = ROOT / "sample_traces" / "h100" / "gcn_cora" / "run-20261126-011643"
ON_A_CPU = ROOT / "sample_traces" / "run-20261121-091127"
SHOWN = re.findall(r"^\$ tracekit (.*)\n((?:(?!\$ |```).*\n)*)", PAGE, re.MULTILINE)
NAMED = [
    (words, "") for words in re.findall(r"`tracekit ([^`]*)`", PAGE) if words.split()[0] not in ("tui", "sql", "hta")
]
NAMED += [(words, "") for words in re.findall(r"`tracekit (sql [^`]*\"[^`]*)`", PAGE)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the page, and run.sqlite: the eager steps as nsys would export them."""
    made = tmp_path_factory.mktemp("coming-from")
    (made / "log").mkdir()
    # As tensorboard_trace_handler names its files: host, process, time.
    shutil.copy(STEPS / "eager" / "steady.json.gz", made / "log" / "node1_4711.1764119803000.pt.trace.json.gz")
    shutil.copy(STEPS / "eager" / "detail.json.gz", made / "trace.json.gz")
    shutil.copy(ON_A_CPU / "eager" / "steady.json.gz", made / "cpu.json.gz")
    for variant in ("eager", "compiled"):
        shutil.copy(STEPS / variant / "steady.json.gz", made / f"{variant}.json.gz")
    _, nsys = in_both(json.loads(gzip.decompress((made / "eager.json.gz").read_bytes())), made)
    nsys.rename(made / "run.sqlite")
    return made


@pytest.mark.parametrize(("words", "shown"), SHOWN + NAMED, ids=[words for words, _ in SHOWN + NAMED])
def test_it_says_what_the_page_shows(words: str, shown: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "100")
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = main(shlex.split(words))
    assert code == 0, said.getvalue()
    text = "\n".join(line.rstrip() for line in said.getvalue().splitlines())
    at = 0
    for line in (line for line in shown.splitlines() if line != "…"):
        at = text.find(line.rstrip(), at)
        assert at >= 0, f"not in what it says, or not there: {line}"


def test_most_commands_show_what_they_say() -> None:
    assert len(SHOWN) >= 7
    assert sum(bool(shown.strip()) for _, shown in SHOWN) == len(SHOWN)
    assert len(NAMED) >= 6


@pytest.mark.parametrize("words", re.findall(r"`tracekit ((?:tui|hta) [^`]*)`", PAGE))
def test_what_needs_a_terminal_or_a_package_has_its_options(words: str) -> None:
    verb, *arguments = shlex.split(words)
    parser = argparse.ArgumentParser()
    next(each for each in VERBS if each.name == verb).arguments(parser)
    assert parser.parse_known_args(arguments)[1] == []
