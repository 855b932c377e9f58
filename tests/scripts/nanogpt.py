"""In the form of nanoGPT's train.py: torch.compile, accumulated gradients, a scaler, evaluation, resume."""

import math
import os
import sys
from contextlib import nullcontext

import torch
from steplog import StepLog
from torch import nn
from torch.nn import functional as F

# default config values; --name=value overrides them, as in nanoGPT's configurator.py
out_dir, init_from = "out", "resume"
eval_interval, eval_iters, max_iters = 20, 4, 120
gradient_accumulation_steps, batch_size, block_size = 4, 4, 32
n_layer, n_head, n_embd, vocab_size = 2, 2, 32, 64
learning_rate, warmup_iters, min_lr, grad_clip = 1e-3, 10, 1e-4, 1.0
dtype, compile, backend = "bfloat16", True, "inductor"
for arg in sys.argv[1:]:
    key, val = arg.removeprefix("--").split("=")
    globals()[key] = type(globals()[key])(int(val) if isinstance(globals()[key], bool) else val)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.c_attn, self.c_proj = nn.Linear(n_embd, 3 * n_embd), nn.Linear(n_embd, n_embd)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = (each.view(B, T, n_head, -1).transpose(1, 2) for each in self.c_attn(self.ln_1(x)).split(n_embd, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab_size, n_embd), nn.Embedding(block_size, n_embd)
        self.h, self.ln_f = nn.ModuleList(Block() for _ in range(n_layer)), nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, vocab_size, bias=False)
        self.wte.weight = self.lm_head.weight

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1), device=idx.device))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


def get_batch():
    ix = torch.randint(len(text) - block_size, (batch_size,))
    return torch.stack([text[i : i + block_size] for i in ix]), torch.stack(
        [text[i + 1 : i + 1 + block_size] for i in ix]
    )


@torch.no_grad()
def estimate_loss():
    model.eval()
    losses = torch.zeros(eval_iters)
    for k in range(eval_iters):
        with ctx:
            losses[k] = model(*get_batch())[1].item()
    model.train()
    return losses.mean()


def get_lr(it):
    if it < warmup_iters:
        return learning_rate * (it + 1) / (warmup_iters + 1)
    ratio = (it - warmup_iters) / (max_iters - warmup_iters)
    return min_lr + 0.5 * (1.0 + math.cos(math.pi * ratio)) * (learning_rate - min_lr)


torch.manual_seed(1337)
os.makedirs(out_dir, exist_ok=True)
text = torch.arange(4000).square() % 61
ctx = torch.autocast("cpu", dtype=torch.bfloat16) if dtype == "bfloat16" else nullcontext()
raw_model, iter_num = GPT(), 0
scaler = torch.amp.GradScaler("cpu", enabled=dtype == "float16")
optimizer = torch.optim.AdamW(raw_model.parameters(), lr=learning_rate, betas=(0.9, 0.95))
if init_from == "resume" and os.path.exists(os.path.join(out_dir, "ckpt.pt")):
    checkpoint = torch.load(os.path.join(out_dir, "ckpt.pt"))
    raw_model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    iter_num = checkpoint["iter_num"]
    print(f"Resuming training from {out_dir} at {iter_num}")
model = torch.compile(raw_model, backend=backend) if compile else raw_model

log = StepLog()
X, Y = get_batch()
while iter_num <= max_iters:
    for param_group in optimizer.param_groups:
        param_group["lr"] = get_lr(iter_num)
    if iter_num % eval_interval == 0:
        print(f"step {iter_num}: val {estimate_loss():.4f}")
        if iter_num > 0:
            checkpoint = {"model": raw_model.state_dict(), "optimizer": optimizer.state_dict(), "iter_num": iter_num}
            torch.save(checkpoint, os.path.join(out_dir, "ckpt.pt"))
    for _micro_step in range(gradient_accumulation_steps):
        with ctx:
            logits, loss = model(X, Y)
            loss = loss / gradient_accumulation_steps
        X, Y = get_batch()
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    log(loss.item() * gradient_accumulation_steps)
    iter_num += 1
