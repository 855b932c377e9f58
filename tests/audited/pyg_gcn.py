"""PyG, examples/gcn.py: masks, an accuracy per split after each epoch."""

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

if torch.cuda.is_available():
    device = torch.device("cuda")
elif hasattr(torch.backends, "mps") and torch.backends.mps.is_available():
    device = torch.device("mps")
else:
    device = torch.device("cpu")
torch.manual_seed(0)
n = 60
data = Data(x=torch.randn(n, 8), edge_index=torch.randint(n, (2, 240)), y=torch.randint(3, (n,)))
data.train_mask, data.val_mask, data.test_mask = (torch.arange(n) % 3 == k for k in range(3))
data = data.to(device)


class GCN(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = GCNConv(8, 16, cached=True), GCNConv(16, 3, cached=True)

    def forward(self, x, edge_index, edge_weight=None):
        x = F.dropout(x, p=0.5, training=self.training)
        x = self.conv1(x, edge_index, edge_weight).relu()
        x = F.dropout(x, p=0.5, training=self.training)
        return self.conv2(x, edge_index, edge_weight)


model = GCN().to(device)
optimizer = torch.optim.Adam(
    [dict(params=model.conv1.parameters(), weight_decay=5e-4), dict(params=model.conv2.parameters())], lr=0.01
)


def train():
    model.train()
    optimizer.zero_grad()
    out = model(data.x, data.edge_index, data.edge_attr)
    loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])  # sync index, sync index
    loss.backward()  # sync index_put
    optimizer.step()
    return float(loss)  # sync _local_scalar_dense


@torch.no_grad()
def test():
    model.eval()
    pred = model(data.x, data.edge_index, data.edge_attr).argmax(dim=-1)
    accs = []
    for mask in [data.train_mask, data.val_mask, data.test_mask]:
        accs.append(
            int((pred[mask] == data.y[mask]).sum()) / int(mask.sum())
        )  # 6 sync index, 6 sync _local_scalar_dense
    return accs


for epoch in range(1, 7):
    print(f"loss {train():.9g}")
    train_acc, val_acc, tmp = test()
