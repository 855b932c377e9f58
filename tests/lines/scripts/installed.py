"""A library, which is put below site-packages: its time belongs to the line that calls it, and what it calls back to
its own."""

import torch


def heavy(values):
    total = 0
    for _ in range(4):
        total = total + torch.sort(values[:20_000]).values
    return total


def call_back(function, values):
    return function(values)
