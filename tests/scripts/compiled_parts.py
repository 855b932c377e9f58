"""Parts compiled one by one, as for vision and speech models: encoder, decoder's forward, a loss, mixed precision."""

import argparse

import torch
from steplog import StepLog
from torch import nn
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=30)
parser.add_argument("--backend", default="inductor")
args = parser.parse_args()
torch.manual_seed(0)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))
        self.norms = nn.ModuleList(nn.LayerNorm(16) for _ in range(3))

    def forward(self, x):
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = x + F.gelu(layer(norm(x)))
        return x


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(16, 4)

    def forward(self, hidden):
        return self.out(hidden).log_softmax(dim=-1)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = Encoder(), Decoder()

    def forward(self, x):
        return self.decoder(self.encoder(x))


@torch.compile(backend=args.backend)
def smoothed(log_prob, target, smoothing=0.1):
    right = log_prob.gather(1, target[:, None]).squeeze(1)
    return -((1 - smoothing) * right + smoothing * log_prob.mean(dim=1)).mean()


model = Model()
model.encoder = torch.compile(model.encoder, backend=args.backend)
model.decoder.forward = torch.compile(model.decoder.forward, backend=args.backend)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, fused=True)
scaler = torch.amp.GradScaler("cpu")
scheduler = torch.optim.lr_scheduler.SequentialLR(
    optimizer,
    [
        torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=3),
        torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs),
    ],
    milestones=[3],
)
x = torch.randn(120, 16)
y = x[:, :4].argmax(dim=1)
log = StepLog()
for _epoch in range(args.epochs):
    model.train()
    for xs, ys in zip(x.split(24), y.split(24), strict=True):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = smoothed(model(xs).float(), ys)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        log(loss)
    scheduler.step()
    model.eval()
    with torch.no_grad():
        print("accuracy", (model(x).argmax(dim=1) == y).float().mean().item())
