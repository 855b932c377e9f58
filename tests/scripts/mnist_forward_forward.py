"""In the form of pytorch/examples' mnist_forward_forward: each layer trains itself; no backward through the network."""

import argparse

import torch
from steplog import StepLog
from torch import nn
from torch.optim import Adam


def overlay_y_on_x(x, y, classes=10):
    x_ = x.clone()
    x_[:, :classes] *= 0.0
    x_[range(x.shape[0]), y] = x.max()
    return x_


class Layer(nn.Linear):
    def __init__(self, in_features, out_features, args):
        super().__init__(in_features, out_features)
        self.relu = nn.ReLU()
        self.opt = Adam(self.parameters(), lr=args.lr)
        self.threshold = args.threshold

    def forward(self, x):
        x_direction = x / (x.norm(2, 1, keepdim=True) + 1e-4)
        return self.relu(torch.mm(x_direction, self.weight.T) + self.bias.unsqueeze(0))

    def train_once(self, x_pos, x_neg):
        g_pos = self.forward(x_pos).pow(2).mean(1)
        g_neg = self.forward(x_neg).pow(2).mean(1)
        loss = torch.log(1 + torch.exp(torch.cat([-g_pos + self.threshold, g_neg - self.threshold]))).mean()
        self.opt.zero_grad()
        # this backward just computes the derivative and hence is not considered backpropagation.
        loss.backward()
        self.opt.step()
        return self.forward(x_pos).detach(), self.forward(x_neg).detach(), loss


class Net(torch.nn.Module):
    def __init__(self, dims, args):
        super().__init__()
        self.layers = [Layer(dims[d], dims[d + 1], args) for d in range(len(dims) - 1)]

    def predict(self, x):
        goodness_per_label = []
        for label in range(10):
            h = overlay_y_on_x(x, label)
            goodness = []
            for layer in self.layers:
                h = layer(h)
                goodness += [h.pow(2).mean(1)]
            goodness_per_label += [sum(goodness).unsqueeze(1)]
        return torch.cat(goodness_per_label, 1).argmax(1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--lr", type=float, default=0.03)
    parser.add_argument("--threshold", type=float, default=2)
    args = parser.parse_args()
    torch.manual_seed(1234)
    y = torch.randint(10, (200,))
    x = torch.rand(200, 64)
    x[torch.arange(200), 20 + y] += 3
    x_pos = overlay_y_on_x(x, y)
    x_neg = overlay_y_on_x(x, (y + torch.randint(1, 10, (200,))) % 10)
    net = Net([64, 48, 48], args)
    log = StepLog()
    for _epoch in range(args.epochs):
        h_pos, h_neg, losses = x_pos, x_neg, []
        for layer in net.layers:
            h_pos, h_neg, loss = layer.train_once(h_pos, h_neg)
            losses.append(loss)
        log(sum(losses))
    with torch.no_grad():
        print("train error:", 1.0 - net.predict(x).eq(y).float().mean().item())
