"""PyG, to_hetero: lazy sizes initialised by a first call, a batch of dictionaries moved by .to()."""

import torch
import torch.nn.functional as F
from torch_geometric.data import HeteroData
from torch_geometric.nn import SAGEConv, to_hetero

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
data = HeteroData()
data["paper"].x, data["author"].x = torch.randn(30, 8), torch.randn(20, 4)
data["paper"].y = torch.randint(3, (30,))
data["author", "writes", "paper"].edge_index = torch.stack([torch.randint(20, (60,)), torch.randint(30, (60,))])
data["paper", "rev_writes", "author"].edge_index = data["author", "writes", "paper"].edge_index.flip(0)
data = data.to(device, "x", "y", "edge_index")


class GNN(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = SAGEConv((-1, -1), 16), SAGEConv((-1, -1), 3)

    def forward(self, x, edge_index):
        return self.conv2(self.conv1(x, edge_index).relu(), edge_index)


model = to_hetero(GNN(), data.metadata(), aggr="sum").to(device)
with torch.no_grad():
    model(data.x_dict, data.edge_index_dict)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
rows = torch.arange(0, 30, 2, device=device)
for epoch in range(6):
    optimizer.zero_grad()
    out = model(data.x_dict, data.edge_index_dict)["paper"]
    loss = F.cross_entropy(out[rows], data["paper"].y[rows])
    loss.backward()
    optimizer.step()
    print(f"loss {loss:.9g}")  # sync _local_scalar_dense
