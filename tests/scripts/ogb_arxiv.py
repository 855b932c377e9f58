"""In the form of OGB's examples/nodeproppred/arxiv/gnn.py: several runs, each with a new optimizer; batch norm."""

import argparse

import torch
import torch.nn.functional as F
from steplog import StepLog
from torch_geometric import seed_everything
from torch_geometric.datasets import FakeDataset
from torch_geometric.nn import GCNConv
from torch_geometric.transforms import GCNNorm


class GCN(torch.nn.Module):
    def __init__(self, in_channels, hidden_channels, out_channels, num_layers, dropout):
        super().__init__()
        self.convs, self.bns = torch.nn.ModuleList(), torch.nn.ModuleList()
        for i in range(num_layers):
            ends = (
                in_channels if i == 0 else hidden_channels,
                out_channels if i == num_layers - 1 else hidden_channels,
            )
            self.convs.append(GCNConv(*ends, normalize=False))
            self.bns.append(torch.nn.BatchNorm1d(hidden_channels))
        self.dropout = dropout

    def reset_parameters(self):
        for layer in (*self.convs, *self.bns):
            layer.reset_parameters()

    def forward(self, x, edge_index, edge_weight):
        for conv, bn in zip(self.convs[:-1], self.bns, strict=False):
            x = F.dropout(F.relu(bn(conv(x, edge_index, edge_weight))), p=self.dropout, training=self.training)
        return self.convs[-1](x, edge_index, edge_weight).log_softmax(dim=-1)


def train(model, data, train_idx, optimizer):
    model.train()
    optimizer.zero_grad()
    out = model(data.x, data.edge_index, data.edge_weight)[train_idx]
    loss = F.nll_loss(out, data.y[train_idx])
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def test(model, data, split_idx):
    model.eval()
    y_pred = model(data.x, data.edge_index, data.edge_weight).argmax(dim=-1)
    return tuple(float((y_pred[idx] == data.y[idx]).float().mean()) for idx in split_idx.values())


def main():
    parser = argparse.ArgumentParser(description="OGBN-Arxiv (GNN)")
    parser.add_argument("--log_steps", type=int, default=1)
    parser.add_argument("--num_layers", type=int, default=3)
    parser.add_argument("--hidden_channels", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--backend", default="inductor")
    args = parser.parse_args()
    print(args)
    seed_everything(11)
    dataset = FakeDataset(1, avg_num_nodes=500, avg_degree=6, num_channels=32, num_classes=6, edge_dim=0)
    data = GCNNorm()(dataset[0])
    order = torch.randperm(data.num_nodes)
    split_idx = {"train": order[:300], "valid": order[300:400], "test": order[400:]}
    model = GCN(data.num_features, args.hidden_channels, dataset.num_classes, args.num_layers, dropout=0.5)
    if args.compile:
        model.compile(backend=args.backend)
    log = StepLog()
    for run in range(args.runs):
        model.reset_parameters()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for epoch in range(1, 1 + args.epochs):
            log(train(model, data, split_idx["train"], optimizer))
            result = test(model, data, split_idx)
            if epoch % args.log_steps == 0:
                train_acc, _, test_acc = result
                print(f"Run: {run + 1:02d}, Epoch: {epoch:02d}, Train: {train_acc:.2%}, Test: {test_acc:.2%}")


if __name__ == "__main__":
    main()
