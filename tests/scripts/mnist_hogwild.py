"""In the form of pytorch/examples' mnist_hogwild: processes train one shared model; this one only waits for them."""

import argparse

import torch
import torch.multiprocessing as mp
from steplog import StepLog
from torch import nn, optim
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(64, 32), nn.Linear(32, 10)

    def forward(self, x):
        return F.log_softmax(self.fc2(F.relu(self.fc1(x))), dim=1)


def train(rank, args, model):
    torch.manual_seed(args.seed + rank)
    optimizer = optim.SGD(model.parameters(), lr=args.lr, momentum=0.5)
    for epoch in range(1, args.epochs + 1):
        model.train()
        for _ in range(20):
            target = torch.randint(10, (16,))
            optimizer.zero_grad()
            loss = F.nll_loss(model(torch.randn(16, 64) + F.one_hot(target, 64)), target)
            loss.backward()
            optimizer.step()
        print(f"{rank}\tTrain Epoch: {epoch}\tLoss: {loss.item():.6f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="PyTorch MNIST Example")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--num-processes", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    mp.set_start_method("spawn", force=True)
    StepLog()
    model = Net()
    model.share_memory()  # gradients are allocated lazily, so they are not shared here
    processes = []
    for rank in range(args.num_processes):
        p = mp.Process(target=train, args=(rank, args, model))
        p.start()
        processes.append(p)
    for p in processes:
        p.join()
