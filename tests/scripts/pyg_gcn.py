"""In the form of PyG's examples/gcn.py: two parameter groups, evaluation after each epoch."""

import argparse
import os

import torch
import torch.nn.functional as F
from steplog import StepLog
from torch_geometric import seed_everything
from torch_geometric.datasets import FakeDataset, Planetoid
from torch_geometric.nn import GCNConv

parser = argparse.ArgumentParser()
parser.add_argument("--hidden_channels", type=int, default=16)
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--epochs", type=int, default=200)
parser.add_argument("--compile", action="store_true")
parser.add_argument("--backend", default="inductor")
args = parser.parse_args()

seed_everything(1)
if root := os.environ.get("PLANETOID_ROOT"):
    data = Planetoid(root, "Cora")[0]
else:
    data = FakeDataset(1, avg_num_nodes=600, num_channels=64, num_classes=5)[0]
    order = torch.randperm(data.num_nodes)
    data.train_mask = torch.zeros(data.num_nodes, dtype=torch.bool).index_fill(0, order[:100], True)
    data.val_mask, data.test_mask = ~data.train_mask, ~data.train_mask


class GCN(torch.nn.Module):
    def __init__(self, in_channels, hidden_channels, out_channels):
        super().__init__()
        self.conv1 = GCNConv(in_channels, hidden_channels, cached=True)
        self.conv2 = GCNConv(hidden_channels, out_channels, cached=True)

    def forward(self, x, edge_index, edge_weight=None):
        x = F.dropout(x, p=0.5, training=self.training)
        x = self.conv1(x, edge_index, edge_weight).relu()
        x = F.dropout(x, p=0.5, training=self.training)
        return self.conv2(x, edge_index, edge_weight)


model = GCN(data.num_features, args.hidden_channels, int(data.y.max()) + 1)
optimizer = torch.optim.Adam(
    [
        dict(params=model.conv1.parameters(), weight_decay=5e-4),
        dict(params=model.conv2.parameters(), weight_decay=0),
    ],
    lr=args.lr,
)
if args.compile:
    model.compile(backend=args.backend)


def train():
    model.train()
    optimizer.zero_grad()
    out = model(data.x, data.edge_index, data.edge_attr)
    loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
    loss.backward()
    optimizer.step()
    return float(loss)


@torch.no_grad()
def test():
    model.eval()
    pred = model(data.x, data.edge_index, data.edge_attr).argmax(dim=-1)
    return [float((pred[m] == data.y[m]).float().mean()) for m in (data.train_mask, data.val_mask, data.test_mask)]


log = StepLog()
best_val_acc = 0
for _epoch in range(args.epochs):
    log(train())
    train_acc, val_acc, tmp_test_acc = test()
    if val_acc > best_val_acc:
        best_val_acc, test_acc = val_acc, tmp_test_acc
print(f"Test: {test_acc:.4f}")
