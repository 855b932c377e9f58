"""A recipe that ends within a second as its parameter says: successfully, out of memory, or by a crash; or never."""

_RECIPE = """
import os, signal, time
from types import SimpleNamespace
import torch

PARAMS = {"how": "well"}

def setup(ctx):
    net = ctx.compile(torch.nn.Linear(16, 16))
    optimizer = torch.optim.SGD(net.parameters(), 0.1)

    def step():
        if ctx.how == "oom":
            raise torch.OutOfMemoryError("tried to allocate 3.00 GiB, 1.00 GiB is free")
        if ctx.how == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if ctx.how == "hang":
            time.sleep(600)
        optimizer.zero_grad()
        loss = net(torch.ones(8, 16)).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def infer():
        return net(torch.ones(8, 16))

    def evaluate():
        return {"test error": float(infer().abs().mean())}

"""
TRAINS = f"{_RECIPE}    return step\n"
INFERS = f"{_RECIPE}    return SimpleNamespace(step=step, infer=infer, evaluate=evaluate)\n"
