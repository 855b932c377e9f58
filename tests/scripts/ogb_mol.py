"""In the form of OGB's examples/graphproppred/mol/main_pyg.py: several tasks, missing labels, tqdm, the best saved."""

import argparse
import os

import torch
from steplog import StepLog
from torch import nn, optim
from torch_geometric import seed_everything
from torch_geometric.datasets import FakeDataset
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINEConv, global_mean_pool
from tqdm import tqdm

cls_criterion = torch.nn.BCEWithLogitsLoss()


class GNN(nn.Module):
    def __init__(self, num_tasks, num_layer, emb_dim):
        super().__init__()
        self.atom_encoder = nn.Linear(9, emb_dim)
        self.convs = nn.ModuleList(
            GINEConv(nn.Sequential(nn.Linear(emb_dim, emb_dim), nn.ReLU(), nn.Linear(emb_dim, emb_dim)), edge_dim=3)
            for _ in range(num_layer)
        )
        self.graph_pred_linear = nn.Linear(emb_dim, num_tasks)

    def forward(self, batched_data):
        x, edge_index, edge_attr = batched_data.x, batched_data.edge_index, batched_data.edge_attr
        h = self.atom_encoder(x)
        for conv in self.convs:
            h = h + conv(h, edge_index, edge_attr).relu()
        return self.graph_pred_linear(global_mean_pool(h, batched_data.batch))


def train(model, loader, optimizer, log):
    model.train()
    for batch in tqdm(loader, desc="Iteration", disable=None):
        if batch.x.shape[0] == 1 or batch.batch[-1] == 0:
            continue
        pred = model(batch)
        optimizer.zero_grad()
        # ignore nan targets (unlabeled) when computing training loss.
        is_labeled = batch.y == batch.y
        loss = cls_criterion(pred.to(torch.float32)[is_labeled], batch.y.to(torch.float32)[is_labeled])
        loss.backward()
        optimizer.step()
        log(loss)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    right = [((model(batch) > 0) == (batch.y > 0.5)).float().mean() for batch in loader]
    return torch.stack(right).mean().item()


def main():
    parser = argparse.ArgumentParser(description="GNN baselines on ogbgmol* data with Pytorch Geometrics")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--filename", type=str, default="result.pt")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--backend", default="inductor")
    args = parser.parse_args()
    seed_everything(13)
    graphs = [*FakeDataset(192, avg_num_nodes=18, avg_degree=3, num_channels=9, edge_dim=3, task="graph")]
    for graph in graphs:
        graph.y = (torch.rand(1, 3) < graph.x.mean() / 3).float().masked_fill(torch.rand(1, 3) < 0.1, float("nan"))
    train_loader = DataLoader(graphs[:160], batch_size=args.batch_size, shuffle=True)
    valid_loader = DataLoader(graphs[160:], batch_size=args.batch_size)
    model = GNN(num_tasks=3, num_layer=2, emb_dim=32)
    if args.compile:
        model.compile(backend=args.backend, dynamic=True)
    optimizer = optim.Adam(model.parameters(), lr=0.001)
    valid_curve, log = [], StepLog()
    for epoch in range(1, args.epochs + 1):
        print(f"=====Epoch {epoch}")
        print("Training...")
        train(model, train_loader, optimizer, log)
        print("Evaluating...")
        valid_curve.append(evaluate(model, valid_loader))
        if valid_curve[-1] == max(valid_curve):
            torch.save({"epoch": epoch, "model": model.state_dict()}, "best.pt")
    print("Finished training!")
    torch.save({"Val": valid_curve}, os.path.join(".", args.filename))


if __name__ == "__main__":
    main()
