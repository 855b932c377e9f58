"""torch.func: per-sample gradients by vmap, a jacobian, a functional call; a custom Function."""

import torch
from torch.func import functional_call, grad, jacrev, vmap

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, out):
        (x,) = ctx.saved_tensors
        return 2 * x * out


model = torch.nn.Linear(4, 1).to(device)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(5, 4, device=device), torch.randn(5, 1, device=device)


def loss_of(params, a, b):
    return (functional_call(model, params, (a.unsqueeze(0),)) - b).square().mean()


for step in range(6):
    params = {name: each.detach() for name, each in model.named_parameters()}
    each = vmap(grad(loss_of), in_dims=(None, 0, 0))(params, x, y)
    jac = jacrev(lambda a: functional_call(model, params, (a,)))(x)
    opt.zero_grad()
    loss = Square.apply(model(x) - y).mean()
    loss.backward()
    for name, parameter in model.named_parameters():
        parameter.grad.add_(each[name].mean(0) * 0.1)
    opt.step()
    norm = each["weight"].norm().item() + jac.sum().item()  # sync _local_scalar_dense, sync _local_scalar_dense
