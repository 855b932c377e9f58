"""`tracekit recipes` lists and copies what comes with tracekit, and other verbs find it by name, wherever they run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import warm

from tracekit import catalogue
from tracekit.cli import main

SWEEP = '[sweep]\nrecipes = ["gcn_cora", "pathologies/syncs"]\nvariants = ["eager"]\n'


def test_the_list_has_all_of_them_in_no_more_than_the_width(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["recipes"]) == 0
    said = capsys.readouterr()
    assert max(map(len, said.out.splitlines())) <= 80
    assert {line.split()[0] for line in said.out.splitlines() if line[:2] == "  " and line[2] != " "} == {
        *catalogue.recipes(),
        *catalogue.sweeps(),
    }
    assert "variants eager-norm, compiled-norm; needs torch, torch-geometric" in " ".join(said.out.split())
    assert said.err.endswith("To edit one, copy it: tracekit recipes copy NAME\n")


def test_what_is_not_installed_is_said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["recipes", "list", "gcn_cora"]) == 0
    said = capsys.readouterr()
    assert "needs torch (not installed), torch-geometric (not installed)" in " ".join(said.out.split())
    assert "[capture]'" in said.err


def test_programs_get_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recipes", "list", "gcn_cora", "sweeps/quick", "--format", "json"]) == 0
    said = capsys.readouterr()
    document = json.loads(said.out)
    (table,) = document["blocks"]
    names = [column["name"] for column in table["columns"]]
    recipe, sweep = (dict(zip(names, row, strict=True)) for row in table["rows"])
    assert (document["schema"], said.err) == ("tracekit.recipes/1", "")
    assert (recipe["kind"], recipe["variants"]) == ("recipe", "eager-norm, compiled-norm")
    assert (sweep["kind"], Path(sweep["file"]).name) == ("sweep", "quick.toml")


def test_a_copy_is_captured_as_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["recipes", "copy", "gcn_cora"]) == 0
    assert capsys.readouterr().err == "Wrote gcn_cora.py\n"
    assert main(["recipes", "copy", "gcn_cora"]) == 1
    assert "it exists, and only --force replaces it" in capsys.readouterr().err
    assert main(["recipes", "copy", "gcn_cora", "--force"]) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["recipes", "copy"], "NAME must be what to copy, as in: tracekit recipes copy gcn_cora."),
        (["recipes", "list", "gcn_coar"], "gcn_coar: no such recipe or sweep file. Did you mean gcn_cora?"),
        (["capture", "gcn_coar"], "gcn_coar: no such recipe or script. Did you mean gcn_cora?"),
        (["capture", "recipes/gcn_cora.py"], "recipes/gcn_cora.py: no such recipe or script. Did you mean gcn_cora?"),
        (["audit", "syncs"], "syncs: no such recipe or script. Did you mean pathologies/syncs?"),
        (["capture", "tra.py"], "no such recipe or script. tracekit recipes lists those that come with tracekit."),
        (["sweep", "sweeps/quik"], "sweeps/quik: no such sweep file. Did you mean sweeps/quick?"),
    ],
)
def test_what_is_not_there_is_refused_in_one_sentence(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith("tracekit: ")
    assert error.endswith(f"{said}\n")
    assert not [*tmp_path.iterdir()]


def test_a_recipe_is_audited_by_its_name(tmp_path: Path) -> None:
    command = ["audit", "pathologies/syncs", "--param", "nodes=200", "--variant", "repeat", "--steps", "1"]
    done = warm.tracekit(*command, folder=tmp_path)
    assert "syncs.py:38 forward" in done.stdout, done.stderr


def test_a_module_of_that_name_is_a_module(tmp_path: Path) -> None:
    (tmp_path / "gcn_cora.py").write_text("raise SystemExit('the module')")
    assert "the module" in warm.tracekit("audit", "-m", "gcn_cora", folder=tmp_path).stderr


def test_a_sweep_names_recipes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(SWEEP)
    assert main(["sweep", str(file), "--dry-run", "-o", str(tmp_path / "study")]) == 0
    said = capsys.readouterr()
    assert "gcn_cora" in said.out + said.err
    assert "syncs" in said.out + said.err
    file.write_text(SWEEP.replace("gcn_cora", "gcn_coar"))
    assert main(["sweep", str(file), "--dry-run"]) == 1
    assert "and no recipe of that name; there is gcn_cora." in capsys.readouterr().err


def test_a_sweep_file_has_a_name_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", "sweeps/quick", "--dry-run"]) == 0
    assert "gat_pubmed" in capsys.readouterr().err
