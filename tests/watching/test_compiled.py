"""Loops with compiled code: the watch sees what is compiled, breaks no graph, and has nothing compiled again."""

import gc
import os

import pytest
import torch
from torch._dynamo import convert_frame
from torch._dynamo.testing import CompileCounter
from torch.utils.data import DataLoader

import tracekit
from tests.watching.small_training import Numbers, steps, watch


def looped(folder, compile_step):
    """Six steps, the last of another shape, watched if there is a folder; how many graphs and calls were compiled."""
    torch._dynamo.reset()
    counter = CompileCounter()
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def take(batch):
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()

    if compile_step:
        take = torch.compile(take, backend=counter)
    else:
        model = torch.compile(model, backend=counter, dynamic=False)

    def loop():
        for number, _ in enumerate(DataLoader(Numbers(6))):
            gc.collect(0)
            take(torch.ones(2 if number < 5 else 3, 4))

    if folder is None:
        loop()
    else:
        with watch(folder):
            loop()
    return counter.frame_count, counter.op_count


@pytest.mark.parametrize("compile_step", [False, True])
def test_compiled_code_stays_as_it_is(tmp_path, compile_step):
    plain = looped(None, compile_step)
    assert looped(tmp_path, compile_step) == plain
    seen = steps(tmp_path)
    assert [step.number for step in seen] == list(range(6))
    assert seen[0].compiles >= 1
    assert seen[0].compile_ns > 0
    assert [step.compiles for step in seen[2:5]] == [0, 0, 0]
    assert seen[5].compiles >= 1  # for the other shape
    assert all(step.compile_ns <= step.host_ns for step in seen)
    assert all(step.collections >= 1 for step in seen)


@pytest.mark.parametrize("workers", [0, 1])
def test_nothing_of_ours_is_compiled_in_a_loop_over_a_loader(tmp_path, monkeypatch, workers):
    compiled, real = [], convert_frame._compile

    def noted(code, *args, **kwargs):
        compiled.append(code)
        return real(code, *args, **kwargs)

    monkeypatch.setattr(convert_frame, "_compile", noted)
    torch._dynamo.reset()
    parameter = torch.nn.Parameter(torch.ones(4))

    def epoch(loader):
        return sum((parameter * batch).sum() for batch in loader)

    with watch(tmp_path, step="an epoch") as watched:
        watched.step()
        loader = DataLoader(Numbers(3), num_workers=workers)
        torch.compile(epoch, backend="eager")(loader)
        torch.compile(epoch, backend="eager")(watched.batches(loader))
    ours = os.path.dirname(tracekit.__file__)
    assert compiled
    assert [code.co_name for code in compiled if code.co_filename.startswith(ours)] == []


def test_compilations_are_seen_after_dynamo_was_reset(tmp_path, monkeypatch):
    from tracekit.watching import observation

    monkeypatch.setattr(observation, "_LOOK_NS", 0)
    parameter = torch.nn.Parameter(torch.ones(4))
    optimizer = torch.optim.SGD([parameter], lr=0.1)

    def take(compiled):
        compiled(parameter).sum().backward()
        optimizer.step()

    with watch(tmp_path):
        take(torch.sin)
        torch._dynamo.reset()
        take(torch.sin)
        take(torch.compile(torch.cos, backend="eager"))
    assert steps(tmp_path)[-1].compiles == 1
