"""Which optimizers update their parameters one by one, and which of them are told to do otherwise, and how."""

import re

import pytest
from real import trace_names, trace_path
from small import event, kernel, launch, op, step, write

from tests.world.causes import OptimizerLoop
from tests.world.worlds import world
from tracekit.findings import diagnose
from tracekit.profile import open_subject

STEP = "Optimizer.step#{}.step"
SINGLE = "void at::native::vectorized_elementwise_kernel<4, at::native::add>(int)"
MANY = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<2> >"


def trained(path, optimizer, *groups, steps=3):
    """Steps in which that optimizer submits groups of kernels; each group has the operators around its launches, the
    outermost first, the kernel's name and how many there are."""
    events, correlation = [], 0
    for k in range(steps):
        at = start = 100_000.0 * k
        for operators, name, number in groups:
            for _ in range(number):
                correlation += 1
                events += [op(each, at + depth, at + 30 - depth) for depth, each in enumerate(operators)]
                events += [launch(at + 10, at + 15, correlation), kernel(name, at + 20, at + 22, correlation)]
                at += 32
        if optimizer:
            events.append(event("user_annotation", STEP.format(optimizer), start - 1, at))
        events.append(launch(at + 1, at + 5, 0, "cudaDeviceSynchronize"))
        events.append(step(k, start - 5, at + 10))
    return open_subject([write(path, *events)]).profiles[0]


def advised(profile):
    return " ".join(each.advice for each in diagnose(profile).all_findings)


def loop_of(profile):
    return next((each for each in diagnose(profile).all_findings if each.id == "optimizer_loop"), None)


ONE_BY_ONE = (("aten::add_",), SINGLE, 60)
AT_ONCE = (("aten::_foreach_add_",), MANY, 60)


@pytest.mark.parametrize(
    "groups",
    [(AT_ONCE,), ((("aten::_fused_adamw_",), "adamw", 60),), (((), MANY, 60),), (((), "triton_for_fused_1", 60),)],
)
def test_many_launches_are_no_loop_if_each_updates_many_parameters(tmp_path, groups):
    profile = trained(tmp_path / "a.json", "AdamW", *groups)
    assert loop_of(profile) is None
    assert "foreach" not in advised(profile)


def test_foreach_that_falls_back_to_single_tensors_is_a_loop(tmp_path):
    slow = ("aten::_foreach_add_", "aten::add_"), SINGLE, 60
    assert loop_of(trained(tmp_path / "a.json", "AdamW", slow)).headline.endswith("updates parameters one by one")


@pytest.mark.parametrize(
    ("many", "headline", "part"),
    [
        (0, "The optimizer updates parameters one by one", "Optimizer.step makes 60 launches a step, all for a single"),
        (
            30,
            "The optimizer updates parameters one by one",
            "Optimizer.step makes 90 launches a step, 60 of them for a",
        ),
        (
            90,
            "The optimizer updates some parameters one by",
            "Optimizer.step makes 150 launches a step, 60 of them for a",
        ),
    ],
)
def test_the_part_that_goes_one_by_one_is_told(tmp_path, many, headline, part):
    loop = loop_of(trained(tmp_path / "a.json", "AdamW", ONE_BY_ONE, (*AT_ONCE[:2], many)))
    assert loop.headline.startswith(headline)
    assert loop.why.startswith(part)


@pytest.mark.parametrize(
    ("optimizer", "has"), [("AdamW", "foreach=True or fused=True"), ("Adagrad", "foreach=True:"), ("Lion", None)]
)
def test_only_settings_that_an_optimizer_has_are_advised(tmp_path, optimizer, has):
    loop = loop_of(trained(tmp_path / "a.json", optimizer, ONE_BY_ONE))
    if has is not None:
        assert loop.do.startswith(f"Construct the optimizer with {has}")
    else:
        assert "torch.compile(optimizer.step)" in loop.do
        assert "Construct" not in loop.do


def test_without_an_optimizer_nothing_is_said_of_one(tmp_path):
    assert "optimizer" not in advised(trained(tmp_path / "a.json", None, ONE_BY_ONE))


_SETTINGS = re.compile(r"foreach=True|fused=True")


def _needs_one(profile):
    """Whether an optimizer steps in the recording, told by names alone."""
    return any(re.match(r"Optimizer\.step#", name) for name in profile.trace.names)


@pytest.mark.parametrize("name", trace_names())
def test_of_a_real_trace(name):
    for profile in open_subject([trace_path(name)]).profiles:
        names = " ".join(profile.trace.names)
        said = advised(profile)
        assert not _SETTINGS.search(said) or (_needs_one(profile) and "multi_tensor_apply" not in names), said


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_of_a_random_world(tmp_path, seed):
    made = world(seed)
    (profile,) = open_subject([made.write(tmp_path / "trace")]).profiles
    loops = any(isinstance(cause, OptimizerLoop) for cause in made.causes)
    assert not _SETTINGS.search(advised(profile)) or loops
