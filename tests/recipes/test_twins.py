"""The twins in DGL train on the same graphs that the PyG recipes generate, with the same parameters.

The tests do not install DGL; those that need it are skipped without it. tests/verify has one with a separate
interpreter.
"""

import ast
import importlib.util
import math

import pytest

from tests.recipes.training import RECIPES, load, train

TWINS = sorted(path for path in (RECIPES / "twins").glob("dgl_*.py"))
SMALL = {
    "dgl_gat_pubmed": {"scale": 0.03},
    "dgl_gin_arxiv": {"scale": 0.003},
    "dgl_sage_products": {"scale": 0.001, "batch": 40, "fanout": [4, 3]},
    "dgl_rgcn_mag": {"scale": 0.0005},
    "dgl_sage_collab": {"scale": 0.002, "batch": 900},
}
STATISTICS = ("STATISTICS", "NODES", "EDGES", "AUTHORS", "PAIRS", "FEATURES", "CLASSES")


def functions(path):
    return {node.name: ast.dump(node) for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("twin", TWINS, ids=lambda path: path.stem)
def test_graph_and_parameters_are_those_of_the_recipe_for_pyg(twin):
    original = RECIPES / twin.name.removeprefix("dgl_")
    assert functions(twin)["generate"] == functions(original)["generate"]
    ours, theirs = load(twin.stem), load(original.stem)
    assert set(ours.PARAMS) <= set(theirs.PARAMS)
    assert {name: theirs.PARAMS[name] for name in ours.PARAMS} == ours.PARAMS
    statistics = [name for name in STATISTICS if hasattr(ours, name)]
    assert [getattr(ours, name) for name in statistics] == [getattr(theirs, name) for name in statistics]


@pytest.mark.skipif(importlib.util.find_spec("dgl") is not None, reason="DGL is installed")
def test_without_dgl_a_twin_says_what_is_missing():
    with pytest.raises(SystemExit, match="needs DGL, which cannot be imported here"):
        train(TWINS[0].stem, steps=1, **SMALL[TWINS[0].stem])


@pytest.mark.parametrize("twin", TWINS, ids=lambda path: path.stem)
def test_a_twin_trains(twin):
    pytest.importorskip(
        "dgl", reason="DGL is not installed; docs/sweeps.md says how to make an environment that has it"
    )
    models = ["gcn", "sage", "gat", "gin"] if "model" in load(twin.stem).PARAMS else [None]
    for model in models:
        chosen = {"model": model} if model else {}
        trained = train(twin.stem, steps=2, hidden=16, **SMALL[twin.stem], **chosen)
        assert all(map(math.isfinite, [*trained.losses, *trained.feed.evaluate().values()]))
        assert trained.feed.infer() is not None
