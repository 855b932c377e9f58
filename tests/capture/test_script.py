"""Scripts that know nothing of tracekit, run as they are."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.capture.conftest import COMPILED, perform, read_trace
from tracekit import run as runs
from tracekit.capture.child.traces import COLD, DETAIL, fit
from tracekit.capture.options import Options
from tracekit.capture.preparation import prepare
from tracekit.capture.script_or_recipe import is_script
from tracekit.cli import main
from tracekit.engine import attribute
from tracekit.engine.buckets import HOST
from tracekit.errors import NoRecipeError
from tracekit.report.warnings import warnings
from tracekit.run import Requested, divergence
from tracekit.trace import Trace

EAGER = Requested(compile=False)
ROOT = Path(runs.__file__).parents[2]
HEAD = """
import sys, torch
from torch.utils.data import DataLoader, TensorDataset
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)
    def forward(self, x):
        return self.second(self.first(x).relu())
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
    answer = perform(tmp_path, "profile", script(tmp_path, body), requested=requested, steps=steps, script=True, **more)
    assert answer.outcome == "ok", answer.traceback or answer.error
    return answer


def kinds(answer):
    return [(entry.id, entry.kind) for entry in answer.ledger.compiles]


def test_from_the_command_line_to_a_run(tmp_path):
    path, out = script(tmp_path, PLAIN + "\n    if steps == 23: print('given')"), tmp_path / "run.json"
    given = ["--backend", "aot_eager", "--steps", "2", "--passes", "1", "--device", "cpu", "-o", str(out), "--", "23"]
    done = subprocess.run(
        [sys.executable, "-m", "tracekit", "capture", str(path), *given], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    run = runs.read(out)
    assert (run.recipe, run.params, [each.name for each in run.variants]) == (
        "train",
        {"arguments": "23"},
        ["eager", "compiled"],
    )
    eager, compiled = run.variants
    assert kinds(eager) == []
    assert kinds(compiled) == [("0/0", "first"), ("0/0", "backward")]
    assert compiled.ledger.breaks == []
    assert [entry.step for entry in compiled.ledger.compiles] == [0, 0]
    assert "compiled in place: Net" in compiled.effective.remarks
    assert (len(eager.losses), len(compiled.losses)) == (20, 20)
    assert divergence(eager.losses, compiled.losses) < 1e-5
    assert 0 < eager.loss_drift < 1e-4
    assert "; same losses as eager;" in done.stderr
    for variant in run.variants:
        assert "the script ended after 23 steps: fewer than a capture takes" in variant.effective.notes
        assert (variant.measured.steps, variant.profiled.steps) == (20, 2)
        assert [*read_trace(run.trace_path(out, variant, "cold")).steps] == [0, 1, 2]
    assert (tmp_path / run.variants[0].traces.steady).parent.joinpath("measure.log").read_text() == "given\n" * 23


def test_a_model_of_torchs_own_modules_is_compiled_too(tmp_path):
    body = "net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))" + PLAIN
    answer = profiled(tmp_path, body)
    assert kinds(answer) == [("0/0", "first"), ("0/0", "backward")]
    assert "compiled in place: Sequential" in answer.effective.remarks


def test_a_module_of_torch_jit_is_left_as_it_is_and_the_run_says_why(tmp_path):
    answer = profiled(tmp_path, f"net = torch.jit.script(net)\n{PLAIN}")
    assert kinds(answer) == []
    assert answer.ledger.breaks == []
    assert answer.effective.notes[0].startswith("torch.compile does not accept modules of torch.jit.script (Net)")
    assert answer.effective.ran_eagerly == answer.effective.notes[0]


def test_one_that_compiles_itself_has_an_eager_twin(tmp_path):
    eager = profiled(tmp_path, "net = torch.compile(net, backend='aot_eager')\n" + PLAIN, requested=EAGER)
    assert kinds(eager) == []
    compiled = profiled(tmp_path, "net.compile(backend='inductor')\n" + PLAIN)
    assert kinds(compiled) == [("0/0", "first"), ("0/0", "backward")]  # by the backend that was asked for
    assert compiled.ledger.breaks == []
    assert not any("in place" in note for note in compiled.effective.remarks)


def test_a_step_compiled_whole_ends_where_it_returns(tmp_path):
    body = """
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
step = torch.compile(optimizer.step)
for _ in range(steps):
    optimizer.zero_grad()
    loss_of(net, torch.randn(6, 4)).backward()
    step()
"""
    assert len(read_trace(tmp_path / profiled(tmp_path, body).traces.steady).steps) == 2


def test_of_several_optimizers_the_first_one_counts(tmp_path):
    body = """
other = Net()
one, two = torch.optim.SGD(net.parameters(), lr=0.1), torch.optim.Adam(other.parameters())
for _ in range(steps):
    for model, optimizer in ((net, one), (other, two), (other, two)):
        optimizer.zero_grad()
        loss_of(model, torch.randn(6, 4)).backward()
        optimizer.step()
"""
    answer = profiled(tmp_path, body)
    assert "several optimizers step (SGD, Adam): a step ends where the first one does" in answer.effective.remarks
    assert "compiled in place: Net" in answer.effective.remarks
    names = event_names(tmp_path / answer.traces.steady)
    assert (names.count("Optimizer.step#SGD.step"), names.count("Optimizer.step#Adam.step")) == (2, 4)


def test_accumulated_gradients_are_steps_of_several(tmp_path):
    answer = profiled(tmp_path, PLAIN, step_every=3)
    names = event_names(tmp_path / answer.traces.steady)
    assert names.count("Optimizer.step#Adam.step") == 6
    assert sum(name.startswith("ProfilerStep#") for name in names) == 2


def test_a_step_that_the_scaler_skips_is_one(tmp_path):
    body = """
optimizer, scaler = torch.optim.SGD(net.parameters(), lr=0.1), torch.amp.GradScaler("cpu")
for at in range(steps):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = loss_of(net, torch.randn(6, 4))
    scaler.scale(loss * (float("inf") if at % 2 else 1)).backward()
    scaler.step(optimizer)
    scaler.update()
"""
    names = event_names(tmp_path / profiled(tmp_path, body, steps=4).traces.steady)
    assert sum(name.startswith("ProfilerStep#") for name in names) == 4
    assert names.count("Optimizer.step#SGD.step") == 2


def test_waiting_for_a_loader_with_workers_is_loading(tmp_path):
    body = """
if __name__ == "__main__":
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    while True:
        for (x,) in DataLoader(TensorDataset(torch.randn(600, 4)), batch_size=6, num_workers=2):
            optimizer.zero_grad()
            loss_of(net, x).backward()
            optimizer.step()
"""
    answer = profiled(tmp_path, body, requested=EAGER, steps=4)
    cost = attribute(Trace.load(tmp_path / answer.traces.steady))
    assert len(cost.trace.steps) == 4
    assert (cost.host[:, HOST.index("dataload")] > 0).all()


def test_its_own_profilers_are_idle(tmp_path):
    body = """
import tracekit
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
def ready(profiler): open("ready", "w")
with torch.profiler.profile(
    schedule=torch.profiler.schedule(wait=1, warmup=1, active=2), on_trace_ready=ready, with_stack=True
) as profiler, tracekit.record("own.json"):
    for _ in range(steps):
        with torch.autograd.profiler.profile() as older:
            optimizer.zero_grad()
            loss_of(net, torch.randn(6, 4)).backward()
            optimizer.step()
        profiler.step()
        print(profiler.key_averages().table(), older.key_averages().table(sort_by="cpu_time_total"), profiler.step_num)
"""
    answer = profiled(tmp_path, body)
    assert len(read_trace(tmp_path / answer.traces.steady).steps) == 2
    assert "the script's own profiler was kept idle: two at once crash" in answer.effective.remarks
    assert not [*tmp_path.glob("own*"), *tmp_path.glob("ready")]


def test_a_pass_that_died_leaves_what_was_measured(tmp_path, capsys):
    body = PLAIN + "    if torch.autograd._profiler_enabled(): import os; os.kill(os.getpid(), 9)\n"
    out = tmp_path / "run.json"
    given = ["--variants", "eager", "--steps", "2", "--device", "cpu", "-o", str(out), "--", "20"]
    assert main(["capture", str(script(tmp_path, body)), *given]) == 1
    (eager,) = runs.read(out).variants
    assert (eager.measured.steps, eager.profiled) == (17, None)
    capsys.readouterr()
    assert main(["report", str(out), "--no-cache"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "a step unprofiled. Where its time goes cannot be answered without a trace (crash: profile: killed" in said
    assert "problem: crash: profile: killed, as when memory runs out" in said
    assert "remark: a step is 1 step of Adam." in said


def test_one_without_steps_says_so(tmp_path):
    answer = perform(tmp_path, "measure", script(tmp_path, "print(net(torch.zeros(1, 4)))"), script=True)
    assert answer.outcome == "error"
    assert answer.error.startswith("no optimizer stepped")


@pytest.mark.parametrize(
    ("body", "arguments", "error", "printed"),
    [
        (
            "import argparse; argparse.ArgumentParser().parse_args(['-x'])",
            [],
            "(exit code 2) before its",
            "arguments: -x",
        ),
        ("print('help'); sys.exit()", ["--help"], "(exit code 0) before its first step", "help"),
        ("sys.exit('no data')", [], "(exit code 1) before its first step", "no data"),
        (f"steps = 7; {PLAIN}sys.exit(3)", [], "(exit code 3) after step 7", ""),
    ],
)
def test_one_that_ends_itself_is_told_in_its_own_words(tmp_path, body, arguments, error, printed):
    path = script(
        tmp_path, body.replace("; \n", "\n"), head=HEAD.replace("int(sys.argv[1]) if len(sys.argv) > 1 else", "")
    )
    answer = perform(tmp_path, "measure", path, script=True, arguments=arguments)
    assert answer.outcome == "error"
    assert f"the script ended itself {error}" in answer.error
    assert printed in answer.traceback
    assert "Traceback" not in answer.traceback


def test_after_the_first_step_no_class_is_touched(tmp_path):
    """Assigning to Module anew in each step cost it 70 to 300 µs: thousands of subclasses look up what they inherit."""
    body = PLAIN.replace("for _ in", "for step in").replace(
        "    optimizer.step()\n",
        "    optimizer.step()\n"
        "    call = torch.nn.Module.__call__\n"
        "    if step == 3: ours = torch.nn.Module.__call__ = lambda *args, call=call: call(*args)\n"
        "    assert step <= 3 or call is ours\n",
    )
    assert body != PLAIN
    answer = perform(tmp_path, "measure", script(tmp_path, body), script=True, arguments=["23"])
    assert answer.outcome == "ok", answer.traceback


def test_a_script_may_leave_its_folder(tmp_path):
    folder, body = tmp_path / "here", "import os\nos.chdir('/')\n" + PLAIN
    folder.mkdir()
    script(folder, body)
    given = ["--steps", "2", "--passes", "1", "--device", "cpu", "--variants", "eager", "--", "4"]
    done = subprocess.run(
        [sys.executable, "-m", "tracekit", "capture", "train.py", *given],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Wrote run.json\n" in done.stderr
    run = runs.read(folder / "run.json")
    (eager,) = run.variants
    assert run.trace_path(folder / "run.json", eager).is_file()
    assert eager.traces.steady.startswith("run-")
    # Of its four steps three are the first: the pace rests on one, which has no spread.
    assert eager.measured.steps == 1
    assert "a step, which is 1 step of Adam;" in done.stderr
    assert "rests on one step only" in next(
        warnings(SimpleNamespace(variant=eager), SimpleNamespace(name="eager", variant=eager))
    )


def test_a_parameter_for_a_script_is_pointed_to_its_arguments(tmp_path):
    with pytest.raises(NoRecipeError, match="-- --epochs 3"):
        prepare(Options(script(tmp_path, PLAIN), params={"epochs": "3"}))


def test_an_unknown_option_is_pointed_to_its_arguments(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["capture", "train.py", "--epochs", "3"])
    assert "arguments: --epochs 3. A script's own arguments go after --" in capsys.readouterr().err


def test_what_it_raises_is_told_as_it_would_be_without_us(tmp_path):
    body = PLAIN + "    if _ == 4: raise ValueError('the data is gone')\n"
    answer = perform(tmp_path, "profile", script(tmp_path, body), script=True)
    assert (answer.outcome, answer.error) == ("error", "ValueError: the data is gone")
    assert answer.traceback.count('File "') == 1
    assert "runpy" not in answer.traceback


def test_one_that_fails_in_a_variant_leaves_the_other(tmp_path):
    body = PLAIN + "    if torch._dynamo.utils.counters['frames'] and _ > 2: raise ValueError('compiled')\n"
    path, out = script(tmp_path, "import torch._dynamo\n" + body), tmp_path / "run.json"
    given = ["--backend", "aot_eager", "--steps", "2", "--passes", "1", "--device", "cpu", "-o", str(out), "--", "20"]
    done = subprocess.run(
        [sys.executable, "-m", "tracekit", "capture", str(path), *given], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "compiled: failed (measure: ValueError: compiled)" in done.stderr
    assert [each.outcome for each in runs.read(out).variants] == ["ok", "error"]


def test_an_unexpected_end_leaves_whole_steps_only(tmp_path):
    answer = profiled(tmp_path, PLAIN.replace("steps)", "16)"), requested=EAGER, steps=20)
    found = read_trace(tmp_path / answer.traces.steady)
    assert [*found.steps] == [12, 13, 14, 15]
    assert (answer.profiled.steps, answer.ended, answer.traces.detail) == (4, 16, None)
    assert "after the last step" in event_names(tmp_path / answer.traces.steady)


@pytest.mark.parametrize("available", [1, 4, 8, 12, 15, 16, 30, 100])
def test_windows_fit_into_the_steps_there_are(available):
    cold, warmup, steady, detail = fit(20, available)
    assert 1 <= steady.steps <= 20
    assert sum(each.steps + each.warmup for each in (cold, steady, detail) if each) + warmup == available
    assert fit(20, None)[::3] == (COLD, DETAIL)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def setup(ctx): ...", False),
        ("setup = lambda ctx: None", False),
        ("from base import setup", False),
        ("def setup(rank, world_size): ...", True),
        ("print('def setup(ctx)')", True),
        ("if True:\n  def train(): ...", True),
    ],
)
def test_a_recipe_defines_setup(tmp_path, source, expected):
    path = tmp_path / "x.py"
    path.write_text(source)
    assert is_script(path) is expected


@pytest.mark.parametrize("given", [[], ["--script"], ["--step-at", "train.py:1"]])
def test_one_that_is_no_valid_python_is_told_its_line(tmp_path, monkeypatch, capsys, given):
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("import torch\nfor step in range(3)\n    pass\n")
    assert main(["capture", "train.py", *given]) == 1
    assert main(["audit", "train.py", *given]) == 1
    said = capsys.readouterr().err
    assert said.count("train.py:2: is not valid Python (expected ':'). Fix that line; python train.py shows it") == 2
    assert "recipe" not in said


def event_names(path):
    return [
        event["name"]
        for event in read_trace(path).keys["traceEvents"]
        if event.get("ph") == "X" and event.get("cat") == "user_annotation"
    ]
