import torch
from clock import compiled, steps
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(
    nn.Linear(256, 512), nn.GELU(), nn.LayerNorm(512), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 10)
)
compiled(net)
optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
x, y = torch.randn(4096, 256), torch.randint(0, 10, (4096,))
for _ in steps():
    batch = torch.randint(0, 4096, (128,))
    loss = nn.functional.cross_entropy(net(x[batch]), y[batch])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
