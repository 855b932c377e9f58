"""`python -m charlm.train --epochs 3`: loader workers that import the package anew, and an exit by sys.exit."""

import argparse
import sys
from pathlib import Path

import torch
from steplog import StepLog
from torch.nn import functional as F
from torch.utils.data import DataLoader

from .data import VOCABULARY, Windows
from .model import CharLM


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--block", type=int, default=16)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--patience", type=int, default=200)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--backend", default="inductor")
    args = parser.parse_args()
    torch.manual_seed(0)
    loader = DataLoader(
        Windows(args.block),
        batch_size=16,
        shuffle=True,
        drop_last=True,
        num_workers=args.workers,
        multiprocessing_context="spawn" if args.workers else None,
    )
    model = CharLM(len(VOCABULARY), 32, args.block)
    if args.compile:
        model.compile(backend=args.backend)
    optimizer = torch.optim.RAdam(model.parameters(), lr=1e-3)
    log, steps = StepLog(), 0
    for _epoch in range(args.epochs):
        for tokens, following in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(tokens).transpose(1, 2), following)
            loss.backward()
            optimizer.step()
            log(loss)
            steps += 1
            if steps >= args.patience:
                torch.save(model.state_dict(), Path("charlm.pt"))
                sys.exit(0)


if __name__ == "__main__":
    main()
