"""In the form of PyG's examples/cluster_gcn_reddit.py: the graph in parts, some of them in each batch."""

import argparse

import torch
import torch.nn.functional as F
from steplog import StepLog
from torch.nn import ModuleList
from torch_geometric import seed_everything
from torch_geometric.datasets import FakeDataset
from torch_geometric.nn import SAGEConv
from torch_geometric.utils import subgraph

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=15)
parser.add_argument("--parts", type=int, default=24)
parser.add_argument("--compile", action="store_true")
parser.add_argument("--backend", default="inductor")
args = parser.parse_args()

seed_everything(9)
dataset = FakeDataset(1, avg_num_nodes=1000, avg_degree=6, num_channels=32, num_classes=5, edge_dim=0)
data = dataset[0]
data.train_mask = torch.rand(data.num_nodes) < 0.6
part = torch.randint(args.parts, (data.num_nodes,))  # METIS needs pyg-lib


class ClusterLoader(torch.utils.data.DataLoader):
    def __init__(self, **kwargs):
        super().__init__(range(args.parts), collate_fn=self.collate, **kwargs)

    def collate(self, parts):
        nodes = torch.isin(part, torch.tensor(parts)).nonzero().view(-1)
        edge_index, _ = subgraph(nodes, data.edge_index, relabel_nodes=True, num_nodes=data.num_nodes)
        return data.x[nodes], edge_index, data.y[nodes], data.train_mask[nodes]


class Net(torch.nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.convs = ModuleList([SAGEConv(in_channels, 32), SAGEConv(32, out_channels)])

    def forward(self, x, edge_index):
        for i, conv in enumerate(self.convs):
            x = conv(x, edge_index)
            if i != len(self.convs) - 1:
                x = F.dropout(F.relu(x), p=0.5, training=self.training)
        return F.log_softmax(x, dim=-1)


train_loader = ClusterLoader(batch_size=3, shuffle=True)
model = Net(dataset.num_features, dataset.num_classes)
if args.compile:
    model.compile(backend=args.backend, dynamic=True)
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)


def train():
    model.train()
    total_loss = total_nodes = 0
    for x, edge_index, y, train_mask in train_loader:
        optimizer.zero_grad()
        out = model(x, edge_index)
        loss = F.nll_loss(out[train_mask], y[train_mask])
        loss.backward()
        optimizer.step()
        log(loss)
        nodes = train_mask.sum().item()
        total_loss += loss.item() * nodes
        total_nodes += nodes
    return total_loss / total_nodes


@torch.no_grad()
def test():  # Inference should be performed on the full graph.
    model.eval()
    y_pred = model(data.x, data.edge_index).argmax(dim=-1)
    return float((y_pred == data.y)[~data.train_mask].float().mean())


log = StepLog()
for epoch in range(1, args.epochs + 1):
    loss = train()
    print(f"Epoch: {epoch:02d}, mean: {loss:.4f}, test: {test():.4f}")
