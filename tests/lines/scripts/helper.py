"""Another file of the user's, which a script imports."""

import torch
from clocked import clock

NUMBERS = torch.randn(20_000)


def work(matrix):
    with clock("helper"):
        matrix = matrix @ matrix
    return matrix


class Squared(torch.autograd.Function):
    """Its backward pass is the user's own code."""

    @staticmethod
    def forward(ctx, values):
        ctx.save_for_backward(values)
        return values.square()

    @staticmethod
    def backward(ctx, gradient):
        (values,) = ctx.saved_tensors
        with clock("own backward"):
            gradient = gradient + torch.sort(NUMBERS).values.mean()
        return 2 * values * gradient
