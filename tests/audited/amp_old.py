"""The AMP tutorial, in its old spelling: torch.cuda.amp, unscale_ and clipping, a scaler's state saved."""

import torch
from torch.cuda.amp import GradScaler, autocast

torch.backends.cudnn.benchmark = True
torch.backends.cuda.matmul.allow_tf32 = True
cuda = torch.cuda.is_available()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.BatchNorm1d(32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
if cuda:
    model = model.cuda()
opt = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9, nesterov=True)
scaler = GradScaler(enabled=cuda)
data = [(torch.randn(8, 16), torch.randn(8, 4)) for _ in range(6)]
for input, target in data:
    if cuda:
        input, target = input.cuda(non_blocking=True), target.cuda(non_blocking=True)
    with autocast(enabled=cuda):
        output = model(input)
        loss = torch.nn.functional.mse_loss(output, target)
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.1)
    scaler.step(opt)  # sync _local_scalar_dense
    scaler.update()
    opt.zero_grad(set_to_none=True)
    assert output.dtype == (torch.float16 if cuda else torch.float32)
torch.save({"model": model.state_dict(), "scaler": scaler.state_dict()}, "amp.pt")
