"""In the form of PyG's examples/hetero/to_hetero_mag.py: to_hetero, lazy sizes, one full graph of several types."""

import argparse

import torch
import torch.nn.functional as F
import torch_geometric.transforms as T
from steplog import StepLog
from torch_geometric import seed_everything
from torch_geometric.datasets import FakeHeteroDataset
from torch_geometric.nn import Linear, SAGEConv, to_hetero

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=100)
parser.add_argument("--compile", action="store_true")
parser.add_argument("--backend", default="inductor")
args = parser.parse_args()


class GNN(torch.nn.Module):
    def __init__(self, hidden_channels, out_channels):
        super().__init__()
        self.conv1 = SAGEConv((-1, -1), hidden_channels)
        self.conv2 = SAGEConv((-1, -1), hidden_channels)
        self.lin = Linear(-1, out_channels)

    def forward(self, x, edge_index):
        x = self.conv1(x, edge_index).relu()
        x = self.conv2(x, edge_index).relu()
        return self.lin(x)


seed_everything(6)
dataset = FakeHeteroDataset(1, num_node_types=2, num_edge_types=4, avg_num_nodes=120, avg_degree=4, num_channels=16)
data = T.ToUndirected()(dataset[0])
target = next(store._key for store in data.node_stores if "y" in store)
num_classes = int(data[target].y.max()) + 1
train_mask = torch.rand(data[target].num_nodes) < 0.6
model = to_hetero(GNN(16, num_classes), data.metadata(), aggr="sum")


@torch.no_grad()
def init_params():
    # Initialize lazy parameters via forwarding a single batch to the model:
    model(data.x_dict, data.edge_index_dict)


init_params()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
if args.compile:
    model.compile(backend=args.backend)


def train():
    model.train()
    optimizer.zero_grad()
    out = model(data.x_dict, data.edge_index_dict)[target]
    loss = F.cross_entropy(out[train_mask], data[target].y[train_mask])
    loss.backward()
    optimizer.step()
    return float(loss)


@torch.no_grad()
def test():
    model.eval()
    pred = model(data.x_dict, data.edge_index_dict)[target].argmax(dim=-1)
    return float((pred[~train_mask] == data[target].y[~train_mask]).float().mean())


log = StepLog()
for _epoch in range(1, args.epochs + 1):
    log(train())
    accuracy = test()
print(f"Val: {accuracy:.4f}")
