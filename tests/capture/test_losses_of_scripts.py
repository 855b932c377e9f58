"""Losses of scripts, which do not report them: read where backward passes begin, and compared between variants."""

import math
from types import SimpleNamespace

import pytest
import torch

from tests.capture.capturing import COMPILED, perform
from tests.capture.small_scripts import script
from tracekit.capture.child.loss_check import Losses
from tracekit.capture.child.script import with_remarks
from tracekit.capture.child.step_ends import Boundary, StepEnds
from tracekit.capture.child.timing import run_steps
from tracekit.capture.job import Job, PassResult
from tracekit.capture.passes import with_drift
from tracekit.run import divergence

# Two losses a step: one of a function that trains inside compiled code, one of a module with dropout. From the
# eleventh step on, the compiled code computes something else.
TWO_LOSSES = """
import random, numpy
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
def whole(x, late):
    loss = loss_of(net, x)
    if torch.compiler.is_compiling() and late: loss = loss * 1.01
    loss.backward()
whole = torch.compile(whole)
words = {"some", "words", "in", "any", "order"}
for at in range(steps):
    optimizer.zero_grad()
    x = torch.randn(6, 4) * (random.random() + numpy.random.rand() + 0.1 * [*words].index("order"))
    whole(x, at >= 10)
    torch.autograd.backward(torch.nn.functional.dropout(net(x)).square().mean())
    net(x).backward(torch.zeros(6, 1))  # of no single number
    optimizer.step()
"""


def losses(tmp_path, body, **more):
    result = perform(tmp_path, "check", script(tmp_path, body), is_script=True, **more)
    assert result.outcome == "ok", result.traceback or result.error
    return result.losses


def test_variants_train_alike_or_are_told_apart(tmp_path):
    eager, compiled = losses(tmp_path, TWO_LOSSES), losses(tmp_path, TWO_LOSSES, requested=COMPILED)
    assert len(eager) == len(compiled) == 2 * 20
    assert len({*eager}) == len(eager)
    assert divergence(eager[:20], compiled[:20]) < 1e-5
    assert divergence(eager, compiled) > 1e-3


def test_a_closure_tells_where_no_backward_pass_does():
    seen = Losses()
    seen.optimizer_returned(torch.tensor(3.0))
    seen.backward_from((torch.tensor(2.0), torch.ones(3), torch.tensor([[1.0]])))
    seen.optimizer_returned(torch.tensor(2.0))  # of the closure that began the backward pass
    seen.backward_from(torch.tensor(math.inf))
    seen.optimizer_returned(None)
    seen.optimizer_returned(0.5)
    assert run_steps(seen.steps(), lambda: None).losses == [3.0, 2.0, 1.0, None, 0.5]


def test_what_a_closure_returns_is_told_with_the_step():
    weight, losses_heard = torch.ones(3, requires_grad=True), []

    def closure():
        loss = weight.square().sum()
        (weight.grad,) = torch.autograd.grad(loss, weight)
        return loss

    optimizer = torch.optim.SGD([weight], lr=0.1)
    with StepEnds(losses_heard.append):
        optimizer.step(closure)
        optimizer.step()
    assert [each if each is None else round(each.item(), 3) for each in losses_heard] == [3.0, None]


@pytest.mark.parametrize(
    ("stage", "losses", "is_explained"), [("check", [], True), ("check", [1.0], False), ("profile", [], False)]
)
def test_without_losses_it_says_why(stage, losses, is_explained):
    steps = SimpleNamespace(
        job=Job(stage=stage, program="train.py"),
        script_variant=SimpleNamespace(compiled=[], scripted=[]),
        boundary=Boundary.CALL,
        caller=None,
        optimizers=[],
        backward=SimpleNamespace(in_a_step=lambda: 0),
    )
    remarks = with_remarks(PassResult(losses=losses), steps).effective.remarks
    assert any(each.startswith("losses were not compared: no backward pass") for each in remarks) is is_explained


def test_while_a_cuda_graph_is_recorded_nothing_is_read(monkeypatch):
    class OnGpu(torch.Tensor):
        is_cuda = True

    losses = Losses()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for recording in (True, False):
        monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda recording=recording: recording)
        losses.backward_from(torch.tensor(2.0).as_subclass(OnGpu))
    assert run_steps(losses.steps(), lambda: None).losses == [2.0]


@pytest.mark.parametrize(
    ("again", "drift", "left", "said"),
    [
        (PassResult(losses=[1.0, 0.5000001]), pytest.approx(2e-7), [1.0, 0.5], ""),
        (PassResult(losses=[1.0, None]), None, [1.0, 0.5], ""),
        (PassResult(losses=[1.1, 0.5]), None, [], "losses were not compared: the script draws random numbers"),
        (PassResult(outcome="error", error="it died"), None, [1.0, 0.5], "is unknown: it died"),
    ],
)
def test_how_far_losses_move_is_told_by_another_run(again, drift, left, said):
    checked = with_drift(PassResult(losses=[1.0, 0.5]), lambda: again)
    assert (checked.loss_drift, checked.losses) == (drift, left)
    assert said in "".join(checked.effective.remarks)


def test_what_has_no_losses_is_not_run_again():
    for checked in (PassResult(), PassResult(outcome="error", losses=[1.0])):
        assert with_drift(checked, lambda: pytest.fail("it was")) is checked
