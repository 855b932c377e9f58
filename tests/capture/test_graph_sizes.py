"""Nodes and edges are recognised by what batches and arguments look like, and recorded for each step."""

from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch
from torch_geometric.data import Batch, Data, HeteroData

from tests.capture.capturing import COMPILED, perform
from tests.capture.small_scripts import script
from tracekit.capture.child.graph_log import GraphLog, graph_size
from tracekit.run import GraphSize, GraphSizes

X, EDGES = torch.zeros(5, 3), torch.zeros(2, 9, dtype=torch.long)
WORDS = torch.zeros(2, 64, dtype=torch.long)
RATES = ("user", "rates", "movie")
ONE = GraphSize({"": 5}, {"": 9})
TYPED = GraphSize({"user": 5, "movie": 7}, {"user__rates__movie": 9})


def hetero():
    data = HeteroData()
    data["user"].x, data["movie"].x = X, torch.zeros(7, 2)
    data[RATES].edge_index = EDGES
    return data


@pytest.mark.parametrize(
    ("given", "named", "size"),
    [
        pytest.param((Data(x=X, edge_index=EDGES),), {}, ONE, id="Data"),
        pytest.param((Data(edge_index=EDGES, num_nodes=5),), {}, ONE, id="Data without features"),
        pytest.param((Batch.from_data_list([Data(x=X, edge_index=EDGES)] * 2),), {}, ONE.plus(ONE), id="Batch"),
        pytest.param((hetero(),), {}, TYPED, id="HeteroData"),
        pytest.param((X, EDGES), {}, ONE, id="features and edges"),
        pytest.param((X, EDGES.T.contiguous().T, torch.ones(9)), {}, ONE, id="and weights"),
        pytest.param(((X, torch.zeros(2, 3)), EDGES), {}, ONE, id="sources and targets"),
        pytest.param((), {"x": X, "edge_index": EDGES}, ONE, id="named"),
        pytest.param((), {"edge_index": EDGES}, GraphSize({}, {"": 9}), id="edges alone"),
        pytest.param((X, EDGES.new_ones(5, 5).float().to_sparse()), {}, GraphSize({"": 5}, {"": 25}), id="sparse"),
        pytest.param(({"user": X, "movie": torch.zeros(7, 2)}, {RATES: EDGES}), {}, TYPED, id="dictionaries"),
        pytest.param(
            (({"user": X, "movie": torch.zeros(7, 2)}, {"user": X}), {RATES: EDGES}, X), {}, TYPED, id="tables"
        ),
        pytest.param((SimpleNamespace(num_nodes=lambda: 5, num_edges=lambda: 9),), {}, ONE, id="DGL"),
        pytest.param(([X, EDGES],), {}, ONE, id="a list"),
        pytest.param((WORDS, WORDS), {}, None, id="two rows of words"),
        pytest.param((X, X), {}, None, id="no graph"),
        pytest.param((X,), {"edge_label_index": EDGES}, None, id="only edges to predict"),
    ],
)
def test_a_graph_is_known_by_its_looks(given, named, size):
    assert graph_size(given, named) == size


def test_what_cannot_be_looked_at_stops_no_training():
    class Odd:
        @property
        def edge_index(self):
            raise RuntimeError("no")

    log = GraphLog()
    assert not log.saw(Odd())
    log.step_ended()
    assert log.first(1) is None


def test_types_and_steps_without_a_graph():
    assert GraphSizes.of([TYPED, None, ONE], by_type=True) == GraphSizes(
        nodes=[12, None, 5],
        edges=[9, None, 9],
        node_types={"user": [5, None, 0], "movie": [7, None, 0]},
        edge_types={"user__rates__movie": [9, None, 0]},
    )


TRAINING = """
import torch
from torch_geometric.nn import SAGEConv
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = SAGEConv(4, 1)
    def forward(self, x, edge_index):
        return self.layer(x, edge_index)
net = Net()
optimizer = torch.optim.Adam(net.parameters())
for at in range(300):
    optimizer.zero_grad()
    nodes = 10 + at
    net(torch.randn(nodes, 4), torch.randint(nodes, (2, 3 * nodes))).square().mean().backward()
    optimizer.step()
    with torch.no_grad():
        net(torch.randn(7, 4), torch.randint(7, (2, 7)))
"""


def test_a_scripts_training_calls_are_recorded_and_its_graphs_stay_its_own(tmp_path):
    result = perform(
        tmp_path, "profile", script(tmp_path, TRAINING, head=""), requested=COMPILED, steps=4, is_script=True
    )
    nodes = result.graphs.nodes
    assert nodes == [*range(nodes[0], nodes[0] + len(nodes))]  # of each step, without those of the evaluation
    assert result.graphs.edges == [3 * each for each in nodes]
    assert [each.kind for each in result.ledger.compiles].count("recompile") == 2  # any size; no gradients


RECIPE = """
from types import SimpleNamespace
import torch
def setup(ctx):
    weight = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    def step(batch):
        optimizer.zero_grad()
        loss = (weight * batch[0]).square().sum()
        loss.backward()
        optimizer.step()
        return loss.detach()
    batches = [torch.full((1,), float(at)) for at in range(40)]
    return SimpleNamespace(step=step, batches=batches, graph_size=lambda batch: {"edges": int(batch[0])})
"""


def test_a_recipe_may_say_itself_how_large_its_batches_are(tmp_path):
    (tmp_path / "recipe.py").write_text(RECIPE)
    result = perform(tmp_path, "measure", tmp_path / "recipe.py", round=1)
    edges = result.graphs.edges
    assert len(edges) == result.measured.steps
    assert all((after - before) % 40 == 1 for before, after in pairwise(edges))
