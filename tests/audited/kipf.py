"""pygcn: a sparse adjacency matrix, everything moved by .cuda(), and indices in place of masks."""

import numpy as np
import torch

cuda = torch.cuda.is_available()
np.random.seed(0)
torch.manual_seed(0)
if cuda:
    torch.cuda.manual_seed(0)
n = 30
rows, cols = np.random.randint(0, n, 90), np.random.randint(0, n, 90)
adj = torch.sparse_coo_tensor(
    torch.from_numpy(np.vstack((rows, cols)).astype(np.int64)), torch.ones(90), (n, n)
).coalesce()
features, labels, idx_train = torch.randn(n, 6), torch.randint(3, (n,)), torch.LongTensor(range(10))


class Layer(torch.nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.FloatTensor(i, o).uniform_(-0.3, 0.3))

    def forward(self, x, adj):
        return torch.spmm(adj, torch.mm(x, self.weight))


class GCN(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Layer(6, 8), Layer(8, 3)

    def forward(self, x, adj):
        return torch.log_softmax(self.b(torch.relu(self.a(x, adj)), adj), 1)


model = GCN()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
if cuda:
    model.cuda()
    features, adj, labels, idx_train = features.cuda(), adj.cuda(), labels.cuda(), idx_train.cuda()
for epoch in range(6):
    optimizer.zero_grad()
    output = model(features, adj)
    loss = torch.nn.functional.nll_loss(output[idx_train], labels[idx_train])
    loss.backward()
    optimizer.step()
    preds = output[idx_train].max(1)[1].type_as(labels)
    print(
        "loss {:.9g}".format(loss.item()), "acc", preds.eq(labels[idx_train]).double().sum().item()
    )  # sync _local_scalar_dense, sync _local_scalar_dense
