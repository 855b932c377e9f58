"""Windows into a text."""

import torch
from torch.utils.data import Dataset

TEXT = "the quick brown fox jumps over the lazy dog; pack my box with five dozen liquor jugs. " * 8
VOCABULARY = sorted(set(TEXT))


class Windows(Dataset):
    def __init__(self, block):
        self.block = block
        self.text = torch.tensor([VOCABULARY.index(character) for character in TEXT])

    def __len__(self):
        return len(self.text) - self.block - 1

    def __getitem__(self, at):
        return self.text[at : at + self.block], self.text[at + 1 : at + 1 + self.block]
