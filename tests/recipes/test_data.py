"""Real data is read in the format of its publishers; here, with a few rows of each."""

import gzip

import numpy as np
import pytest
import torch

from tests.recipes.conftest import missing
from tests.recipes.training import load, train


def write(folder, **tables):
    """`raw__edge=[[0, 1]]` → raw/edge.csv.gz"""
    for name, rows in tables.items():
        file = folder.joinpath(*name.replace("_feat", "-feat").replace("_label", "-label").split("__"))
        file.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(f"{file}.csv.gz", "wt") as out:
            np.savetxt(out, np.asarray(rows), delimiter=",", fmt="%g")


def write_nodes(folder, split, nodes=60, features=128, classes=40):
    draw = np.random.default_rng(0)
    write(
        folder,
        raw__edge=draw.integers(nodes, size=(200, 2)),
        raw__node_feat=draw.normal(size=(nodes, features)),
        raw__node_label=draw.integers(classes, size=(nodes, 1)),
        **{f"split__{split}__{part}": np.arange(*ends)[:, None] for part, ends in SPLIT.items()},
    )


SPLIT = {"train": (0, 30), "valid": (30, 40), "test": (40, 60)}


@pytest.mark.parametrize(
    ("name", "params", "split"),
    [("gin_arxiv", {}, "time"), ("sage_products", {"dataset": "arxiv", "batch": 8, "fanout": [2]}, "time")],
)
def test_node_classification_as_ogb_packs_it(tmp_path, name, params, split):
    write_nodes(tmp_path / "arxiv", split)
    trained = train(name, steps=1, root=str(tmp_path), scale=1.0, hidden=8, **params)
    assert trained.notes[0].startswith("real")
    assert 0 <= trained.feed.evaluate()["test accuracy"] <= 1


def test_links_as_ogb_packs_them(tmp_path):
    draw = np.random.default_rng(0)
    write(tmp_path / "collab", raw__edge=draw.integers(50, size=(400, 2)), raw__node_feat=draw.normal(size=(50, 128)))
    trained = train("sage_collab", steps=1, root=str(tmp_path), scale=1.0, hidden=8, batch=50)
    assert trained.notes == [f"real ogbl-collab from {tmp_path}"]


def test_entities_of_all_types_are_numbered_through(tmp_path):
    file = tmp_path / "biokg" / "split" / "random" / "train.pt"
    file.parent.mkdir(parents=True)
    parts = {
        "head_type": ["drug", "disease", "drug"],
        "head": np.array([0, 1, 2]),
        "relation": np.array([0, 1, 0]),
        "tail_type": ["disease", "drug", "disease"],
        "tail": np.array([0, 0, 1]),
    }
    torch.save(parts, file)
    triples, entities = load("distmult_biokg").read(file)
    assert entities == 5  # two diseases, then three drugs
    assert sorted(triples.tolist()) == [[1, 1, 2], [2, 0, 0], [4, 0, 1]]


def test_a_package_that_is_missing_is_named_with_the_command_that_installs_it():
    assert missing("torch") is None
    assert missing("torch", "no_such_package") == (
        "the recipes need no_such_package, not installed here: pip install -c constraints.txt -e '.[capture,dev]'"
    )
