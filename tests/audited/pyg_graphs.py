"""PyG, examples/mutag_gin.py: batches of graphs, pooling without sizes, a loss times num_graphs."""

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import MLP, GINConv, global_add_pool

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
graphs = [
    Data(x=torch.randn(k, 5), edge_index=torch.randint(k, (2, 3 * k)), y=torch.randint(2, (1,)))
    for k in torch.randint(4, 9, (48,)).tolist()
]
loader = DataLoader(graphs, batch_size=8, shuffle=True)


class GIN(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = GINConv(MLP([5, 16, 16]))
        self.out = MLP([16, 16, 2], norm=None, dropout=0.5)

    def forward(self, x, edge_index, batch):
        return self.out(
            global_add_pool(self.conv(x, edge_index).relu(), batch)
        )  # sync _local_scalar_dense, break _local_scalar_dense


model = GIN().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
total_loss = 0
for data in loader:
    data = data.to(device)  # copy _to_copy, copy _to_copy, copy _to_copy, copy _to_copy, copy _to_copy
    optimizer.zero_grad()
    out = model(data.x, data.edge_index, data.batch)
    loss = F.cross_entropy(out, data.y)
    loss.backward()
    optimizer.step()
    total_loss += float(loss) * data.num_graphs  # sync _local_scalar_dense
    print(f"loss {total_loss:.9g}")
