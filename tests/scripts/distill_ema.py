"""As in pytorch/vision's reference scripts: a teacher in eval mode, an averaged copy of the model, parameter groups."""

import argparse
import copy

import torch
from steplog import StepLog
from torch import nn
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


class ConvNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, width, 3, padding=1), nn.BatchNorm2d(width)
        self.head = nn.Linear(width, 5)

    def forward(self, x):
        return self.head(F.relu(self.norm(self.conv(x))).mean(dim=(2, 3)))


def set_weight_decay(model, weight_decay):
    norm = [p for m in model.modules() if isinstance(m, nn.BatchNorm2d) for p in m.parameters()]
    other = [p for p in model.parameters() if all(p is not each for each in norm)]
    return [{"params": norm, "weight_decay": 0.0}, {"params": other, "weight_decay": weight_decay}]


def main(args):
    torch.manual_seed(0)
    teacher, model = ConvNet(12).eval(), ConvNet(6)
    for parameter in teacher.parameters():
        parameter.requires_grad_(False)
    model_ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    best = copy.deepcopy(model)
    if args.compile:
        model.compile(backend=args.backend)
    optimizer = torch.optim.RMSprop(set_weight_decay(model, 1e-4), lr=0.002, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.01, total_steps=args.steps)
    log, least = StepLog(), float("inf")
    for step in range(args.steps):
        model.train()
        image = torch.randn(8, 3, 8, 8)
        with torch.inference_mode():
            soft = teacher(image).softmax(dim=1)
        loss = F.cross_entropy(model(image), soft.clone())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        log(loss)
        if step % 5 == 0:
            model_ema.update_parameters(model)
        if loss.item() < least:
            least = loss.item()
            best.load_state_dict(model.state_dict())
    print(f"best: {least:.4f}")
    torch.save(
        {"model": best.state_dict(), "ema": model_ema.state_dict(), "optimizer": optimizer.state_dict()}, "m.pth"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--backend", default="inductor")
    main(parser.parse_args())
