"""In the form of PyG's examples/mutag_gin.py: graph classification, every batch of another size."""

import argparse

import torch
import torch.nn.functional as F
from steplog import StepLog
from torch_geometric import seed_everything
from torch_geometric.datasets import FakeDataset
from torch_geometric.loader import DataLoader
from torch_geometric.nn import MLP, GINConv, global_add_pool

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=16)
parser.add_argument("--hidden_channels", type=int, default=32)
parser.add_argument("--num_layers", type=int, default=3)
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--epochs", type=int, default=40)
parser.add_argument("--compile", action="store_true")
parser.add_argument("--backend", default="inductor")
args = parser.parse_args()


class GIN(torch.nn.Module):
    def __init__(self, in_channels, hidden_channels, out_channels, num_layers):
        super().__init__()
        self.convs = torch.nn.ModuleList()
        for _ in range(num_layers):
            self.convs.append(GINConv(MLP([in_channels, hidden_channels, hidden_channels]), train_eps=False))
            in_channels = hidden_channels
        self.mlp = MLP([hidden_channels, hidden_channels, out_channels], norm=None, dropout=0.5)

    def forward(self, x, edge_index, batch, batch_size):
        for conv in self.convs:
            x = conv(x, edge_index).relu()
        # Pass the batch size to avoid CPU communication/graph breaks:
        x = global_add_pool(x, batch, size=batch_size)
        return self.mlp(x)


seed_everything(7)
dataset = FakeDataset(192, avg_num_nodes=30, num_channels=16, num_classes=4, task="graph")
train_loader = DataLoader(dataset[:160], batch_size=args.batch_size, shuffle=True)
test_loader = DataLoader(dataset[160:], batch_size=args.batch_size)
model = GIN(dataset.num_features, args.hidden_channels, dataset.num_classes, args.num_layers)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
if args.compile:
    model.compile(backend=args.backend)


def train():
    model.train()
    total_loss = 0
    for data in train_loader:
        optimizer.zero_grad()
        out = model(data.x, data.edge_index, data.batch, data.batch_size)
        loss = F.cross_entropy(out, data.y)
        loss.backward()
        optimizer.step()
        log(loss)
        total_loss += float(loss) * data.num_graphs
    return total_loss / len(train_loader.dataset)


@torch.no_grad()
def test(loader):
    model.eval()
    total_correct = 0
    for data in loader:
        out = model(data.x, data.edge_index, data.batch, data.batch_size)
        total_correct += int((out.argmax(dim=-1) == data.y).sum())
    return total_correct / len(loader.dataset)


log = StepLog()
for epoch in range(1, args.epochs + 1):
    loss = train()
    print(f"Epoch: {epoch}, mean: {loss:.4f}, Train: {test(train_loader):.4f}, Test: {test(test_loader):.4f}")
