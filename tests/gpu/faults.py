"""A failure of one variant is reported, and the others are captured nevertheless."""

from tests.gpu.claims import Claims
from tests.gpu.running import tracekit, variants

_RECIPE = """
import time
import torch

PARAMS = {"fault": ""}
VARIANTS = {"oom": {"compile": False, "fault": "oom"}, "hang": {"compile": False, "fault": "hang"}}


def setup(ctx):
    x = torch.ones(1024, device=ctx.device, requires_grad=True)
    optimizer = torch.optim.SGD([x], lr=0.1)

    def step():
        if ctx.fault == "oom":
            torch.empty(1 << 60, device=ctx.device, dtype=torch.uint8)
        if ctx.fault == "hang" and ctx.device.type == "cuda":
            for _ in range(100):
                torch.cuda._sleep(1 << 34)
            torch.cuda.synchronize()
        elif ctx.fault == "hang":
            time.sleep(999)
        loss = x.square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
"""


def check(claims: Claims) -> None:
    """Capture variants that fail. A hang takes its whole time limit, which must be long enough for the others, too."""
    folder = claims.folder / "faults"
    folder.mkdir(parents=True, exist_ok=True)
    recipe, run = folder / "faults.py", folder / "run.json"
    recipe.write_text(_RECIPE)
    patience = 25 if claims.on_gpu else 60
    options = ["--variants", "eager,oom,hang", "--timeout", patience, "--steps", 4, "--passes", 1]
    done = tracekit("capture", recipe, *options, "--device", claims.device, "-o", run, seconds=claims.seconds(100))
    claims.note(done.stderr[-1500:])
    claims.that(done.returncode == 1, "faults: the exit code says that something failed", exit_code=done.returncode)
    captured = variants(run)
    if not captured:
        claims.that(False, "faults: a run was written")
        return
    for name, outcome in (("eager", "ok"), ("oom", "oom"), ("hang", "timeout")):
        seen = {"outcome": captured[name]["outcome"], "error": captured[name]["error"]}
        claims.that(captured[name]["outcome"] == outcome, f"faults: {name} ends as {outcome}", **seen)
