"""What is said of the recipes that come with tracekit, without running them; names for them, and copies."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.recipes.training import load
from tracekit import catalogue
from tracekit.errors.asking import OutputError
from tracekit.errors.capturing import NoSuchRecipeError

RECIPES = Path(__file__).parents[1] / "recipes"
ALL = catalogue.entries()
TWINS = "twins/dgl_"


def test_every_recipe_and_sweep_file_is_listed() -> None:
    files = {entry.files[0] for entry in ALL}
    assert {*RECIPES.rglob("*.py")} - files == {RECIPES / "twins" / "with_dgl.py"}  # what the twins share
    assert files >= {*RECIPES.rglob("*.toml")}


@pytest.mark.parametrize("entry", ALL, ids=lambda entry: entry.name)
def test_each_says_in_one_sentence_what_it_is_about(entry: catalogue.Entry) -> None:
    assert re.fullmatch(r"[A-Z][^\n]{20,250}[.?]", entry.summary)


def test_a_sentence_ends_where_a_space_follows() -> None:
    (twin, sweep) = catalogue.entries([f"{TWINS}rgcn_mag", "sweeps/quick"])
    assert twin.summary.startswith("The twin of rgcn_mag.py in DGL: papers")
    assert sweep.summary == (
        "Ten minutes on two cores: is compiling worth it for the small full-batch models, and in which mode?"
    )


@pytest.mark.parametrize(
    "entry",
    [entry for entry in ALL if entry.kind == "recipe" and not entry.name.startswith(TWINS)],
    ids=lambda entry: entry.name,
)
def test_the_variants_are_those_of_the_recipe_when_it_runs(entry: catalogue.Entry) -> None:
    declared = getattr(load(entry.name), "VARIANTS", {})
    optional = {"frame", "frame-dynamic"} if entry.name == "relational" else set()  # with PyTorch Frame
    assert {*entry.variants} == {*declared} - optional
    assert entry.needs == ("torch", "torch-geometric")


def test_a_twin_needs_what_the_module_beside_it_imports() -> None:
    (twin,) = catalogue.entries([f"{TWINS}gat_pubmed"])
    assert twin.needs == ("dgl", "torch")
    assert [file.name for file in twin.files] == ["dgl_gat_pubmed.py", "with_dgl.py"]


def test_a_sweep_runs_its_recipes_and_leaves_to_other_interpreters_what_they_need() -> None:
    (sweep,) = catalogue.entries(["sweeps/gnn_compile_bench"])
    assert sweep.needs == ("torch", "torch-geometric")
    assert {"gat_pubmed.py", "dgl_gat_pubmed.py", "with_dgl.py"} <= {file.name for file in sweep.files}


def test_a_file_goes_before_what_comes_with_tracekit(tmp_path: Path) -> None:
    assert catalogue.located("gcn_cora", tmp_path) == RECIPES / "gcn_cora.py"
    assert catalogue.located("pathologies/syncs", tmp_path) == RECIPES / "pathologies" / "syncs.py"
    assert catalogue.located("sweeps/quick", tmp_path, catalogue.sweeps) == RECIPES / "sweeps" / "quick.toml"
    assert catalogue.located("gcn_cora.py", tmp_path) == tmp_path / "gcn_cora.py"  # a file, and it is not there
    (tmp_path / "gcn_cora").touch()
    assert catalogue.located("gcn_cora", tmp_path) == tmp_path / "gcn_cora"


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("gcn_coar", "gcn_cora"),
        ("recipes/gcn_cora.py", "gcn_cora"),
        ("syncs", "pathologies/syncs"),
        ("pathologies/sync", "pathologies/syncs"),
        ("train.py", ""),
        ("/home/me/main.py", ""),
        ("", ""),
        ("/", ""),
    ],
)
def test_a_misspelt_name_is_guessed(given: str, meant: str) -> None:
    assert catalogue.similar(given, catalogue.recipes()) == meant


def test_copies_lie_beside_each_other_as_the_originals_do(tmp_path: Path) -> None:
    chosen = catalogue.entries(["sweeps/quick", f"{TWINS}gat_pubmed", "pathologies/syncs"])
    written = catalogue.copied(chosen, tmp_path / "new" / "mine")
    names = ["sweeps/quick.toml", "gat_pubmed.py", "dgl_gat_pubmed.py", "with_dgl.py", "syncs.py"]
    assert written == [tmp_path / "new" / "mine" / name for name in names]
    assert all(path.read_bytes() == next(RECIPES.rglob(path.name)).read_bytes() for path in written)
    (copied_sweep,) = (path for path in written if path.suffix == ".toml")
    from tracekit.sweep import read_sweep

    assert read_sweep(copied_sweep).recipes == ["../gat_pubmed.py"]


def test_nothing_is_overwritten_unless_told(tmp_path: Path) -> None:
    mine = tmp_path / "gcn_cora.py"
    mine.write_text("mine")
    chosen = catalogue.entries(["gat_pubmed", "gcn_cora"])
    with pytest.raises(OutputError, match=r"gcn_cora.py cannot be written \(it exists, and only --force replaces it\)"):
        catalogue.copied(chosen, tmp_path)
    assert [*tmp_path.iterdir()] == [mine]
    catalogue.copied(chosen, tmp_path, force=True)
    assert "GCN" in mine.read_text()


def test_a_folder_that_is_none_cannot_be_filled(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="file"):
        catalogue.copied(catalogue.entries(["gcn_cora"]), tmp_path / "file" / "below")


def test_an_unknown_name_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(NoSuchRecipeError, match=r"no such recipe or sweep file. Did you mean sweeps/four_ways\?"):
        catalogue.entries(["sweeps/fourways"])
    with pytest.raises(NoSuchRecipeError, match="tracekit recipes lists those that come with tracekit"):
        catalogue.entries(["\x1b[31m"])
