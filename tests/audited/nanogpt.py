"""nanoGPT, train.py: bfloat16 autocast, fused AdamW, torch.compile, batches pinned and sent without waiting."""

from contextlib import nullcontext

import numpy as np
import torch
from torch.nn import functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
dtype = "bfloat16" if torch.cuda.is_available() and torch.cuda.is_bf16_supported() else "float32"
torch.manual_seed(1337)
np.random.seed(0)
device_type = "cuda" if "cuda" in device else "cpu"
ctx = (
    nullcontext() if device_type == "cpu" else torch.amp.autocast(device_type=device_type, dtype=getattr(torch, dtype))
)
corpus = np.random.randint(0, 40, 2000).astype(np.uint16)


def get_batch():
    ix = torch.randint(len(corpus) - 16, (4,))
    x = torch.stack([torch.from_numpy((corpus[i : i + 16]).astype(np.int64)) for i in ix])
    y = torch.stack([torch.from_numpy((corpus[i + 1 : i + 17]).astype(np.int64)) for i in ix])
    if device_type == "cuda":
        return x.pin_memory().to(device, non_blocking=True), y.pin_memory().to(device, non_blocking=True)
    return x.to(device), y.to(device)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.ln, self.qkv, self.out = torch.nn.LayerNorm(32), torch.nn.Linear(32, 96), torch.nn.Linear(32, 32)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (each.view(b, t, 4, 8).transpose(1, 2) for each in self.qkv(self.ln(x)).split(32, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(y.transpose(1, 2).contiguous().view(b, t, c))


class GPT(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = torch.nn.Embedding(40, 32), torch.nn.Embedding(16, 32)
        self.h, self.head = torch.nn.ModuleList([Block(), Block()]), torch.nn.Linear(32, 40, bias=False)
        self.wte.weight = self.head.weight

    def forward(self, idx, targets):
        pos = torch.arange(0, idx.size(1), dtype=torch.long, device=idx.device)
        x = self.wte(idx) + self.wpe(pos)
        for block in self.h:
            x = block(x)
        logits = self.head(x)
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)


model = GPT()
model.to(device)
scaler = torch.amp.GradScaler(device_type, enabled=(dtype == "float16"))
decay = [p for p in model.parameters() if p.dim() >= 2]
optimizer = torch.optim.AdamW(
    [
        {"params": decay, "weight_decay": 0.1},
        {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0},
    ],
    lr=1e-3,
    fused=(device_type == "cuda"),
)
if device_type == "cuda":
    model = torch.compile(model)
X, Y = get_batch()
for it in range(6):
    for micro in range(2):
        with ctx:
            logits, loss = model(X, Y)
            loss = loss / 2
        X, Y = get_batch()
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    lossf = loss.item() * 2  # sync _local_scalar_dense
