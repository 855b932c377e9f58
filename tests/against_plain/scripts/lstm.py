import torch
from clock import compiled, steps
from torch import nn

torch.manual_seed(0)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.lstm, self.out = nn.Embedding(2000, 64), nn.LSTM(64, 128, batch_first=True), nn.Linear(128, 20)

    def forward(self, text):
        return self.out(self.lstm(self.words(text))[0])


net = Tagger()
compiled(net)
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
text, tags = torch.randint(0, 2000, (64, 24)), torch.randint(0, 20, (64, 24))
for _ in steps():
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(text).flatten(0, 1), tags.flatten())
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
