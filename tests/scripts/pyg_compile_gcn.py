"""In the form of PyG's examples/compile/gcn.py: normalised beforehand, `torch.compile` around the model."""

import argparse
import statistics
import time

import torch
import torch.nn.functional as F
import torch_geometric.transforms as T
from steplog import StepLog
from torch_geometric import seed_everything
from torch_geometric.datasets import FakeDataset
from torch_geometric.nn import GCNConv


class GCN(torch.nn.Module):
    def __init__(self, in_channels, hidden_channels, out_channels):
        super().__init__()
        self.conv1 = GCNConv(in_channels, hidden_channels, normalize=False)
        self.conv2 = GCNConv(hidden_channels, out_channels, normalize=False)

    def forward(self, x, edge_index, edge_weight):
        x = F.dropout(x, p=0.5, training=self.training)
        x = self.conv1(x, edge_index, edge_weight).relu()
        x = F.dropout(x, p=0.5, training=self.training)
        return self.conv2(x, edge_index, edge_weight)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--backend", default="inductor")
    args = parser.parse_args()

    seed_everything(12345)
    dataset = FakeDataset(1, avg_num_nodes=800, num_channels=64, num_classes=6, transform=T.GCNNorm())
    data = dataset[0]
    train_mask = torch.rand(data.num_nodes) < 0.3

    model = GCN(dataset.num_features, 16, 6)
    # Compile the model into an optimized version:
    model = torch.compile(model, backend=args.backend)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)

    def train():
        model.train()
        optimizer.zero_grad()
        out = model(data.x, data.edge_index, data.edge_weight)
        loss = F.cross_entropy(out[train_mask], data.y[train_mask])
        loss.backward()
        optimizer.step()
        return loss

    @torch.no_grad()
    def test():
        model.eval()
        pred = model(data.x, data.edge_index, data.edge_weight).argmax(dim=-1)
        return int((pred[~train_mask] == data.y[~train_mask]).sum()) / int((~train_mask).sum())

    times = []
    log = StepLog()
    for _ in range(args.epochs):
        start = time.perf_counter()
        log(train())
        test()
        times.append(time.perf_counter() - start)
    print(f"Median time per epoch: {statistics.median(times):.4f}s, accuracy: {test():.4f}")


if __name__ == "__main__":
    main()
