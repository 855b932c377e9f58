"""Scripts small enough to read, and one pass of them."""

from tests.capture.capturing import COMPILED, perform, read_trace
from tracekit.run import Requested

EAGER = Requested(compile=False)
NET = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)
    def forward(self, x):
        return self.second(self.first(x).relu())
"""
HEAD = f"""{NET}
import sys
from torch.utils.data import DataLoader, TensorDataset
def loss_of(net, x):
    return torch.nn.MSELoss()(net(x), x.sum(1, keepdim=True))
net, steps = Net(), int(sys.argv[1]) if len(sys.argv) > 1 else 300
"""
PLAIN = """
optimizer = torch.optim.Adam(net.parameters())
for _ in range(steps):
    optimizer.zero_grad()
    loss_of(net, torch.randn(6, 4)).backward()
    optimizer.step()
"""


def script(tmp_path, body, head=HEAD):
    path = tmp_path / "train.py"
    path.write_text(head + body)
    return path


def profiled(tmp_path, body, requested=COMPILED, steps=2, **more):
    result = perform(
        tmp_path, "profile", script(tmp_path, body), requested=requested, steps=steps, is_script=True, **more
    )
    assert result.outcome == "ok", result.traceback or result.error
    return result


def kinds(result):
    return [(entry.id, entry.kind) for entry in result.ledger.compiles]


def event_names(path):
    return [
        event["name"]
        for event in read_trace(path).keys["traceEvents"]
        if event.get("ph") == "X" and event.get("cat") == "user_annotation"
    ]
