"""With Lightning's Trainer: a LightningModule, validation, checkpoints; Lightning's loop runs every step."""

import argparse

import lightning as L
import torch
from steplog import StepLog
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class LitClassifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        return F.cross_entropy(self(x), y)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_loss", F.cross_entropy(self(x), y))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


class Report(L.Callback):
    def on_train_start(self, trainer, pl_module):
        self.log = StepLog()

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.log(outputs["loss"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--backend", default="inductor")
    args = parser.parse_args()
    L.seed_everything(1, workers=True)
    y = torch.randint(10, (160,))
    data = TensorDataset(torch.randn(160, 64) + F.one_hot(y, 64) * 3, y)
    model = LitClassifier()
    if args.compile:
        model.compile(backend=args.backend)
    trainer = L.Trainer(
        max_epochs=args.epochs,
        accelerator="cpu",
        callbacks=[Report()],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir="lit",
    )
    trainer.fit(model, DataLoader(data, batch_size=16, shuffle=True), DataLoader(data, batch_size=32))


if __name__ == "__main__":
    main()
