"""In the form of pytorch/examples' super_resolution: the whole model is pickled after each epoch."""

import argparse
from math import log10

import torch
from steplog import StepLog
from torch import nn, optim
from torch.nn import init
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, upscale_factor):
        super().__init__()
        self.relu = nn.ReLU()
        self.conv1 = nn.Conv2d(1, 8, (5, 5), (1, 1), (2, 2))
        self.conv2 = nn.Conv2d(8, 8, (3, 3), (1, 1), (1, 1))
        self.conv4 = nn.Conv2d(8, upscale_factor**2, (3, 3), (1, 1), (1, 1))
        self.pixel_shuffle = nn.PixelShuffle(upscale_factor)
        self._initialize_weights()

    def forward(self, x):
        x = self.relu(self.conv1(x))
        x = self.relu(self.conv2(x))
        return self.pixel_shuffle(self.conv4(x))

    def _initialize_weights(self):
        init.orthogonal_(self.conv1.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv2.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv4.weight)


parser = argparse.ArgumentParser(description="PyTorch Super Res Example")
parser.add_argument("--upscale_factor", type=int, default=2)
parser.add_argument("--nEpochs", type=int, default=40)
parser.add_argument("--compile", action="store_true")
parser.add_argument("--backend", default="inductor")
opt = parser.parse_args()
print(opt)
torch.manual_seed(123)
print("===> Loading datasets")
targets = torch.rand(40, 1, 16, 16)
pairs = TensorDataset(nn.functional.avg_pool2d(targets, opt.upscale_factor), targets)
training_data_loader, testing_data_loader = DataLoader(pairs, 8, shuffle=True), DataLoader(pairs, 10)
print("===> Building model")
model = Net(upscale_factor=opt.upscale_factor)
if opt.compile:
    model.compile(backend=opt.backend)
criterion = nn.MSELoss()
optimizer = optim.Adam(model.parameters(), lr=0.001)
log = StepLog()


def train(epoch):
    epoch_loss = 0
    for input, target in training_data_loader:
        optimizer.zero_grad()
        loss = criterion(model(input), target)
        epoch_loss += loss.item()
        loss.backward()
        optimizer.step()
        log(loss.item())
    print(f"===> Epoch {epoch} Complete: Avg. {epoch_loss / len(training_data_loader):.4f}")


def test():
    avg_psnr = 0
    with torch.no_grad():
        for input, target in testing_data_loader:
            avg_psnr += 10 * log10(1 / criterion(model(input), target).item())
    print(f"===> Avg. PSNR: {avg_psnr / len(testing_data_loader):.4f} dB")


def checkpoint(epoch):
    model_out_path = f"model_epoch_{epoch}.pth"
    torch.save(model, model_out_path)
    print(f"Checkpoint saved to {model_out_path}")


for epoch in range(1, opt.nEpochs + 1):
    train(epoch)
    test()
    checkpoint(epoch)
