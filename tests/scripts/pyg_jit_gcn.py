"""In the form of PyG's examples/jit/gcn.py: torch.jit.script around the model, saved at the end."""

import argparse
import warnings

import torch
import torch.nn.functional as F
from steplog import StepLog
from torch_geometric import seed_everything
from torch_geometric.datasets import FakeDataset
from torch_geometric.nn import GCNConv
from torch_geometric.transforms import GCNNorm

warnings.filterwarnings("ignore", category=DeprecationWarning)
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=200)
args = parser.parse_args()

seed_everything(10)
dataset = FakeDataset(1, avg_num_nodes=400, avg_degree=5, num_channels=32, num_classes=4, edge_dim=0)
data = GCNNorm()(dataset[0])
data.train_mask = torch.rand(data.num_nodes) < 0.5


class GCN(torch.nn.Module):
    def __init__(self, in_channels: int, out_channels: int):
        super().__init__()
        self.conv1 = GCNConv(in_channels, 16, normalize=False)
        self.conv2 = GCNConv(16, out_channels, normalize=False)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, edge_weight: torch.Tensor) -> torch.Tensor:
        x = F.dropout(x, p=0.5, training=self.training)
        x = self.conv1(x, edge_index, edge_weight).relu()
        x = F.dropout(x, p=0.5, training=self.training)
        return self.conv2(x, edge_index, edge_weight).log_softmax(dim=1)


model = GCN(dataset.num_features, dataset.num_classes)
model = torch.jit.script(model)
optimizer = torch.optim.Adam(
    [dict(params=model.conv1.parameters(), weight_decay=5e-4), dict(params=model.conv2.parameters(), weight_decay=0)],
    lr=0.01,
)


def train():
    model.train()
    optimizer.zero_grad()
    out = model(data.x, data.edge_index, data.edge_weight)[data.train_mask]
    loss = F.nll_loss(out, data.y[data.train_mask])
    loss.backward()
    optimizer.step()
    return loss


@torch.no_grad()
def test():
    model.eval()
    pred = model(data.x, data.edge_index, data.edge_weight).argmax(dim=-1)
    return float((pred == data.y)[~data.train_mask].float().mean())


log = StepLog()
for _epoch in range(1, args.epochs + 1):
    log(train())
    accuracy = test()
print(f"Test: {accuracy:.4f}")
torch.jit.save(model, "gcn.pt")
