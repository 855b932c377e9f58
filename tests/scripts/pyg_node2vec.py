"""In the form of PyG's examples/node2vec.py: an embedding of random walks, SparseAdam; the walks are drawn by hand."""

import argparse
import sys

import torch
from steplog import StepLog
from torch_geometric import seed_everything
from torch_geometric.datasets import FakeDataset
from torch_geometric.utils import to_dense_adj


class Node2Vec(torch.nn.Module):
    """Like torch_geometric.nn.Node2Vec, whose walks need pyg-lib or torch-cluster."""

    def __init__(self, edge_index, embedding_dim, walk_length):
        super().__init__()
        adj = to_dense_adj(edge_index)[0] + torch.eye(int(edge_index.max()) + 1)
        self.register_buffer("adj", adj, persistent=False)
        self.embedding = torch.nn.Embedding(adj.size(0), embedding_dim, sparse=True)
        self.walk_length = walk_length

    def forward(self, batch=None):
        return self.embedding.weight if batch is None else self.embedding(batch)

    def loader(self, **kwargs):
        return torch.utils.data.DataLoader(range(self.adj.size(0)), collate_fn=self.sample, **kwargs)

    def sample(self, batch):
        walk = [torch.tensor(batch)]
        for _ in range(self.walk_length):
            walk.append(torch.multinomial(self.adj[walk[-1]], 1).view(-1))
        pos = torch.stack(walk, dim=1)
        return pos, torch.cat([pos[:, :1], torch.randint(self.adj.size(0), (len(batch), self.walk_length))], dim=1)

    def loss(self, pos_rw, neg_rw):
        def score(rw):
            start, rest = self.embedding(rw[:, :1]), self.embedding(rw[:, 1:])
            return (start * rest).sum(dim=-1).view(-1)

        return (
            -torch.log(score(pos_rw).sigmoid() + 1e-15).mean() - torch.log(1 - score(neg_rw).sigmoid() + 1e-15).mean()
        )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--backend", default="inductor")
    args = parser.parse_args()
    seed_everything(4)
    data = FakeDataset(1, avg_num_nodes=400, avg_degree=5, edge_dim=0)[0]
    model = Node2Vec(data.edge_index, embedding_dim=32, walk_length=8)
    num_workers = 2 if sys.platform == "linux" else 0
    loader = model.loader(batch_size=32, shuffle=True, num_workers=num_workers)
    optimizer = torch.optim.SparseAdam(list(model.parameters()), lr=0.01)
    if args.compile:
        model.embedding = torch.compile(model.embedding, backend=args.backend)
    log = StepLog()
    for _epoch in range(args.epochs):
        model.train()
        for pos_rw, neg_rw in loader:
            optimizer.zero_grad()
            loss = model.loss(pos_rw, neg_rw)
            loss.backward()
            optimizer.step()
            log(loss)


if __name__ == "__main__":
    main()
