"""Where a step of a script ends, and what a step is: with an optimizer, and without one."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import warm

from tests.capture.capturing import COMPILED, perform
from tests.capture.small_scripts import HEAD, PLAIN, script
from tracekit import run as runs
from tracekit.capture.child.program import marked
from tracekit.capture.child.script import what_a_step_is
from tracekit.capture.child.step_ends import Boundary
from tracekit.capture.options import Options
from tracekit.capture.preparation import prepare
from tracekit.cli import main
from tracekit.errors.capturing import BadParameterError, NoSuchLineError
from tracekit.report.sections.headline import _gave_up, _never_compiled

OPTIMIZER = "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
TRAINING = """
    optimizer.zero_grad()
    loss_of(net, torch.randn(6, 4)).backward()
    optimizer.step()
"""
BODIES = {
    "without a module": (
        "w = torch.zeros(4, 1, requires_grad=True)\nfor _ in range(steps):\n"
        "    (torch.randn(6, 4) @ w - 1).square().mean().backward()\n"
        "    with torch.no_grad():\n        w -= 0.1 * w.grad\n        w.grad = None\n",
        "backward",
        "1 backward pass",
        None,
    ),
    "an optimizer, but no module": (
        "w = torch.zeros(4, 1, requires_grad=True)\noptimizer = torch.optim.SGD([w], lr=0.1)\n"
        "for _ in range(steps):\n    (torch.randn(6, 4) @ w - 1).square().mean().backward()\n"
        "    (torch.randn(6, 4) @ w - 1).square().mean().backward()\n    optimizer.step()\n    optimizer.zero_grad()\n",
        "optimizer",
        "1 step of SGD, 2 micro-batches (backward passes)",
        None,
    ),
    "a GAN": (
        "other = torch.nn.Linear(4, 4)\nfirst = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "second = torch.optim.Adam(other.parameters())\nfor _ in range(steps):\n"
        "    loss_of(net, other(torch.randn(6, 4)).detach()).backward()\n    first.step()\n"
        "    loss_of(net, other(torch.randn(6, 4))).backward()\n    second.step()\n",
        "optimizer",
        "1 step of SGD and what the others do meanwhile, 2 backward passes",
        1,
    ),
    "in eval mode": ("net.eval()\n" + PLAIN, "optimizer", "1 step of Adam", 1),
    "a wrapper in eval mode": (
        "net = torch.nn.Sequential(net)\nnet.training = False\n" + PLAIN,
        "optimizer",
        "1 step of Adam",
        1,
    ),
    "accumulating": (
        OPTIMIZER
        + "for at in range(steps):\n    loss_of(net, torch.randn(6, 4)).backward()\n"
        + "    if at % 4 == 3:\n        optimizer.step()\n        optimizer.zero_grad()\n",
        "optimizer",
        "1 step of SGD, 4 micro-batches (backward passes)",
        1,
    ),
    "only inferring": (
        "net.eval()\nwith torch.no_grad():\n    for _ in range(steps): net(torch.randn(6, 4))\n",
        "call",
        "1 call of Net",
        1,
    ),
    "stepping by hand": (
        "for _ in range(steps):\n    loss_of(net, torch.randn(6, 4)).backward()\n"
        "    with torch.no_grad():\n        for each in net.parameters(): each -= 0.1 * each.grad; each.grad = None\n",
        "training_call",
        "1 call of Net",
        1,
    ),
    "with functions": (
        "from torch.func import functional_call, grad\nweights = dict(net.named_parameters())\n"
        "loss = lambda weights, x: functional_call(net, weights, (x,)).square().mean()\n"
        "for _ in range(steps):\n    found = grad(loss)(weights, torch.randn(6, 4))\n"
        "    weights = {name: (each - 0.1 * found[name]).detach() for name, each in weights.items()}\n",
        "training_call",
        "1 call of Net",
        None,
    ),
    "after a lazy call": (
        "net = torch.nn.Sequential(torch.nn.LazyLinear(8), torch.nn.Linear(8, 1))\n"
        "with torch.no_grad(): net(torch.randn(6, 4))\n" + PLAIN,
        "optimizer",
        "1 step of Adam",
        1,
    ),
    "marked": (
        "import tracekit\n"
        + OPTIMIZER
        + f"for _ in range(steps):\n  for _ in range(3):{TRAINING}\n  tracekit.step()\n",
        "mark",
        "1 mark reached, 3 micro-batches (backward passes)",
        None,
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_step_is_what_the_script_makes_it(tmp_path, name):
    body, boundary, step, graphs = BODIES[name]
    result = perform(
        tmp_path, "measure", script(tmp_path, body), is_script=True, requested=COMPILED, warmup=3, arguments=["60"]
    )
    assert result.outcome == "ok", result.traceback or result.error
    assert (result.boundary, result.step) == (boundary, step)
    if graphs is not None:
        assert result.measured.compiles >= graphs  # compiled in place, by Module.compile


@pytest.mark.parametrize(
    ("boundary", "every", "batches", "said"),
    [
        (Boundary.OPTIMIZER, 1, 1, "1 step of Adam"),
        (Boundary.OPTIMIZER, 1, 4, "1 step of Adam, 4 micro-batches (backward passes)"),
        (Boundary.OPTIMIZER, 4, 16, "4 steps of Adam, 16 micro-batches (backward passes)"),
        (Boundary.OPTIMIZER, 4, 4, "4 steps of Adam"),
        (Boundary.MARK, 2, 0, "2 marks reached"),
        (Boundary.TRAINING_CALL, 3, 3, "3 calls of Linear"),
    ],
)
def test_steps_of_several_ends_say_how_much_that_is(boundary, every, batches, said):
    steps = SimpleNamespace(
        boundary=boundary,
        job=SimpleNamespace(step_every=every),
        backward=SimpleNamespace(in_a_step=lambda: batches),
        optimizers=["Adam"],
        caller=torch.nn.Linear(1, 1),
    )
    assert what_a_step_is(steps) == said


@pytest.mark.parametrize("stage", ["measure", "profile"])
def test_calls_can_be_steps_although_an_optimizer_steps(tmp_path, stage):
    """`--step-at call`: each of the calls before the optimizer steps is a step of its own."""
    body = OPTIMIZER + (
        "for at in range(steps):\n    loss_of(net, torch.randn(6, 4)).backward()\n"
        "    if at % 4 == 3:\n        optimizer.step()\n        optimizer.zero_grad()\n"
    )
    path = script(tmp_path, body)
    result = perform(tmp_path, stage, path, is_script=True, steps=2, warmup=3, step_at="call", arguments=["60"])
    assert result.outcome == "ok", result.traceback or result.error
    assert (result.boundary, result.step) == ("training_call", "1 call of Net")


def test_a_line_ends_a_step_in_every_pass(tmp_path):
    body = OPTIMIZER + f"for _ in range(steps):\n  for _ in range(2):{TRAINING}\n  done = True\n"
    path = script(tmp_path, body)
    line = (HEAD + body).splitlines().index("  done = True") + 1
    for stage, steps, ended in (("measure", 16, 16), ("profile", 40, None)):
        result = perform(
            tmp_path, stage, path, is_script=True, steps=2, warmup=3, step_at=f"{path}:{line}", arguments=[str(steps)]
        )
        assert result.outcome == "ok", result.traceback or result.error
        assert result.step == "1 mark reached, 2 micro-batches (backward passes)"
        assert result.ended == ended


def test_layers_that_are_trained_one_by_one_are_not_compiled_and_the_headline_says_so(tmp_path):
    body = """
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(steps):
    optimizer.zero_grad()
    torch.nn.functional.linear(torch.randn(6, 4), net.first.weight).sum().backward()
    optimizer.step()
"""
    result = perform(tmp_path, "profile", script(tmp_path, body), is_script=True, requested=COMPILED, steps=2, warmup=3)
    assert result.effective.mode == "eager"
    assert "never calls a whole model" in result.effective.ran_eagerly
    profile = SimpleNamespace(name="compiled", variant=SimpleNamespace(effective=result.effective))
    assert _never_compiled(profile).startswith("compiled ran eagerly: nothing was compiled")


def test_the_headline_says_where_the_compiler_gave_up():
    limits = [runs.Limit(name="forward", t_ns=0), runs.Limit(name="forward", t_ns=1)]
    variant = SimpleNamespace(ledger=runs.Ledger(limits=limits))
    assert "gave up on forward at the recompile limit" in _gave_up(SimpleNamespace(variant=variant))


def test_without_steps_it_runs_once_and_says_what_to_do(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    body = """
import multiprocessing
def work(): pass
if __name__ == "__main__":
    multiprocessing.Process(target=work).start()
    open("ran", "a").write("x")
"""
    Path("train.py").write_text(body)
    assert main(["capture", "train.py", "--backend", "aot_eager"]) == 1
    said = capsys.readouterr().err
    for each in ("no optimizer stepped", "started 1 process, whose", "--step-at FILE:LINE", "tracekit.step()"):
        assert each in said
    assert "compiled: measuring" not in said
    assert not Path("run.json").exists()
    assert [each for each in Path().iterdir() if each.is_dir()] == []


def test_an_exception_keeps_what_was_measured(tmp_path, capsys):
    path = script(tmp_path, PLAIN + "    if _ == 24: raise ValueError('epoch 2')\n")
    out = tmp_path / "run.json"
    given = ["--variants", "eager", "--steps", "2", "--device", "cpu", "-o", str(out), "--script"]
    done = warm.tracekit("capture", path, *given)
    assert done.returncode == 1
    (eager,) = runs.read(out).variants
    assert (eager.outcome, eager.error) == ("error", "measure: ValueError: epoch 2")
    assert eager.measured.steps == 22
    assert eager.profiled.steps == 2
    assert main(["report", str(out), "--no-cache"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "problem: error: measure: ValueError: epoch 2" in said
    assert re.search(r"eager takes \S+ [mµ]s a step under the profiler \(\S+ [mµ]s without it\)", said)


def test_a_module_of_a_package_runs_as_python_would_run_it(tmp_path, monkeypatch):
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "model.py").write_text(HEAD)
    (package / "train.py").write_text(
        f"from .model import *\nimport json\n{PLAIN}print(json.dumps([sys.path[0], sys.argv]))"
    )
    monkeypatch.chdir(tmp_path)
    result = perform(tmp_path, "measure", "pkg.train", is_script=True, module=True, arguments=["5"])
    assert result.outcome == "ok", result.traceback or result.error
    plain = warm.run(["-m", "pkg.train", "5"])
    assert (tmp_path / "measure.log").read_text() == plain.stdout
    prepared = prepare(Options("pkg.train", module=True, backend="aot_eager"))
    assert (prepared.run.recipe, prepared.run.script, prepared.is_script) == ("train", "pkg.train", True)


def test_a_script_with_a_setup_of_its_own_is_one_if_it_is_said(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("def setup(config): ...\n")
    assert prepare(Options(path, is_script=True, backend="aot_eager")).is_script


@pytest.mark.parametrize("where", ["nowhere.py:3", "train.py:2", "train.py:x", "later"])
def test_a_place_for_steps_must_be_one(tmp_path, monkeypatch, where):
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("print(\n1)\n")
    with pytest.raises(BadParameterError if where == "later" else NoSuchLineError):
        prepare(Options("train.py", step_at=where))


def test_a_mark_stands_before_the_outermost_statement_of_its_line():
    tree = marked(b"x = 1\nfor _ in range(3): x += 1\nif x:\n    y = 2\n", "t.py", 2)
    assert [type(each).__name__ for each in tree.body] == ["Assign", "Expr", "For", "If"]
    assert [type(each).__name__ for each in marked(b"if 1:\n    y = 2\n", "t.py", 2).body[0].body] == ["Expr", "Assign"]
