"""In the form of Accelerate's examples/nlp_example.py: prepare, accumulate, gather the metrics, save the state."""

import argparse

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from steplog import StepLog
from torch import nn
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader, TensorDataset


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.mix, self.out = nn.Embedding(40, 16), nn.Linear(16, 16), nn.Linear(16, 2)

    def forward(self, tokens):
        return self.out(torch.tanh(self.mix(self.embed(tokens))).mean(dim=1))


def training_function(args):
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    set_seed(42)
    tokens = torch.randint(40, (160, 12))
    labels = (tokens.float().mean(dim=1) > 19.5).long()
    train_dataloader = DataLoader(TensorDataset(tokens, labels), batch_size=8, shuffle=True)
    eval_dataloader = DataLoader(TensorDataset(tokens, labels), batch_size=32)
    model = Classifier()
    if args.compile:
        model.compile(backend=args.backend)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    scheduler = OneCycleLR(optimizer, max_lr=5e-3, epochs=args.epochs, steps_per_epoch=len(train_dataloader))
    model, optimizer, train_dataloader, eval_dataloader, scheduler = accelerator.prepare(
        model, optimizer, train_dataloader, eval_dataloader, scheduler
    )
    criterion, log = nn.CrossEntropyLoss(), StepLog()
    for epoch in range(args.epochs):
        model.train()
        for batch, target in train_dataloader:
            with accelerator.accumulate(model):
                loss = criterion(model(batch), target)
                accelerator.backward(loss)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                log(loss)
        model.eval()
        right = []
        for batch, target in eval_dataloader:
            with torch.no_grad():
                predictions = model(batch).argmax(dim=-1)
            predictions, references = accelerator.gather_for_metrics((predictions, target))
            right.append((predictions == references).float())
        accelerator.print(f"epoch {epoch}: accuracy {torch.cat(right).mean():.4f}")
        accelerator.save_state("accelerated")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Simple example of training script.")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--backend", default="inductor")
    training_function(parser.parse_args())
