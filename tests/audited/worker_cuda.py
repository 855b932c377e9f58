"""Mistakes that fail only on a GPU: NumPy on a tensor there, a loss weight left on the CPU, a mask on the CPU."""

import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = torch.nn.Linear(4, 3).to(device)
criterion = torch.nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 3.0]))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    x, y = torch.randn(6, 4, device=device), torch.randint(3, (6,), device=device)
    out = model(x)
    loss = criterion(out, y)  # mixed nll_loss_forward
    mask = torch.rand(6) > 0.5
    some = out[mask]  # copy index
    opt.zero_grad()
    loss.backward()
    opt.step()
    values = out.detach().numpy()  # mixed Tensor.numpy
