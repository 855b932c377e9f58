"""In the form of PyG's examples/link_pred.py: encode and decode are called, not the model; negatives in the step."""

import argparse

import torch
import torch_geometric.transforms as T
from steplog import StepLog
from torch_geometric import seed_everything
from torch_geometric.datasets import FakeDataset
from torch_geometric.nn import GCNConv
from torch_geometric.utils import negative_sampling

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=100)
parser.add_argument("--compile", action="store_true")
parser.add_argument("--backend", default="inductor")
args = parser.parse_args()

seed_everything(5)
transform = T.Compose(
    [
        T.NormalizeFeatures(),
        T.RandomLinkSplit(num_val=0.05, num_test=0.1, is_undirected=True, add_negative_train_samples=False),
    ]
)
dataset = FakeDataset(1, avg_num_nodes=300, avg_degree=4, num_channels=32, edge_dim=0, transform=transform)
train_data, val_data, test_data = dataset[0]


class Net(torch.nn.Module):
    def __init__(self, in_channels, hidden_channels, out_channels):
        super().__init__()
        self.conv1 = GCNConv(in_channels, hidden_channels)
        self.conv2 = GCNConv(hidden_channels, out_channels)

    def encode(self, x, edge_index):
        x = self.conv1(x, edge_index).relu()
        return self.conv2(x, edge_index)

    def decode(self, z, edge_label_index):
        return (z[edge_label_index[0]] * z[edge_label_index[1]]).sum(dim=-1)


model = Net(dataset.num_features, 32, 16)
optimizer = torch.optim.Adam(params=model.parameters(), lr=0.01)
criterion = torch.nn.BCEWithLogitsLoss()
if args.compile:  # the model itself is never called
    model.conv1.compile(backend=args.backend)
    model.conv2.compile(backend=args.backend)


def train():
    model.train()
    optimizer.zero_grad()
    z = model.encode(train_data.x, train_data.edge_index)
    # We perform a new round of negative sampling for every training epoch:
    neg_edge_index = negative_sampling(
        edge_index=train_data.edge_index,
        num_nodes=train_data.num_nodes,
        num_neg_samples=train_data.edge_label_index.size(1),
        method="sparse",
    )
    edge_label_index = torch.cat([train_data.edge_label_index, neg_edge_index], dim=-1)
    edge_label = torch.cat([train_data.edge_label, train_data.edge_label.new_zeros(neg_edge_index.size(1))], dim=0)
    out = model.decode(z, edge_label_index).view(-1)
    loss = criterion(out, edge_label)
    loss.backward()
    optimizer.step()
    return loss


@torch.no_grad()
def test(data):
    model.eval()
    z = model.encode(data.x, data.edge_index)
    out = model.decode(z, data.edge_label_index).view(-1).sigmoid()
    return float(((out > 0.5) == data.edge_label.bool()).float().mean())


log = StepLog()
best_val = final_test = 0
for _epoch in range(1, args.epochs + 1):
    log(train())
    val, tmp_test = test(val_data), test(test_data)
    if val > best_val:
        best_val, final_test = val, tmp_test
print(f"Final Test: {final_test:.4f}")
