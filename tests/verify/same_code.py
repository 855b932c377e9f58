"""Two variants that run the same code, measured as in a capture: any difference between them is noise."""

from contextlib import ExitStack
from pathlib import Path

from msgspec.structs import replace

from tracekit.capture import process
from tracekit.capture.options import Options
from tracekit.capture.passes import measure_again, slug
from tracekit.capture.preparation import Prepared, prepare
from tracekit.capture.rounds import Rounds
from tracekit.capture.variants import PlannedVariant
from tracekit.run import Run, Variant
from tracekit.unprofiled import Contrast, contrast

_NET = """
import torch
def make():
    net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 128), torch.nn.ReLU())
    return net, torch.optim.Adam(net.parameters()), torch.randn(512, 64)
"""
RECIPE = f"""{_NET}
VARIANTS = {{"same": {{"compile": False}}}}
def setup(ctx):
    net, optimizer, x = make()
    def step():
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()
    return step
"""
# Layers that are never called as modules, so that the compiled twin has nothing to compile.
SCRIPT = """
import torch
weights = [torch.randn(64, 128, requires_grad=True), torch.randn(128, 128, requires_grad=True)]
optimizer, x = torch.optim.Adam(weights), torch.randn(512, 64)
for _ in range(100_000):
    optimizer.zero_grad()
    (x @ weights[0]).relu().matmul(weights[1]).square().mean().backward()
    optimizer.step()
"""
KINDS = {"recipe": (RECIPE, ("eager", "same")), "script": (SCRIPT, ("eager", "compiled"))}


def measured_in_turns(kind: str, folder: Path, passes: int = 8) -> Contrast:
    """The unprofiled passes of both variants, from which the interval is computed."""
    text, names = KINDS[kind]
    file = folder / f"{kind}.py"
    file.write_text(text)
    options = Options(file, names, device="cpu", passes=passes, budget=3600, tell=lambda _: None)
    prepared = prepare(options)
    with ExitStack() as stack:
        caches = {name: stack.enter_context(process.scratch()) for name in names}
        first = _first(prepared, folder, caches, options)
        *_, last = Rounds(prepared, folder, caches, options).each(first)
    one, other = (variant.measured for variant in last.variants)
    assert one is not None
    assert other is not None
    return contrast(other, one)


def _first(prepared: Prepared, folder: Path, caches: dict[str, Path], options: Options) -> Run:
    variants = [_measured(variant, prepared, folder, caches, options) for variant in prepared.variants]
    return replace(prepared.run, variants=variants)


def _measured(
    variant: PlannedVariant, prepared: Prepared, folder: Path, caches: dict[str, Path], options: Options
) -> Variant:
    (folder / slug(variant.name, prepared.run.planned)).mkdir()
    answer = measure_again(0, variant, prepared, folder, caches=caches[variant.name], options=options)
    assert answer.outcome == "ok", answer.error
    return Variant(name=variant.name, outcome="ok", requested=variant.requested, measured=answer.measured)
