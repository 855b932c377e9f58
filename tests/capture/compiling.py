"""Every way in which a script compiles, run plainly and in a pass: prints what Dynamo traced in both, as JSON lines.

It runs in a separate process, which forks for each script, because importing torch takes longer than any of them.
"""

import json
import os
import runpy
import sys
from collections import Counter
from pathlib import Path

from tests.capture.small_scripts import NET

HEAD = f"""{NET}
def loss_of(out, x):
    return torch.nn.functional.mse_loss(out, x.sum(1, keepdim=True))
def compiled(made=None, **more):
    return torch.compile(made, backend="aot_eager", **more)
def train(net, optimizer, step=None, loss_of=loss_of, sizes=(6,)):
    for at in range(12):
        x = torch.randn(sizes[at % len(sizes)], 4)
        optimizer.zero_grad()
        loss_of(net(x), x).backward()
        (step or optimizer.step)()
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
"""
BROKEN = """
class Broken(Net):
    def forward(self, x):
        x = self.first(x)
        print(end="")
        return self.second(x)
net = Broken()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
"""
WHOLE = """
def whole(x):
    optimizer.zero_grad()
    loss_of(net(x), x).backward()
    after()
def after():
    optimizer.step()
"""
FORMS = {
    "the model": "train(compiled(net), optimizer)",
    "the model, before its optimizer": (
        "net = compiled(Net())\noptimizer = torch.optim.SGD(net.parameters(), lr=0.1)\ntrain(net, optimizer)"
    ),
    "the model, of many sizes": "train(compiled(net), optimizer, sizes=(6, 7, 8))",
    "the model, in place": "net.compile(backend='aot_eager')\ntrain(net, optimizer)",
    "the model, with a graph break": f"{BROKEN}train(compiled(net), optimizer)",
    "a model of torch's": (
        "net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))\n"
        "train(compiled(net), torch.optim.SGD(net.parameters(), lr=0.1))"
    ),
    "its forward": "net.forward = compiled(net.forward)\ntrain(net, optimizer)",
    "its parts": "net.first, net.second = compiled(net.first), compiled(net.second)\ntrain(net, optimizer)",
    "a decorated class": (
        "class Decorated(Net):\n    @torch.compile(backend='aot_eager')\n"
        "    def forward(self, x):\n        return super().forward(x)\n"
        "net = Decorated()\ntrain(net, torch.optim.SGD(net.parameters(), lr=0.1))"
    ),
    "the loss": "train(net, optimizer, loss_of=compiled(loss_of))",
    "model and loss as one": (
        "@torch.compile(backend='aot_eager')\ndef both(x):\n    return loss_of(net(x), x)\n"
        "train(lambda x: x, optimizer, loss_of=lambda x, _: both(x))"
    ),
    "the optimizer's step": "train(net, optimizer, compiled(optimizer.step))",
    "the optimizer's step, in a function": (
        "@torch.compile(backend='aot_eager')\ndef step():\n    optimizer.step()\ntrain(net, optimizer, step)"
    ),
    "the optimizer's step, scheduled": (
        "optimizer = torch.optim.SGD(net.parameters(), lr=torch.tensor(0.1))\n"
        "schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3)\n"
        "@torch.compile(backend='aot_eager')\ndef step():\n    optimizer.step()\n    schedule.step()\n"
        "train(net, optimizer, step)"
    ),
    "one that Dynamo cannot step": (
        "optimizer = torch.optim.RAdam(net.parameters())\n"
        "@torch.compile(backend='aot_eager')\ndef step():\n    optimizer.step()\ntrain(net, optimizer, step)"
    ),
    "the whole step": f"{WHOLE}step = compiled(whole)\nfor _ in range(12): step(torch.randn(6, 4))",
    "the whole step, and the model": (
        f"{WHOLE}net = compiled(net)\nstep = compiled(whole)\nfor _ in range(12): step(torch.randn(6, 4))"
    ),
    "the whole step, scaled": (
        "scaler = torch.amp.GradScaler('cpu')\n"
        "@torch.compile(backend='aot_eager')\ndef step(x):\n    optimizer.zero_grad()\n"
        "    scaler.scale(loss_of(net(x), x)).backward()\n    scaler.step(optimizer)\n    scaler.update()\n"
        "for _ in range(12): step(torch.randn(6, 4))"
    ),
}


# Forms that have failed in one way or another before; `make verify` runs all of them.
USUAL = (
    "the model",
    "the model, before its optimizer",
    "the model, with a graph break",
    "its forward",
    "model and loss as one",
    "the optimizer's step, in a function",
    "the whole step",
)


def main(folder: Path, *names: str) -> None:
    """Print a line for each form."""
    import torch._dynamo.backends.debugging
    import torch._inductor

    torch.set_num_threads(1)
    for name in names:
        path = folder / "form.py"
        path.write_text(HEAD + FORMS[name])
        print(json.dumps([name, _forked(_plainly, path), _forked(_in_a_pass, path)]), flush=True)


def _forked(run, path):
    """Call a function in a separate process, and return its result."""
    read, write = os.pipe()
    if not (child := os.fork()):
        try:
            os.write(write, json.dumps(_watched(run, path)).encode())
        except BaseException as error:
            os.write(write, json.dumps({"raised": repr(error)}).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        content = answer.read()
    os.waitpid(child, 0)
    return json.loads(content or '{"raised": "died"}')


def _watched(run, path):
    """The code that Dynamo traced, and its counters."""
    from torch._dynamo.symbolic_convert import InstructionTranslatorBase
    from torch._dynamo.utils import counters

    traced, make = Counter(), InstructionTranslatorBase.__init__

    def making(self, *args, **kwargs):
        make(self, *args, **kwargs)
        traced[f"{self.f_code.co_filename}:{self.f_code.co_firstlineno} {self.f_code.co_name}"] += 1

    InstructionTranslatorBase.__init__ = making
    steps = run(path)
    counted = {name: dict(counters[name]) for name in ("stats", "graph_break", "recompile_limit")}
    return {"traced": dict(traced), "counted": counted, "steps": steps}


def _plainly(path):
    runpy.run_path(str(path), run_name="__main__")


def _in_a_pass(path):
    from tracekit.capture.child.worker import perform
    from tracekit.capture.job import Job
    from tracekit.run import Requested

    wanted = Requested(compile=True, backend="aot_eager")
    result = perform(Job(stage="measure", program=str(path), is_script=True, requested=wanted))
    assert result.outcome == "ok", result.traceback or result.error
    return result.ended


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
