"""In the form of pytorch/examples' time_sequence_prediction: L-BFGS, which calls a closure several times a step."""

import argparse

import torch
from steplog import StepLog
from torch import nn, optim


class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm1 = nn.LSTMCell(1, 11)
        self.lstm2 = nn.LSTMCell(11, 11)
        self.linear = nn.Linear(11, 1)

    def forward(self, input, future=0):
        outputs = []
        h_t, c_t, h_t2, c_t2 = (torch.zeros(input.size(0), 11, dtype=torch.double) for _ in range(4))
        for input_t in input.split(1, dim=1):
            h_t, c_t = self.lstm1(input_t, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        for _ in range(future):
            h_t, c_t = self.lstm1(output, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        return torch.cat(outputs, dim=1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=15, help="steps to run")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--backend", default="inductor")
    opt = parser.parse_args()
    torch.manual_seed(0)
    data = torch.sin((torch.arange(8) + 4 * torch.rand(12, 1)) / 2).double()
    input, target = data[3:, :-1], data[3:, 1:]
    test_input, test_target = data[:3, :-1], data[:3, 1:]
    seq = Sequence().double()
    if opt.compile:
        seq.compile(backend=opt.backend)
    criterion = nn.MSELoss()
    # use LBFGS as optimizer since we can load the whole data to train
    optimizer = optim.LBFGS(seq.parameters(), lr=0.1, max_iter=4)
    log = StepLog()
    for _ in range(opt.steps):

        def closure():
            optimizer.zero_grad()
            loss = criterion(seq(input), target)
            loss.backward()
            return loss

        log(optimizer.step(closure))
        # begin to predict, no need to track gradient here
        with torch.no_grad():
            pred = seq(test_input, future=2)
            print("test", criterion(pred[:, :-2], test_target).item())
