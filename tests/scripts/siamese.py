"""In the form of pytorch/examples' siamese_network: one network called for each of a pair, Adadelta and StepLR."""

import argparse
import sys

import torch
from steplog import StepLog
from torch import nn, optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset


class SiameseNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
        self.fc = nn.Sequential(nn.Linear(54, 32), nn.ReLU(inplace=True), nn.Linear(32, 1))
        self.sigmoid = nn.Sigmoid()
        # initialize the weights
        self.fc.apply(self.init_weights)

    def init_weights(self, m):
        if isinstance(m, nn.Linear):
            torch.nn.init.xavier_uniform_(m.weight)
            m.bias.data.fill_(0.01)

    def forward_once(self, x):
        return self.backbone(x).view(x.size(0), -1)

    def forward(self, input1, input2):
        difference = torch.abs(self.forward_once(input1) - self.forward_once(input2))
        return self.sigmoid(self.fc(difference))


class Matcher(Dataset):
    """Pairs of the same class, and pairs of different classes."""

    def __init__(self, number):
        self.targets = torch.randint(10, (number,))
        self.data = torch.randn(number, 1, 8, 8).mul(0.3)
        self.data[torch.arange(number), 0, self.targets % 8] += 1

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, index):
        other = int(torch.randint(len(self), ()))
        same = self.targets[index] == self.targets[other]
        return self.data[index], self.data[other], same.float()


def main():
    parser = argparse.ArgumentParser(description="PyTorch Siamese network Example")
    parser.add_argument("--epochs", type=int, default=14)
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--backend", default="inductor")
    args = parser.parse_args()
    torch.manual_seed(1)
    train_loader = DataLoader(Matcher(160), batch_size=16, shuffle=True)
    model = SiameseNetwork()
    if args.compile:
        model.compile(backend=args.backend)
    optimizer = optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
    criterion = nn.BCELoss()
    log = StepLog()
    for _epoch in range(1, args.epochs + 1):
        model.train()
        for images_1, images_2, targets in train_loader:
            optimizer.zero_grad()
            outputs = model(images_1, images_2).squeeze()
            loss = criterion(outputs, targets)
            loss.backward()
            optimizer.step()
            log(loss.item())
            if args.dry_run:
                break
        scheduler.step()
    return 0


if __name__ == "__main__":
    sys.exit(main())
