import torch
from clock import compiled, steps
from torch import nn

torch.manual_seed(0)


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(128, 4, 256, dropout=0.0, batch_first=True, norm_first=True)
        self.words, self.places = nn.Embedding(500, 128), nn.Parameter(torch.zeros(48, 128))
        self.layers, self.out = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(128, 500)

    def forward(self, text, mask):
        return self.out(self.layers(self.words(text) + self.places, mask=mask, is_causal=True))


net, mask = Language(), nn.Transformer.generate_square_subsequent_mask(48)
compiled(net)
optimizer = torch.optim.AdamW(net.parameters(), 3e-4)
text = torch.randint(0, 500, (16, 49))
for _ in steps():
    optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.cross_entropy(net(text[:, :-1], mask).flatten(0, 1), text[:, 1:].flatten())
    loss.backward()
    optimizer.step()
