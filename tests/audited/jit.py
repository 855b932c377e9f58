"""torch.jit: a scripted and a traced module."""

import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] > 2:
            x = x + 1
        return self.a(x)


model = torch.jit.script(Net()).to(device)
head = torch.jit.trace(torch.nn.Linear(4, 1).to(device), torch.randn(2, 4, device=device))
opt = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1)
for step in range(6):
    opt.zero_grad()
    loss = head(model(torch.randn(3, 4, device=device))).square().mean()
    loss.backward()
    opt.step()
    print(f"loss {loss.item():.9g}")  # sync _local_scalar_dense
