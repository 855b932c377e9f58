"""A small transformer over characters."""

import torch
from torch import nn


class CharLM(nn.Module):
    def __init__(self, vocabulary, width, block):
        super().__init__()
        self.embed, self.place = nn.Embedding(vocabulary, width), nn.Embedding(block, width)
        layer = nn.TransformerEncoderLayer(width, 2, 2 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        length = tokens.size(1)
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        hidden = self.embed(tokens) + self.place(torch.arange(length))
        return self.head(self.encoder(hidden, mask=mask, is_causal=True))
