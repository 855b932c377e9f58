"""In the form of pytorch/examples' mnist: log interval, test after each epoch, StepLR, the model saved at the end."""

import argparse

import torch
from steplog import StepLog
from torch import nn, optim
from torch.nn import functional as F
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, 1)
        self.conv2 = nn.Conv2d(8, 16, 3, 1)
        self.dropout1 = nn.Dropout(0.25)
        self.dropout2 = nn.Dropout(0.5)
        self.fc1 = nn.Linear(576, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = torch.flatten(self.dropout1(F.max_pool2d(x, 2)), 1)
        x = self.dropout2(F.relu(self.fc1(x)))
        return F.log_softmax(self.fc2(x), dim=1)


def digits(number):
    """Ten blurred stripes, one for each class."""
    target = torch.randint(10, (number,))
    images = torch.randn(number, 1, 16, 16)
    images[torch.arange(number), 0, target] += 2
    return TensorDataset(images, target)


def train(model, loader, optimizer, log):
    model.train()
    for data, target in loader:
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        log(loss.item())


def test(model, loader):
    model.eval()
    test_loss, correct = 0, 0
    with torch.no_grad():
        for data, target in loader:
            output = model(data)
            test_loss += F.nll_loss(output, target, reduction="sum").item()
            correct += output.argmax(dim=1, keepdim=True).eq(target.view(-1, 1)).sum().item()
    print(f"\nTest set: average {test_loss / len(loader.dataset):.4f}, accuracy: {correct}/{len(loader.dataset)}\n")


def main():
    parser = argparse.ArgumentParser(description="PyTorch MNIST Example")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=14)
    parser.add_argument("--gamma", type=float, default=0.7)
    parser.add_argument("--save-model", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--backend", default="inductor")
    args = parser.parse_args()
    torch.manual_seed(1)

    train_loader = DataLoader(digits(160), batch_size=args.batch_size, shuffle=True)
    test_loader = DataLoader(digits(64), batch_size=32)
    model = Net().to("cpu")
    optimizer = optim.Adadelta(model.parameters(), lr=1.0)
    if args.compile:
        model.compile(backend=args.backend)
    scheduler = StepLR(optimizer, step_size=1, gamma=args.gamma)
    log = StepLog()
    for _epoch in range(1, args.epochs + 1):
        train(model, train_loader, optimizer, log)
        test(model, test_loader)
        scheduler.step()
    if args.save_model:
        torch.save(model.state_dict(), "mnist_cnn.pt")


if __name__ == "__main__":
    main()
