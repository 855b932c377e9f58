"""Norms of gradients are compared beside losses: Adam hides their scale from the losses of the first steps."""

import msgspec
import pytest
import torch
from small import training

from tests.capture.capturing import COMPILED, perform
from tests.capture.small_scripts import script
from tests.report.test_run_facts import opened, variant
from tracekit.capture.child.loss_check import GradientNorms
from tracekit.capture.messages import _sameness
from tracekit.report import report
from tracekit.report.sections.headline import at_a_glance
from tracekit.run import Requested, Run, Variant, divergence, times_apart

# Compiled, its loss has the same value, but twenty times the gradients.
SCALED = """
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x.clone()
    @staticmethod
    def backward(ctx, gradient): return 20 * gradient
def loss_of_batch(x):
    loss = net(x).square().mean()
    return Scaled.apply(loss) if torch.compiler.is_compiling() else loss
loss_of_batch = torch.compile(loss_of_batch, backend="aot_eager")
for _ in range(steps):
    optimizer.zero_grad()
    loss_of_batch(torch.randn(6, 4)).backward()
    optimizer.step()
"""


def checked(folder, **more):
    folder.mkdir()
    result = perform(folder, "check", script(folder, SCALED), is_script=True, **more)
    assert result.outcome == "ok", result.traceback or result.error
    requested = more.get("requested", Requested(compile=False))
    name = "compiled" if requested.compile else "eager"
    return Variant(name=name, outcome="ok", requested=requested, losses=result.losses, gradients=result.gradients)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scaled")
    return checked(folder / "eager"), checked(folder / "compiled", requested=COMPILED)


def test_twenty_fold_gradients_under_adam_are_seen_although_losses_are_the_same(pair):
    eager, compiled = pair
    assert len(eager.gradients) == len(eager.losses) == 20
    assert divergence(eager.losses, compiled.losses) < 1e-3  # Adam's epsilon tells the scales apart a little
    assert times_apart(eager.gradients, compiled.gradients) == pytest.approx(20, rel=0.05)


def test_the_capture_says_so(pair):
    run = Run(created="2026-11-21T20:00:00+00:00", tracekit="0", recipe="r", script="r.py", variants=[*pair])
    assert "norms of its gradients differ from eager's by 20.0 ×" in _sameness(pair[1], run)
    same = msgspec.structs.replace(pair[0], name="other", requested=Requested(compile=True))
    assert _sameness(same, run) == ["same losses and gradients as eager"]
    assert _sameness(msgspec.structs.replace(pair[0]), run) == []  # a copy, with a step time in proportion, say


def test_the_report_begins_with_it(tmp_path):
    training(tmp_path / "eager.json")
    eager = variant(tmp_path, "eager", losses=[1.0, 0.5], gradients=[0.1, 0.1], gradient_drift=1e-6)
    compiled = variant(tmp_path, "compiled", losses=[1.0, 0.5], gradients=[2.0, 2.0])
    made = report(opened(tmp_path, eager, compiled))
    differing = "the norms of its gradients differ from eager's by up to 20.0 × (rounding explains 0.1 %)"
    assert made.sections[0].blocks[0].lines == (
        f"In doubt, compiled: {differing}, although its losses hardly do. It may not compute the same.",
    )
    assert f", and {differing}" in at_a_glance(made, ()).change


def test_losses_and_gradients_that_differ_are_one_sentence(tmp_path):
    eager = variant(tmp_path, "eager", losses=[1.0, 0.5], gradients=[0.1, 0.1])
    made = report(opened(tmp_path, eager, variant(tmp_path, "b", losses=[1.0, 0.525], gradients=[0.1, 0.11])))
    (line,) = made.sections[0].blocks[0].lines
    assert "its losses differ from eager's by 5.0 % (rounding explains <0.1 %), and the norms of its gradients" in line
    assert "by up to 10.0 %" in line


def test_gradients_that_rounding_moves_as_far_are_no_doubt(tmp_path):
    eager = variant(tmp_path, "eager", losses=[1.0, 0.5], gradients=[0.1, 0.1], gradient_drift=0.05)
    made = report(opened(tmp_path, eager, variant(tmp_path, "b", losses=[1.0, 0.5], gradients=[0.1, 0.11])))
    assert made.sections[0].id == "headline"


def test_norms_are_of_all_gradients_sparse_ones_too():
    dense, sparse = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(3, 1))
    dense.grad = torch.tensor([3.0, 0.0])
    sparse.grad = torch.sparse_coo_tensor([[0, 0]], torch.tensor([[1.0], [3.0]]), (3, 1))
    unused = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([dense, sparse, unused], lr=0.1)
    with GradientNorms() as gradients:
        optimizer.step()
        dense.grad = torch.tensor([torch.inf, 0.0])
        optimizer.step()
    optimizer.step()
    assert gradients.norms == [5.0, None]


def test_of_an_older_run_nothing_is_known(tmp_path):
    eager = variant(tmp_path, "eager", losses=[1.0])
    assert "gradients against the baseline" not in str(report(opened(tmp_path, eager)).sections)
