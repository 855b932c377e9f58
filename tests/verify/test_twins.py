"""PyG and DGL, each in a separate environment, in one study.

TRACEKIT_DGL names the interpreter of an environment with DGL (docs/sweeps.md says how to make one), TRACEKIT_PYG that
of one with PyG; by default this is the current one.
"""

import os
import subprocess
import sys

import pytest

from tests.recipes.training import RECIPES
from tracekit.study import read_study
from tracekit.sweep import SweepOptions, sweep

DGL = os.environ.get("TRACEKIT_DGL", "")
pytestmark = [
    pytest.mark.skipif(not os.environ.get("TRACEKIT_VERIFY"), reason="TRACEKIT_VERIFY is not set: make verify"),
    pytest.mark.skipif(not DGL, reason="TRACEKIT_DGL does not name an interpreter that has DGL"),
]

PYG = os.environ.get("TRACEKIT_PYG", sys.executable)
# Recipe, variants and parameters; each in both frameworks, on a graph that it generates.
PAIRS = [
    ("gat_pubmed", ["eager", "compiled"], {"model": ["gcn", "gat"], "dataset": ["cora"], "scale": [0.2]}),
    ("gin_arxiv", ["eager"], {"scale": [0.01]}),
    ("sage_products", ["eager"], {"scale": [0.001], "batch": [64]}),
    ("rgcn_mag", ["eager"], {"scale": [0.001]}),
    ("sage_collab", ["eager"], {"scale": [0.002], "batch": [900]}),
]


def sweep_file() -> str:
    """Every pair as two grids: the recipe in the environment with PyG, its twin in the one with DGL."""
    text = '[sweep]\noptions = { steps = 3, warmup = 3, passes = 1, backend = "aot_eager" }\n'
    for recipe, variants, params in PAIRS:
        for framework, python, path in (("pyg", PYG, recipe), ("dgl", DGL, f"twins/dgl_{recipe}")):
            text += f"""
[[sweep.grid]]
recipes = ["{RECIPES}/{path}.py"]
variants = {variants}
params = {{ {", ".join(f"{name} = {values}" for name, values in params.items())} }}
interpreters = {{ {framework} = "{python}" }}
labels = {{ framework = "{framework}", recipe = "{recipe}" }}
"""
    return text


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("twins")
    (folder / "twins.toml").write_text(sweep_file())
    sweep(SweepOptions(file=folder / "twins.toml", out=folder / "study", devices=("cpu",), tell=lambda _: None))
    return folder / "study"


def test_every_cell_of_both_comes_to_its_end(study):
    results = read_study(study).results
    assert {each.cell.folder: each.record.error for each in results if each.outcome != "ok"} == {}
    assert len(results) == 16


def test_both_say_that_they_train_on_the_same_graph(study):
    data = {}
    for each in read_study(study).results:
        data.setdefault(each.cell.setting["framework"], set()).add(each.run.data.partition("; ")[0])
    assert data["pyg"] == data["dgl"]
    assert len(data["dgl"]) == len(PAIRS)


def test_the_report_sets_one_against_the_other(study):
    done = subprocess.run(
        [sys.executable, "-m", "tracekit", "report", str(study)],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert "framework" in done.stdout
