"""A Trainer like Lightning's: hooks, metrics on the device, a dictionary of a batch moved, EarlyStopping on a float."""

import torch
from torch import nn


class Module(nn.Module):
    @property
    def device(self):
        return next(self.parameters()).device

    def log(self, name, value):
        self.trainer.logged[name] = value.detach() if isinstance(value, torch.Tensor) else value


class Metric(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(()))
        self.register_buffer("count", torch.zeros((), dtype=torch.long))

    def update(self, value):
        if torch.isnan(value).any():  # sync _local_scalar_dense
            raise ValueError
        self.total += value.sum()
        self.count += value.numel()


class Classifier(Module):
    def __init__(self):
        super().__init__()
        self.net, self.seen = nn.Linear(6, 3), Metric()
        self.weights = torch.tensor([1.0, 2.0, 1.0])

    def training_step(self, batch, at):
        loss = nn.functional.cross_entropy(
            self.net(batch["x"]), batch["y"], weight=self.weights.to(self.device)
        )  # copy _to_copy
        self.seen.update(loss)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=0.02)
        return {"optimizer": opt, "lr_scheduler": torch.optim.lr_scheduler.CosineAnnealingLR(opt, 10)}


def move(data, device):
    if isinstance(data, dict):
        return {key: move(value, device) for key, value in data.items()}
    return data.to(device, non_blocking=True) if isinstance(data, torch.Tensor) else data


class Trainer:
    def __init__(self, accelerator="auto"):
        self.device = (
            torch.device("cuda", 0) if accelerator == "auto" and torch.cuda.is_available() else torch.device("cpu")
        )
        self.logged = {}

    def fit(self, model, loader):
        model.trainer = self
        made = model.configure_optimizers()
        model.to(self.device)
        opt, schedule = made["optimizer"], made["lr_scheduler"]
        for at, batch in enumerate(loader):

            def closure():
                opt.zero_grad()
                loss = model.training_step(move(batch, self.device), at)
                loss.backward()
                return loss

            opt.step(closure)
            schedule.step()
            print(f"loss {self.logged['loss'].item():.9g}")  # sync _local_scalar_dense


if __name__ == "__main__":
    torch.manual_seed(0)
    data = [{"x": torch.randn(6), "y": int(k % 3), "name": str(k)} for k in range(48)]
    Trainer().fit(
        Classifier(),
        torch.utils.data.DataLoader(
            data, batch_size=8, num_workers=2, pin_memory=torch.cuda.is_available(), persistent_workers=True
        ),
    )
