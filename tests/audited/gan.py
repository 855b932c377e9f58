"""pytorch/examples, dcgan, with a gradient penalty: two optimizers, a double backward."""

import torch
from torch import autograd, nn

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
torch.manual_seed(0)
D = nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1)).to(device)
G = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 6)).to(device)
oD, oG = torch.optim.Adam(D.parameters(), betas=(0.5, 0.9)), torch.optim.RMSprop(G.parameters())
fixed = torch.randn(8, 3, device=device)
for step in range(6):
    real = torch.randn(8, 6).to(device)  # copy _to_copy
    fake = G(torch.randn(8, 3, device=device))
    label = torch.full((8,), 1.0, dtype=torch.float, device=device)
    eps = torch.rand(8, 1, device=device)
    mixed = (eps * real + (1 - eps) * fake.detach()).requires_grad_(True)
    grad = autograd.grad(D(mixed), mixed, grad_outputs=torch.ones(8, 1, device=device), create_graph=True)[0]
    errD = D(fake.detach()).mean() - D(real).mean() + 10 * ((grad.norm(2, dim=1) - 1) ** 2).mean() + 0 * label.mean()
    D.zero_grad()
    errD.backward()
    oD.step()
    G.zero_grad()
    errG = -D(fake).mean()
    errG.backward()
    oG.step()
    line = "%.4f %.4f" % (errD.item(), errG.item())  # sync _local_scalar_dense, sync _local_scalar_dense
    grid = G(fixed).detach().cpu()  # sync _to_copy
    picture = grid.numpy()
