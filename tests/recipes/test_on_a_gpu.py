"""What every recipe and pathology does on a GPU, tested on the emulated one: nothing crashes, the cures do not wait,
and the pathologies wait exactly where they are meant to.
"""

import importlib
import linecache
import sys

import pytest

from tests.recipes.test_pathologies import SMALL as PATHOLOGIES
from tests.recipes.test_recipes import SMALL
from tests.recipes.training import NOWHERE, RECIPES, load, path_of, train
from tracekit.capture.audit.child import audit
from tracekit.capture.job import Audit, Job

CLEAN = [
    ("gcn_cora", "eager-norm", {}),
    ("gat_pubmed", "eager-ahead", {}),
    ("gin_arxiv", "eager", {}),
    ("sage_products", "eager", {}),
    ("sage_products", "padded", {}),
    ("rgcn_mag", "typed", {}),
    ("sage_collab", "eager", {}),
    ("distmult_biokg", "eager", {}),
    ("gin_molecules", "eager", {}),
    ("relational", "eager", {}),
    ("relational", "eager", {"task": "sales"}),
    ("relational", "eager", {"task": "purchase"}),
    ("hetero_parts", "eager", {}),
    ("hetero_parts", "eager", {"model": "to_hetero"}),
    ("gcn_sampled", "sampled-amp-compiled:amp=bf16", {}),
    ("graph_transformer", "eager", {}),
    ("graph_transformer", "eager", {"model": "transformer"}),
    ("growing_graph", "eager", {}),
    ("growing_graph", "buckets", {}),
    ("gcn_amp", "fp32", {}),
    ("gcn_amp", "bf16", {}),
    ("sparse_csr", "eager", {}),
    ("sparse_csr", "csr-eager", {}),
    ("tuple_keys", "before", {}),
    ("tuple_keys", "after", {}),
    ("edge_types", "before", {}),
    ("edge_types", "after", {}),
    ("cuda_graphs", "before", {}),
    ("cuda_graphs", "padded", {}),
    ("int_attribute", "before", {}),
    ("int_attribute", "after", {}),
    ("int_attribute", "after-tensor", {}),
    ("syncs", "after", {}),
    ("graph_breaks", "after", {}),
    ("float_lr", "before", {}),
    ("float_lr", "after", {}),
    ("float_lr", "after", {"optimizer": "adam"}),
    ("shapes", "before", {}),
    ("shapes", "padded", {}),
    ("self_loops", "after", {}),
    ("self_loops", "after", {"model": "gat", "hidden": 16}),
    *(("pipeline", "5-no-syncs", {"task": task}) for task in ("churn", "sales", "purchase")),
]

# Recipe, variant, parameters; then how often a step does what at which of its lines, known by a part of it.
LOOPS_IN_CORA = ["1 sync index: self.first(", "1 sync index: self.second(", "1 break index: self.first("]
LOOPS_IN_CORA += ["1 break index: self.second("]
LOOPS_IN_ONE_LINE = ["2 sync index: self.second(self.first(", "2 break index: self.second(self.first("]
METRIC = ["1 sync _local_scalar_dense: right_on_host += int("]
JUDGED = ["1 sync _local_scalar_dense: judged_on_host += float("]
MEAN = ["2 sync _local_scalar_dense: if torch.isnan(part).any():"]
MASK = ["2 sync index: out[known], y[known]", "1 sync index_put: loss.backward()"]
REPEAT = ["1 sync repeat_interleave: repeat_interleave(counts, 0, **size)"]
REPEAT_INSIDE = [*REPEAT, "1 break repeat_interleave: repeat_interleave(counts, 0, **size)"]
RELATIONS = [
    f"{count} {kind} {operator}: self.{layer}(x, *edges)"
    for layer in ("first", "second")
    for count, kind, operator in (
        (8, "sync", "index"),  # each relation's edges are picked by a mask
        (1, "sync", "_local_scalar_dense"),
        (8, "break", "index"),
        (2, "break", "_local_scalar_dense"),
    )
]
IN_FORWARD = [
    ("_local_scalar_dense", "scale.item()"),
    ("_local_scalar_dense", "softmax(self.score(x)"),
    ("_local_scalar_dense", "global_mean_pool("),
    ("_local_scalar_dense", "degree(data.edge_index[1]"),
    ("repeat_interleave", "repeat_interleave(data.counts"),
]
BREAKS = [f"1 {kind} {operator}: {line}" for kind in ("sync", "break") for operator, line in IN_FORWARD]
BREAKS += [f"2 {kind} _local_scalar_dense: to_dense_batch(x, data.graph)" for kind in ("sync", "break")]
BREAKS += ["1 copy _to_copy: to_dense_batch(x, data.graph)", *MASK, "2 break index: out[known], y[known]"]
DENSE = "x = layer(x, edge_index, batch)"
UNSIZED = [f"2 {kind} _local_scalar_dense: {DENSE}" for kind in ("sync", "break")]
UNSIZED += [f"1 {kind}: {DENSE}" for kind in ("sync index", "break index", "copy _to_copy")]
UNSIZED += ["1 sync index_put: loss.backward()"]
SCALER = ["1 sync _local_scalar_dense: scaler.step(optimizer)"]
COPIES = ["10 copy _to_copy: part.to(device"]
PLANTED = [
    ("gcn_cora", "eager", {}, LOOPS_IN_CORA),
    ("gat_pubmed", "eager", {}, LOOPS_IN_CORA),
    ("gcn_sampled", "sampled", {}, LOOPS_IN_ONE_LINE),
    ("gcn_sampled", "baseline", {}, LOOPS_IN_ONE_LINE),
    ("gcn_sampled", "sampled-amp-compiled", {}, SCALER),
    ("rgcn_mag", "eager", {}, RELATIONS),
    ("gin_molecules", "unsized", {}, [f"1 {kind} _local_scalar_dense: global_add_pool" for kind in ("sync", "break")]),
    ("gcn_amp", "fp16", {}, SCALER),
    ("graph_transformer", "unsized", {"layers": 1}, UNSIZED),
    ("syncs", "before", {}, [*METRIC, *MEAN, *MASK, *REPEAT_INSIDE]),
    ("syncs", "metric", {}, METRIC),
    ("syncs", "mean-metric", {}, MEAN),
    ("syncs", "mask", {}, MASK),
    ("syncs", "repeat", {}, REPEAT_INSIDE),
    ("self_loops", "before", {}, LOOPS_IN_ONE_LINE),
    ("self_loops", "before", {"model": "gat", "hidden": 16}, LOOPS_IN_ONE_LINE),
    ("graph_breaks", "before", {}, BREAKS),
    ("pipeline", "0-naive", {}, [*JUDGED, *MEAN, *MASK, "2 break index: out[known], y[known]", *REPEAT, *COPIES]),
    ("pipeline", "4-no-cudagraphs", {}, [*JUDGED, *MEAN, *REPEAT, *COPIES]),
    ("pipeline", "4-no-cudagraphs", {"task": "sales"}, [*JUDGED, *MEAN, *REPEAT, *COPIES]),
]


@pytest.fixture(autouse=True)
def no_torchmetrics(monkeypatch):
    """Recipes use it where it is installed; the lines of their own stand-in are what is expected here."""
    monkeypatch.setitem(sys.modules, "torchmetrics", None)


@pytest.mark.parametrize(("name", "variant", "params"), CLEAN, ids=str)
def test_runs_clean(name, variant, params):
    assert seen(audited(name, variant, **params)) == []


@pytest.mark.parametrize(("name", "variant", "params", "planted"), PLANTED, ids=str)
def test_waits_where_it_is_meant_to(name, variant, params, planted):
    rows = seen(audited(name, variant, **params))
    expected = [each.split(": ", 1) for each in planted]
    assert sorted(what for what, _ in rows) == sorted(what for what, _ in expected)
    for what, part in expected:
        assert any(part in line for each, line in rows if each == what), (what, part, rows)


def test_drawing_negatives_within_goes_to_the_host_and_back():
    result = audited("sage_collab", "drawn-inside")
    assert {row.kind for row in result.rows} == {"sync", "copy", "break"}
    assert {source(row) for row in result.rows} == {"others = negative_sampling(edge_index, len(x), pairs.size(1))"}


@pytest.mark.parametrize(
    ("name", "variant", "params"),
    [
        ("syncs", "before", {}),
        ("pipeline", "5-no-syncs", {}),
        ("edge_types", "after", {}),
        ("gcn_cora", "eager-norm", {}),
        ("gin_molecules", "eager", {}),
        ("sage_products", "eager", {}),
        ("relational", "eager", {}),
        ("sparse_csr", "csr-eager", {}),
        ("gcn_amp", "bf16", {}),
        ("gcn_amp", "fp16", {}),
    ],
    ids=str,
)
def test_the_losses_are_those_of_a_plain_run(monkeypatch, name, variant, params):
    on_gpu = audited(name, variant, **params).losses
    # On a GPU, optimizers go through all parameters at once; on a CPU, only on request.
    for optimizer in ("adam", "sgd"):
        module = importlib.import_module(f"torch.optim.{optimizer}")
        monkeypatch.setattr(module, "_default_to_fused_or_foreach", lambda *_, **__: (False, True))
    plain = train(
        name, f"{variant}:compile=false", len(on_gpu), **{**SMALL.get(name, {}), **PATHOLOGIES.get(name, {}), **params}
    )
    assert on_gpu == plain.losses


def test_no_size_of_a_cuda_graph_comes_again():
    """Otherwise the steady steps replay what the first ones recorded, and the pathology does not show."""
    graphs = load("cuda_graphs")
    batches = [graphs.generate(100, at) for at in range(500)]
    assert len({(batch.num_nodes, batch.num_edges) for batch in batches}) == 500
    assert len({tuple(graphs.fill_up(batch, 111, 401).edge_index.shape) for batch in batches}) == 1
    tables = [load("pipeline").generate("churn", 400, at)[0] for at in range(500)]
    assert len({tuple(len(rows) for rows in table.values()) for table in tables}) == 500


def test_no_recipe_is_left_out():
    """A recipe that mixes devices must not go unnoticed."""
    files = {path.stem for folder in (RECIPES, RECIPES / "pathologies") for path in folder.glob("*.py")}
    assert files == {name for name, *_ in [*CLEAN, *PLANTED]}


def audited(name: str, variant: str, steps: int = 2, **params) -> Audit:
    """Audit `steps` steps after the first, then inference and evaluation if the recipe has them."""
    params = {**SMALL.get(name, {}), **PATHOLOGIES.get(name, {}), **params}
    if "root" in load(name).PARAMS:
        params = {"root": NOWHERE, **params}
    result = audit(Job(stage="audit", program=str(path_of(name)), label=variant, params=params, steps=steps), [])
    assert result.outcome == "ok", result.traceback or result.error
    assert len(result.audit.losses) == steps + 1
    return result.audit


def seen(result: Audit) -> list[tuple[str, str]]:
    """`("2 sync index", "loss = cross_entropy(out[known], y[known])")`, with equal lines added up."""
    counts: dict[tuple[str, str, str], float] = {}
    for row in result.rows:
        key = (row.kind, row.operator.removeprefix("aten::"), source(row))
        counts[key] = counts.get(key, 0) + row.per_step
    return [(f"{count:g} {kind} {operator}", line) for (kind, operator, line), count in counts.items()]


def source(row) -> str:
    return linecache.getline(row.file, row.line).strip()
