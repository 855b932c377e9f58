"""Each pathology appears in the counts, its cure removes it, and the loss stays the same.

The counts are graphs/recompilations/breaks, as seen with torch 2.13 and PyG 2.8.1; other versions may differ.
"""

import pytest
import torch

from tests.recipes.conftest import slow
from tests.recipes.training import train

SMALL = {
    "shapes": {"nodes": 100, "hidden": 8},
    "cuda_graphs": {"nodes": 100, "hidden": 8},
    "int_attribute": {"nodes": 100, "hidden": 8},
    "float_lr": {"nodes": 100, "hidden": 8},
    "self_loops": {"nodes": 100, "hidden": 8},
    "tuple_keys": {"nodes": 100, "hidden": 8},
    "edge_types": {"hidden": 8},
    "graph_breaks": {"graphs": 6, "hidden": 8},
    "syncs": {"nodes": 200, "hidden": 8},
    "pipeline": {"rows": 60, "hidden": 8},
}
# Pathology, parameters, steps; then every variant with its counts.
CASES = [
    ("shapes", {}, 12, {"before": "8/8/0", "auto": "2/1/0", "dynamic": "1/0/0", "padded": "1/0/0"}),
    ("int_attribute", {}, 12, {"before": "8/8/0", "after": "2/1/0", "after-tensor": "1/0/0"}),
    ("float_lr", {}, 12, {"before": "9/8/2", "after": "2/0/2"}),
    ("self_loops", {}, 2, {"before": "6/2/6", "after": "1/0/0"}),
    ("edge_types", {}, 8, {"before": "4/3/0", "after": "1/0/0"}),
    ("tuple_keys", {}, 2, {"before": "1/0/0", "after": "1/0/0"}),
    ("graph_breaks", {}, 2, {"before": "18/2/19", "masked-index": "2/0/2", "item": "3/1/1", "after": "1/0/0"}),
    ("pipeline", {}, 3, {"1-dynamic": "5/2/4", "3-whole-graph": "2/0/2"}),
]
# Too slow for CI, or like one that is there.
MORE = [
    ("float_lr", {"optimizer": "adam"}, 12, {"before": "9/8/2", "after": "2/0/2"}),
    ("self_loops", {"model": "gat", "hidden": 16}, 2, {"before": "6/2/5", "after": "1/0/0"}),
    (
        "graph_breaks",
        {},
        2,
        {
            "print": "2/0/1",
            "pool-size": "4/0/3",
            "softmax-size": "4/0/3",
            "degree-size": "4/0/3",
            "dense-size": "5/0/4",
            "repeat-size": "2/0/1",
        },
    ),
    ("cuda_graphs", {}, 4, {"before": "2/1/0", "before-dynamic": "1/0/0", "padded": "1/0/0", "no-cudagraphs": "1/0/0"}),
    *(
        ("pipeline", {"task": task}, 3, {"1-dynamic": "5/2/4", "3-whole-graph": "2/0/2", "5-no-syncs": "2/0/2"})
        for task in ("sales", "purchase")
    ),
    ("pipeline", {}, 3, {"2-tensor-lr": "3/0/4", "5-no-syncs": "2/0/2"}),
    ("pipeline", {}, 10, {"0-naive": "24/30/18", "1-dynamic": "10/8/4", "4-no-cudagraphs": "2/0/2"}),
]
GAVE_UP = ("before", "0-naive", "1-dynamic")


@pytest.mark.parametrize(("name", "params", "steps", "counts"), CASES, ids=str)
def test_pathology_and_cure(name, params, steps, counts):
    check(name, params, steps, counts)


@slow
@pytest.mark.parametrize(("name", "params", "steps", "counts"), MORE, ids=str)
def test_more(name, params, steps, counts):
    check(name, params, steps, counts)


def check(name, params, steps, counts):
    params = {**SMALL[name], **params}
    trained = {variant: train(name, variant, steps, **params) for variant in counts}
    assert {variant: each.counts for variant, each in trained.items()} == counts
    eager = train(name, "eager", steps, **params).losses
    for each in trained.values():
        assert each.losses == pytest.approx(eager, rel=1e-4)
    for variant, each in trained.items():
        assert not each.limits or variant in GAVE_UP


MARKERS = {"aten::item", "aten::_local_scalar_dense", "aten::is_nonzero", "aten::nonzero"}


@pytest.mark.parametrize(
    ("variant", "asks"),
    [("before", True), ("metric", True), ("repeat", True), ("mask", True), ("mean-metric", True), ("after", False)],
)
def test_waits_leave_their_markers(variant, asks):
    """On a CPU nothing waits, but the trace names what would."""
    trained = train("syncs", variant, steps=1, **SMALL["syncs"])
    with torch.profiler.profile() as profiler:
        trained.feed()
    markers = {event.name for event in profiler.events()} & MARKERS
    assert bool(markers) == asks


def test_the_loss_waits_for_nothing():
    losses = [train("syncs", variant, 3, **SMALL["syncs"]).losses for variant in ("before", "after", "compiled")]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    assert losses[0] == pytest.approx(losses[2], rel=1e-4)
