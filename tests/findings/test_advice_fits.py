"""Advice fits the run: nobody is told to change what the run does not have, or to do what it does already.

What must be in the recording for an advice, or must not, is told here by names alone.
"""

import re
from functools import partial

import pytest
from real import trace_names, trace_path
from small import event, kernel, launch, op, step, write

from tests.world.worlds import world
from tracekit.findings import diagnose
from tracekit.profile import open_subject


def has(pattern, names):
    return any(re.match(pattern, name) for name in names)


COMPILED = (
    r"TorchDynamo Cache Lookup|dynamo|Torch-Compiled Region|## Call CompiledFxGraph|CompiledFunction"
    r"|triton_(poi|red|per|tem)_|cpp_fused_"
)
OPTIMIZER = r"Optimizer\.step#"
# What is advised, and what the names in the recording must tell.
NEEDS = {
    r"torch\.compile(?!\(optimizer)(?!r)": lambda names: not has(COMPILED, names),
    r"graph breaks|compiled (?:function|graphs?)\b": partial(has, COMPILED),
    r"foreach=True|fused=True|capturable|optimizer": partial(has, OPTIMIZER),
    r"DDP|DistributedDataParallel\b(?! does)|bucket_cap_mb|no_sync": partial(
        has, r".*(DistributedDataParallel|reducer)"
    ),
    r"FSDP|reshard": partial(has, r".*(FSDP|[Ff]ully_?[Ss]hard)"),
    r"backward pass": partial(has, r"autograd::engine|.*Backward"),
    r"num_workers|persistent_workers": partial(has, r"enumerate\(DataLoader\)|.*dataloader\.py"),
    r"CUDA graphs? \(|[Ii]nto the (?:CUDA )?graphs": partial(has, r"(cuda|hip|cu)|## Call|Torch-Compiled"),
}
MOVED = r"Move it out of the step|Let it work on the GPU"
CANNOT_MOVE = re.compile(r".*(Backward|autograd::).*|(?:cuda|hip|cu[A-Z])\w+", re.DOTALL)


def unfitting(profile):
    """The advice of the profile's findings whose condition does not hold."""
    names = profile.trace.names
    for finding in diagnose(profile).all_findings:
        for pattern, fits in NEEDS.items():
            if re.search(pattern, finding.do) and not fits(names):
                yield finding.id, pattern, finding.do
        if re.search(MOVED, finding.do) and CANNOT_MOVE.fullmatch(finding.where.operator or ""):
            yield finding.id, "moved", finding.do


@pytest.mark.parametrize("name", trace_names())
def test_of_a_real_trace(name):
    assert not [wrong for profile in open_subject([trace_path(name)]).profiles for wrong in unfitting(profile)]


@pytest.mark.parametrize("seed", range(1, 120, 3))
def test_of_a_random_world(tmp_path, seed):
    for profile in open_subject([world(seed).write(tmp_path / "trace")]).profiles:
        assert not [*unfitting(profile)]


def launching(path, *, around=(), optimizer=False, replays=False, kernel_name="add"):
    """Steps in which the host needs long for small kernels: inside of such spans, and perhaps beside replays."""
    events = []
    for number in range(4):
        begin = 10_000.0 * number
        events.append(step(number, begin, begin + 5000))
        events += [op(name, begin + 0.1 * k, begin + 4990) for k, name in enumerate(around)]
        if optimizer:
            events.append(event("user_annotation", "Optimizer.step#SGD.step", begin + 4900, begin + 4990))
        for call in range(50):
            at, correlation = begin + 100 * call + 2, 100 * number + call + 1
            name = "cudaGraphLaunch" if replays and not call else "cudaLaunchKernel"
            events += [
                op("aten::add", at, at + 95),
                launch(at + 60, at + 90, correlation, name),
                kernel(kernel_name, at + 91, at + 93, correlation),
            ]
    return open_subject([write(path, *events)]).profiles[0]


def advice(profile):
    return " ".join(each.advice for each in diagnose(profile).all_findings)


def test_what_inductor_generated_shows_that_a_run_is_compiled(tmp_path):
    assert "torch.compile" in advice(launching(tmp_path / "a.json"))
    assert "torch.compile" not in advice(launching(tmp_path / "b.json", kernel_name="triton_poi_fused_add_0"))


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("optimizer", [True, False])
def test_what_keeps_work_out_of_cuda_graphs_depends_on_the_run(tmp_path, compiled, optimizer):
    around = ("Torch-Compiled Region: 0/0",) if compiled else ()
    said = advice(launching(tmp_path / "a.json", around=around, optimizer=optimizer, replays=True))
    assert "work on the CPU and sizes that vary" in said
    assert ("graph breaks" in said) is compiled
    assert ("capturable=True" in said) is optimizer


@pytest.mark.parametrize(("regions", "many"), [(2, False), (5, True)])
def test_many_compiled_regions_are_to_be_fewer(tmp_path, regions, many):
    around = [f"Torch-Compiled Region: {k}/0" for k in range(regions)]
    said = advice(launching(tmp_path / "a.json", around=around))
    assert (f"Compile fewer and larger regions: a step enters {regions} of them." in said) is many


@pytest.mark.parametrize("compiled", [True, False])
def test_many_small_operators_on_a_cpu(tmp_path, compiled):
    """None stands out, so all are to be fused: by compiling, unless the run is compiled."""
    events = []
    for number in range(3):
        begin = 10_000.0 * number
        events.append(step(number, begin, begin + 1000))
        events += [op(f"aten::made_up_{k}", begin + 90 * k, begin + 90 * k + 85) for k in range(11)]
        if compiled:
            events.append(op("CompiledFunction", begin, begin + 89))
    said = advice(open_subject([write(tmp_path / "a.json", *events)]).profiles[0])
    assert "none of them stands out" in said
    assert ("torch.compile" in said) is not compiled
