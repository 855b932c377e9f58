"""Every recipe trains eagerly and compiled, with the same losses, and in as many graphs as designed.

The counts are graphs/recompilations/breaks, as seen with torch 2.13 and PyG 2.8.1; other versions may differ.
"""

import math
from types import SimpleNamespace

import pytest

from tests.recipes.conftest import slow
from tests.recipes.training import RECIPES, load, train

SMALL = {
    "gat_pubmed": {"scale": 0.03, "hidden": 16},
    "gin_arxiv": {"scale": 0.003, "hidden": 16},
    "sage_products": {"scale": 0.001, "batch": 40, "fanout": [4, 3], "hidden": 16},
    "rgcn_mag": {"scale": 0.0005, "hidden": 8},
    "sage_collab": {"scale": 0.002, "batch": 900, "hidden": 16},
    "distmult_biokg": {"scale": 0.001, "hidden": 16},
    "gin_molecules": {"scale": 0.04, "batch": 32, "hidden": 16},
    "relational": {"batch": 64, "hidden": 8, "fanout": [4], "scale": 0.0002},
    "hetero_parts": {"scale": 0.1, "hidden": 8},
    "sparse_csr": {"scale": 0.2, "hidden": 16},
    "gcn_sampled": {"batch": 20},
    "graph_transformer": {"scale": 0.04, "batch": 32, "hidden": 16},
    "growing_graph": {"nodes": 400, "epochs": 12, "per_epoch": 1, "hidden": 16},
}
# Recipe, variant and parameters → counts after so many steps, and what is notable.
CASES = {
    "gcn_cora": [("compiled", {}, 2, "7/2/6"), ("compiled-norm", {}, 2, "1/0/0")],
    "gat_pubmed": [
        ("compiled", {}, 2, "7/2/5"),
        ("compiled-ahead", {}, 2, "1/0/0"),
        ("compiled", {"model": "sage"}, 2, "1/0/0"),
        ("compiled", {"model": "gin"}, 2, "1/0/0"),
        ("compiled-ahead", {"model": "gcn"}, 2, "1/0/0"),
    ],
    "gin_arxiv": [("compiled", {}, 2, "1/0/0")],
    "sage_products": [
        ("compiled", {}, 4, "2/1/0"),
        ("dynamic", {}, 4, "1/0/0"),
        ("padded", {"model": "gcn", "dataset": "reddit", "scale": 0.003}, 4, "1/0/0"),
    ],
    "rgcn_mag": [("compiled", {}, 2, "9/4/9"), ("typed", {}, 2, "1/0/0")],
    "sage_collab": [("compiled", {}, 3, "2/1/0")],
    "distmult_biokg": [("compiled", {}, 3, "2/1/0"), ("dynamic", {}, 3, "1/0/0")],
    "gin_molecules": [("compiled", {}, 4, "2/1/0"), ("unsized", {}, 4, "7/4/6")],
    "relational": [
        ("dynamic", {}, 3, "1/0/0"),
        ("dynamic", {"task": "sales"}, 3, "1/0/0"),
    ],
    "hetero_parts": [
        ("compiled", {}, 2, "1/0/0"),
        ("parts", {}, 2, "4/3/0"),
        ("compiled", {"model": "to_hetero"}, 2, "1/0/0"),
        ("compiled", {"model": "hgt"}, 2, "6/0/4"),
    ],
    "sparse_csr": [("compiled", {}, 2, "1/0/0"), ("csr-compiled", {}, 2, "4/3/8")],
    "gcn_amp": [("bf16-compiled", {}, 2, "1/0/0"), ("fp16-compiled", {}, 2, "1/0/0")],
    "gcn_sampled": [("compiled", {}, 7, "14/12/12"), ("sampled-amp-compiled", {}, 3, "1/0/0")],
    "graph_transformer": [("compiled", {}, 4, "2/1/0")],
    "growing_graph": [
        ("dynamic", {}, 3, "1/0/0"),
        ("buckets", {}, 12, "3/2/0"),
        ("recompile", {}, 12, "8/8/0"),
    ],
}
# Too slow for CI, or like one that is there.
MORE = {
    "gcn_cora": [("compiled:dynamic=true", {}, 2, "9/2/6")],
    "gat_pubmed": [
        ("compiled", {"model": "gcn"}, 2, "7/2/6"),
        ("compiled", {"amp": True, "model": "sage"}, 2, "1/0/0"),
    ],
    "gin_arxiv": [("compiled", {"model": model}, 2, "1/0/0") for model in ("gcn", "sage", "gat")],
    "sage_products": [
        ("compiled:dynamic=false", {"batch": 20}, 12, "8/8/0"),
        *(("compiled", {"model": model}, 4, "2/1/0") for model in ("gat", "gin")),
        ("dynamic:amp=true", {"dataset": "arxiv", "scale": 0.01}, 3, "1/0/0"),
        ("compiled", {"model": "gcn", "dataset": "reddit", "scale": 0.003}, 4, "2/1/0"),
        ("compiled", {"model": "gcn", "loops_ahead": False}, 4, "12/10/8"),
        ("compiled:dynamic=true", {"model": "gat", "loops_ahead": False}, 4, "5/2/3"),
    ],
    "sage_collab": [("drawn-inside", {}, 3, "17/8/10")],
    "distmult_biokg": [("dynamic", {"model": model}, 2, "1/0/0") for model in ("complex", "transe", "rotate")],
    "gin_molecules": [
        ("unsized:dynamic=true", {}, 3, "4/0/3"),
        ("unsized", {}, 5, "9/6/6"),  # the last batch has fewer graphs
    ],
    "hetero_parts": [
        ("parts", {"model": "to_hetero"}, 2, "2/0/0"),
        *(("compiled", {"model": "hgt", "layers": layers}, 2, "6/0/4") for layers in (1, 3)),
    ],
    "relational": [
        ("dynamic", {"task": "purchase"}, 3, "1/0/0"),
        ("dynamic", {"fanout": [3, 3], "amp": True}, 2, "1/0/0"),
    ],
    "graph_transformer": [
        ("dynamic", {}, 3, "1/0/0"),
        ("unsized", {}, 4, "14/7/9"),
        ("unsized:dynamic=true", {}, 4, "8/0/5"),
        ("compiled", {"model": "transformer"}, 4, "2/1/0"),
    ],
    "growing_graph": [("compiled", {}, 4, "2/1/0")],
    "gcn_sampled": [
        ("compiled:dynamic=true", {}, 4, "8/2/6"),
        ("compiled:norm_ahead=true", {}, 5, "2/1/0"),
        ("baseline-compiled", {}, 2, "6/2/6"),
    ],
}


def rows(cases):
    return [(name, *case) for name, each in cases.items() for case in each]


def test_every_recipe_is_among_the_cases_and_none_is_left_out():
    assert set(CASES) == {path.stem for path in RECIPES.glob("*.py")}


def same_losses(one, other):
    assert all(map(math.isfinite, one))
    assert one == pytest.approx(other, rel=1e-4)


@pytest.mark.parametrize(("name", "variant", "params", "steps", "counts"), rows(CASES), ids=str)
def test_compiled_as_eager(name, variant, params, steps, counts):
    check(name, variant, params, steps, counts)


@pytest.mark.skipif(not load("relational").WITH_FRAME, reason="PyTorch Frame is not installed (extra: frame)")
@pytest.mark.parametrize(
    ("variant", "counts"),
    [("frame-dynamic", "1/0/0"), pytest.param("frame:compile=true", "3/2/0", marks=slow)],
)
def test_columns_encoded_by_pytorch_frame(variant, counts):
    check("relational", variant, {}, 4, counts)


def test_an_encoder_that_is_not_installed_is_named(monkeypatch):
    relational = load("relational")
    monkeypatch.setattr(relational, "WITH_FRAME", False)
    with pytest.raises(ModuleNotFoundError, match="pip install pytorch-frame"):
        relational.setup(SimpleNamespace(**{**relational.PARAMS, "encoder": "frame"}))


@slow
@pytest.mark.parametrize(("name", "variant", "params", "steps", "counts"), rows(MORE), ids=str)
def test_more(name, variant, params, steps, counts):
    check(name, variant, params, steps, counts)


@pytest.mark.parametrize(
    ("name", "variant", "more"),
    [
        ("sage_products", "padded:compile=false", {"dropout": 0}),
        ("graph_transformer", "unsized:compile=false", {}),
        ("growing_graph", "buckets:compile=false", {}),
    ],
)
def test_the_cure_leaves_the_losses_as_they_were(name, variant, more):
    """Without dropout, which also draws for padding, the losses are identical."""
    params = {**SMALL[name], **more}
    same_losses(train(name, variant, 3, **params).losses, train(name, "eager", 3, **params).losses)


@pytest.mark.parametrize(
    ("nodes", "seeds", "fanout", "expected"),
    [
        (100, 1, [2, 2], (1 + 2 + 4 + 1, 2 + 4)),  # the last node is the dummy
        (5, 2, [3], (5 + 1, 2 * 3)),  # there are no more nodes than this
        (5, 1, [8, 2], (5 + 1, 8 + 5 * 2)),
    ],
)
def test_the_most_that_a_batch_can_hold(nodes, seeds, fanout, expected):
    assert load("sage_products").most(nodes, seeds, fanout) == expected


def check(name, variant, params, steps, counts):
    params = {**SMALL.get(name, {}), **params}
    eager = train(name, f"{variant}{',' if ':' in variant else ':'}compile=false", steps, **params)
    compiled = train(name, variant, steps, **params)
    same_losses(compiled.losses, eager.losses)
    assert compiled.counts == counts
    assert compiled.limits == (["recompile_limit"] if counts.startswith("8/8") else [])


@pytest.mark.parametrize("name", sorted(path.stem for path in RECIPES.glob("*.py")))
def test_a_recipe_says_what_it_trains_on_and_how_well(name):
    trained = train(name, steps=1, **SMALL.get(name, {}))
    assert "generated" in " ".join(trained.notes)
    metrics = trained.feed.evaluate()
    assert metrics
    assert all(math.isfinite(value) for value in metrics.values())
    assert trained.feed.infer() is not None
