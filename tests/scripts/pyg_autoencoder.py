"""In the form of PyG's examples/autoencoder.py: a variational graph autoencoder, whose encoder alone is called."""

import argparse

import torch
import torch_geometric.transforms as T
from steplog import StepLog
from torch_geometric import seed_everything
from torch_geometric.datasets import FakeDataset
from torch_geometric.nn import GAE, VGAE, GCNConv

parser = argparse.ArgumentParser()
parser.add_argument("--variational", action="store_true")
parser.add_argument("--epochs", type=int, default=200)
parser.add_argument("--compile", action="store_true")
parser.add_argument("--backend", default="inductor")
args = parser.parse_args()

seed_everything(2)
transform = T.Compose(
    [
        T.GCNNorm(add_self_loops=True),
        T.RandomLinkSplit(
            num_val=0.05, num_test=0.1, is_undirected=True, split_labels=True, add_negative_train_samples=False
        ),
    ]
)
dataset = FakeDataset(1, avg_num_nodes=250, avg_degree=4, num_channels=24, edge_dim=0, transform=transform)
train_data, val_data, test_data = dataset[0]


class GCNEncoder(torch.nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv1 = GCNConv(in_channels, 2 * out_channels, normalize=False)
        self.conv2 = GCNConv(2 * out_channels, out_channels, normalize=False)

    def forward(self, x, edge_index):
        x = self.conv1(x, edge_index).relu()
        return self.conv2(x, edge_index)


class VariationalGCNEncoder(torch.nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv1 = GCNConv(in_channels, 2 * out_channels, normalize=False)
        self.conv_mu = GCNConv(2 * out_channels, out_channels, normalize=False)
        self.conv_logstd = GCNConv(2 * out_channels, out_channels, normalize=False)

    def forward(self, x, edge_index):
        x = self.conv1(x, edge_index).relu()
        return self.conv_mu(x, edge_index), self.conv_logstd(x, edge_index)


if args.variational:
    model = VGAE(VariationalGCNEncoder(dataset.num_features, 16))
else:
    model = GAE(GCNEncoder(dataset.num_features, 16))
if args.compile:
    model.encoder.compile(backend=args.backend)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


def train():
    model.train()
    optimizer.zero_grad()
    z = model.encode(train_data.x, train_data.edge_index)
    loss = model.recon_loss(z, train_data.pos_edge_label_index)
    if args.variational:
        loss = loss + (1 / train_data.num_nodes) * model.kl_loss()
    loss.backward()
    optimizer.step()
    return float(loss)


@torch.no_grad()
def test(data):
    model.eval()
    z = model.encode(data.x, data.edge_index)
    return model.decoder(z, data.pos_edge_label_index).mean(), model.decoder(z, data.neg_edge_label_index).mean()


log = StepLog()
for _epoch in range(1, args.epochs + 1):
    log(train())
    positive, negative = test(test_data)
print(f"positive: {positive:.4f}, negative: {negative:.4f}")
