"""In the form of PyG's examples/gat.py: attention, dropout 0.6, the best validation accuracy."""

import argparse
import statistics
import time

import torch
import torch.nn.functional as F
import torch_geometric.transforms as T
from steplog import StepLog
from torch_geometric import seed_everything
from torch_geometric.datasets import FakeDataset
from torch_geometric.nn import GATConv

parser = argparse.ArgumentParser()
parser.add_argument("--hidden_channels", type=int, default=8)
parser.add_argument("--heads", type=int, default=4)
parser.add_argument("--lr", type=float, default=0.005)
parser.add_argument("--epochs", type=int, default=200)
parser.add_argument("--compile", action="store_true")
parser.add_argument("--backend", default="inductor")
args = parser.parse_args()

seed_everything(3)
transform = T.Compose([T.NormalizeFeatures(), T.RandomNodeSplit(num_val=80, num_test=120)])
dataset = FakeDataset(1, avg_num_nodes=300, avg_degree=4, num_channels=32, num_classes=4, edge_dim=0)
data = transform(dataset[0])


class GAT(torch.nn.Module):
    def __init__(self, in_channels, hidden_channels, out_channels, heads):
        super().__init__()
        self.conv1 = GATConv(in_channels, hidden_channels, heads, dropout=0.6)
        # On the Pubmed dataset, use `heads` output heads in `conv2`.
        self.conv2 = GATConv(hidden_channels * heads, out_channels, heads=1, concat=False, dropout=0.6)

    def forward(self, x, edge_index):
        x = F.dropout(x, p=0.6, training=self.training)
        x = F.elu(self.conv1(x, edge_index))
        x = F.dropout(x, p=0.6, training=self.training)
        return self.conv2(x, edge_index)


model = GAT(dataset.num_features, args.hidden_channels, dataset.num_classes, args.heads)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, weight_decay=5e-4)
if args.compile:
    model.compile(backend=args.backend)


def train():
    model.train()
    optimizer.zero_grad()
    out = model(data.x, data.edge_index)
    loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
    loss.backward()
    optimizer.step()
    return float(loss)


@torch.no_grad()
def test():
    model.eval()
    pred = model(data.x, data.edge_index).argmax(dim=-1)
    masks = (data.train_mask, data.val_mask, data.test_mask)
    return [int((pred[mask] == data.y[mask]).sum()) / int(mask.sum()) for mask in masks]


log = StepLog()
times = []
best_val_acc = test_acc = 0
for _epoch in range(1, args.epochs + 1):
    start = time.time()
    log(train())
    train_acc, val_acc, tmp_test_acc = test()
    if val_acc > best_val_acc:
        best_val_acc = val_acc
        test_acc = tmp_test_acc
    times.append(time.time() - start)
print(f"Median time per epoch: {statistics.median(times):.4f}s, test: {test_acc:.4f}")
