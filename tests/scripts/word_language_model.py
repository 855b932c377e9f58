"""In the form of pytorch/examples' word_language_model: gradient descent by hand; saves the best model."""

import argparse
import math
import time

import torch
from steplog import StepLog
from torch import nn

parser = argparse.ArgumentParser(description="PyTorch Wikitext-2 RNN Language Model")
parser.add_argument("--emsize", type=int, default=24)
parser.add_argument("--nhid", type=int, default=24)
parser.add_argument("--lr", type=float, default=5)
parser.add_argument("--clip", type=float, default=0.25)
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--bptt", type=int, default=12)
parser.add_argument("--save", type=str, default="model.pt")
parser.add_argument("--compile", action="store_true")
parser.add_argument("--backend", default="inductor")
args = parser.parse_args()
torch.manual_seed(1111)
ntokens, batches = 50, 8


class RNNModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Embedding(ntokens, args.emsize)
        self.rnn = nn.GRU(args.emsize, args.nhid)
        self.decoder = nn.Linear(args.nhid, ntokens)

    def forward(self, input, hidden):
        output, hidden = self.rnn(self.encoder(input), hidden)
        return torch.log_softmax(self.decoder(output).view(-1, ntokens), dim=1), hidden


def batchify(data):
    return data[: data.size(0) // batches * batches].view(batches, -1).t().contiguous()


def get_batch(source, i):
    seq_len = min(args.bptt, len(source) - 1 - i)
    return source[i : i + seq_len], source[i + 1 : i + 1 + seq_len].view(-1)


train_data = batchify(torch.arange(7300).square() % 47)
val_data = batchify(torch.arange(400).square() % 47)
model = RNNModel()
if args.compile:
    model.compile(backend=args.backend)
criterion = nn.NLLLoss()


def evaluate(data_source):
    model.eval()
    total_loss, hidden = 0.0, torch.zeros(1, batches, args.nhid)
    with torch.no_grad():
        for i in range(0, data_source.size(0) - 1, args.bptt):
            data, targets = get_batch(data_source, i)
            output, hidden = model(data, hidden)
            total_loss += len(data) * criterion(output, targets).item()
    return total_loss / (len(data_source) - 1)


def train():
    model.train()
    hidden = torch.zeros(1, batches, args.nhid)
    for i in range(0, train_data.size(0) - 1, args.bptt):
        data, targets = get_batch(train_data, i)
        model.zero_grad()
        hidden = hidden.detach()  # starting each batch, we detach the hidden state
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)
        log(loss.item())


lr, best_val_loss, log = args.lr, None, StepLog()
# At any point you can hit Ctrl + C to break out of training early.
try:
    for epoch in range(1, args.epochs + 1):
        epoch_start_time = time.time()
        train()
        val_loss = evaluate(val_data)
        print(
            f"| end of epoch {epoch:3d} | {time.time() - epoch_start_time:5.2f}s | valid ppl {math.exp(val_loss):8.2f}"
        )
        if not best_val_loss or val_loss < best_val_loss:
            with open(args.save, "wb") as f:
                torch.save(model, f)
            best_val_loss = val_loss
        else:
            lr /= 4.0  # Anneal the learning rate if no improvement has been seen in the validation dataset.
except KeyboardInterrupt:
    print("-" * 89)
    print("Exiting from training early")
with open(args.save, "rb") as f:
    model = torch.load(f, weights_only=False)
print(f"| End of training | test {evaluate(val_data):5.2f}")
