"""pytorch/examples, mnist: kwargs for loaders with workers, a scheduler, a test loop."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.optim.lr_scheduler import StepLR


class Pictures(torch.utils.data.Dataset):
    def __init__(self, count, seed):
        drawn = torch.Generator().manual_seed(seed)
        self.x = torch.randn(count, 1, 12, 12, generator=drawn)
        self.y = torch.randint(10, (count,), generator=drawn)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, at):
        return self.x[at], int(self.y[at])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 8, 3), nn.Conv2d(8, 8, 3)
        self.dropout, self.fc = nn.Dropout(0.25), nn.Linear(128, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv2(F.relu(self.conv1(x)))), 2)
        return F.log_softmax(self.fc(torch.flatten(self.dropout(x), 1)), dim=1)


def train(args, model, device, train_loader, optimizer, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        data, target = data.to(device), target.to(device)  # copy _to_copy, copy _to_copy
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            print(f"loss {loss.item():.9g}")  # sync _local_scalar_dense


def test(model, device, test_loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for data, target in test_loader:
            data, target = data.to(device), target.to(device)
            pred = model(data).argmax(dim=1, keepdim=True)
            correct += pred.eq(target.view_as(pred)).sum().item()
    return correct


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--no-cuda", action="store_true")
    parser.add_argument("--log-interval", type=int, default=1)
    args = parser.parse_args()
    use_cuda = not args.no_cuda and torch.cuda.is_available()
    torch.manual_seed(1)
    device = torch.device("cuda") if use_cuda else torch.device("cpu")
    kwargs = {"batch_size": args.batch_size}
    if use_cuda:
        kwargs |= {"num_workers": 1, "pin_memory": True, "shuffle": False}
    train_loader = torch.utils.data.DataLoader(Pictures(48, 1), **kwargs)
    test_loader = torch.utils.data.DataLoader(Pictures(16, 2), **kwargs)
    model = Net().to(device)
    optimizer = optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
    for epoch in range(args.epochs):
        train(args, model, device, train_loader, optimizer, epoch)
        print("right", test(model, device, test_loader))
        scheduler.step()


if __name__ == "__main__":
    main()
