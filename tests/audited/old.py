"""Old spellings: tensor types of torch.cuda, Variable, a default tensor type, .data[0]-like reads."""

import torch
from torch.autograd import Variable

cuda = torch.cuda.is_available()
FloatTensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor
LongTensor = torch.cuda.LongTensor if cuda else torch.LongTensor
torch.manual_seed(0)
model = torch.nn.Linear(4, 3)
if cuda:
    model.cuda()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    x = Variable(torch.randn(5, 4).type(FloatTensor))  # copy _to_copy
    y = Variable(LongTensor([0, 1, 2, 0, 1]))  # copy _to_copy
    w = FloatTensor(5).fill_(1.0)
    assert x.is_cuda == cuda and y.is_cuda == cuda and w.is_cuda == cuda
    loss = torch.nn.functional.cross_entropy(model(x), y) + 0 * w.sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    value = loss.data.item()  # sync _local_scalar_dense
