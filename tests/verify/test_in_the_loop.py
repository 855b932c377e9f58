"""The examples of docs/in-the-loop.md, each as a program of its own: what they leave, and whether a step takes what a
capture of the same program says."""

import json
import os
import re
import statistics
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import tracekit
from tracekit import run as runs
from tracekit.profile import open_subject
from tracekit.watched import Flag, Record

pytestmark = pytest.mark.skipif(not os.environ.get("TRACEKIT_VERIFY"), reason="TRACEKIT_VERIFY is not set: make verify")
PAGE = Path(__file__).parents[2] / "docs" / "in-the-loop.md"
HEADED = r"^## With (?:the Trainer of )?([\w.]+)\n+```python\n(.*?)```"
EXAMPLES = dict(re.findall(HEADED, PAGE.read_text(), re.M | re.S))
assert [*EXAMPLES] == ["torch.profiler", "Lightning", "transformers", "Accelerate"]
EXAMPLES["pytorch_lightning"] = EXAMPLES["Lightning"].replace("import lightning as L", "import pytorch_lightning as L")
NEEDS = {"Lightning": "lightning", "transformers": "transformers", "Accelerate": "accelerate"}
WATCHED = ["Lightning", "pytorch_lightning", "transformers", "Accelerate"]
# What the framework's own log was given is printed last.
LOGGED = {
    "transformers": "import json; print(json.dumps(trainer.state.log_history))",
    "Accelerate": "import json; print(json.dumps(logged))",
}
KEPT_LOG = """
import accelerate
logged = []
accelerate.Accelerator.log = lambda self, values, **_: logged.append(values)
"""
STEPS = {"Lightning": 200, "pytorch_lightning": 200, "transformers": 150, "Accelerate": 150}
APART = {"Lightning": 3, "pytorch_lightning": 3, "transformers": 2, "Accelerate": 2}  # at least: ends of epochs
SETTLED = 20  # steps, after which the allocator, caches and the optimizer's state are warm
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
TRACED = """
import torch, tracekit
schedule = torch.profiler.schedule(wait=20, warmup=1, active=3, repeat=1)
profiler = torch.profiler.profile(schedule=schedule, on_trace_ready=tracekit.trace_handler("traces"))
step = torch.optim.Adam.step
def traced(*args, **kwargs):
    step(*args, **kwargs)
    profiler.step()
torch.optim.Adam.step = traced
profiler.start()
"""
HANDED_ON = {
    "accelerate": """
import torch, tracekit
from accelerate import Accelerator
from accelerate.utils import ProfileKwargs
schedule = {"wait": 1, "warmup": 1, "active": 2, "repeat": 1}
kwargs = ProfileKwargs(schedule_option=schedule, on_trace_ready=tracekit.trace_handler("traces"))
with Accelerator(cpu=True, kwargs_handlers=[kwargs]).profile() as profiler:
    for _ in range(6):
        torch.ones(3).sin()
        profiler.step()
""",
    "lightning": """
import lightning as L, torch, tracekit
from lightning.pytorch.profilers import PyTorchProfiler
from lightning.pytorch.demos.boring_classes import BoringModel
profiler = PyTorchProfiler(on_trace_ready=tracekit.trace_handler("traces"))
L.Trainer(max_epochs=1, limit_train_batches=12, limit_val_batches=0, accelerator="cpu", profiler=profiler,
    logger=False, enable_checkpointing=False, enable_progress_bar=False).fit(BoringModel())
""",
    "transformers": """
import torch, tracekit
from torch.utils.data import Dataset
from transformers import Trainer, TrainerCallback, TrainingArguments
class Points(Dataset):
    def __len__(self): return 64
    def __getitem__(self, at): return {"x": torch.randn(8)}
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(8, 1)
    def forward(self, x): return {"loss": self.net(x).square().mean()}
class Steps(TrainerCallback):
    def on_step_end(self, *_, **__): profiler.step()
arguments = TrainingArguments("trained", max_steps=8, use_cpu=True, report_to=[], save_strategy="no")
schedule = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
with torch.profiler.profile(schedule=schedule, on_trace_ready=tracekit.trace_handler("traces")) as profiler:
    Trainer(Net(), arguments, train_dataset=Points(), callbacks=[Steps()]).train()
""",
    "torch_geometric": """
import torch, tracekit
from torch_geometric.nn import GCNConv
conv, edges = GCNConv(8, 8), torch.randint(50, (2, 200))
with torch.profiler.profile(on_trace_ready=tracekit.trace_handler("traces")):
    for _ in range(5):
        conv(torch.randn(50, 8), edges).sum().backward()
""",
}


def program(folder, code):
    """Run the code as a script in the folder; what it prints."""
    (folder / "train.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "train.py"], cwd=folder, env=ONE_THREAD, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "failed" not in done.stderr, done.stderr
    return done.stdout


def needed(name):
    framework = NEEDS.get(name, name)
    if framework != "torch.profiler" and find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed: it comes with the extra verify")
    if name in WATCHED and not hasattr(tracekit, "watch"):
        pytest.skip("this version has no tracekit.watch")
    return EXAMPLES.get(name, "")


def with_log(name):
    """The example, which prints at last what the framework's log was given, unless a file has it."""
    return (KEPT_LOG if name == "Accelerate" else "") + needed(name) + LOGGED.get(name, "")


def logged(name, folder, printed):
    """The dictionaries, or the rows, that the framework's log was given."""
    if name in LOGGED:
        return json.loads(printed.splitlines()[-1])
    header, *rows = next(folder.rglob("metrics.csv")).read_text().splitlines()
    pairs = [zip(header.split(","), row.split(","), strict=True) for row in rows]
    return [{column: float(cell) for column, cell in row if cell} for row in pairs]


@pytest.mark.parametrize("name", WATCHED)
def test_the_step_of_a_callback_is_that_of_a_capture(name, tmp_path, record_property):
    printed = program(tmp_path, with_log(name))
    (record,) = (tmp_path / "watch").glob("*.watch")
    steps = Record.open(record).steps.entries()
    assert len(steps) == STEPS[name]
    apart = [step.number for step in steps if step.flags & Flag.APART]
    assert APART[name] <= len(apart) <= 2 * APART[name] + 2, apart
    like_others = [step for step in steps[SETTLED:] if not step.flags & (Flag.APART | Flag.TRACED)]
    figures = [entry["tracekit/step_ms"] for entry in logged(name, tmp_path, printed) if "tracekit/step_ms" in entry]
    assert figures
    assert statistics.median(figures) == pytest.approx(statistics.median(s.step_ns for s in like_others) / 1e6, rel=0.3)
    (tmp_path / "plain.py").write_text(EXAMPLES[name])
    command = ["capture", "plain.py", "-o", "run.json", "--variants", "eager", "--passes", "3", "--threads", "1"]
    subprocess.run([sys.executable, "-m", "tracekit", *command], cwd=tmp_path, env=ONE_THREAD, check=True)
    run = runs.read(tmp_path / "run.json")
    measured = run.variants[0].measured
    was_busy = runs.was_busy(run.environment, run.environment["cpu_load"])
    # A capture on a CPU leaves out what a thread that is ready waits for a core.
    watched_ns = statistics.median(step.step_ns - max(step.queued_ns, 0) for step in like_others)
    # Its mean has the evaluations, too; its median does not, because they are few.
    medians = [statistics.median(timed_pass.step_all_ns) for timed_pass in measured.passes]
    ratio = watched_ns / statistics.median(medians)
    row = {"example": name, "watched, ms": f"{watched_ns / 1e6:.3f}"}
    row |= {"captured, ms": ", ".join(f"{median / 1e6:.3f}" for median in medians), "ratio": f"{ratio:.3f}"}
    record_property("table", ["steps of callbacks, and of captures", row])
    if not was_busy:  # else what other work takes away differs more than that
        assert 0.7 < ratio < 1.4


@pytest.mark.parametrize("name", WATCHED)
def test_the_shares_of_a_trace_join_what_is_logged_last(name, tmp_path):
    entries = logged(name, tmp_path, program(tmp_path, TRACED + with_log(name)))
    with_shares = [entry for entry in entries if "tracekit/share/cpu_compute" in entry]
    assert len(with_shares) == 1
    assert with_shares[0] == entries[-1] or name.endswith("ightning")  # whose own figures may come after it
    assert 0 < with_shares[0]["tracekit/share/cpu_compute"] <= 1


@pytest.mark.parametrize("name", WATCHED)
def test_switched_off_nothing_is_left(name, tmp_path, monkeypatch):
    monkeypatch.setitem(ONE_THREAD, "TRACEKIT_OFF", "1")
    program(tmp_path, needed(name))
    assert not (tmp_path / "watch").exists()


@pytest.mark.parametrize("name", WATCHED)
def test_an_exception_of_ours_ends_no_training(name, tmp_path):
    code = needed(name)
    (tmp_path / "train.py").write_text(
        "import tracekit\ndef fail(*_, **__): raise RuntimeError('planted')\ntracekit.watch = fail\n" + code
    )
    done = subprocess.run(
        [sys.executable, "train.py"], cwd=tmp_path, env=ONE_THREAD, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("tracekit's callback failed, and your program goes on without it") == 1


def test_the_example_of_the_handler_leaves_a_run_and_a_report(tmp_path):
    program(tmp_path, EXAMPLES["torch.profiler"])
    assert [variant.name for variant in runs.read(tmp_path / "traces" / "run.json").variants] == ["cycle 1", "cycle 2"]
    assert "cycle 2" in (tmp_path / "traces" / "report.html").read_text()


@pytest.mark.parametrize("framework", HANDED_ON)
def test_frameworks_hand_it_on(framework, tmp_path):
    needed(framework)
    program(tmp_path, HANDED_ON[framework])
    assert runs.read(tmp_path / "traces" / "run.json").variants
    assert (tmp_path / "traces" / "report.html").is_file()


RANKS = """
import os, torch, tracekit
torch.distributed.init_process_group("gloo")
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
schedule = torch.profiler.schedule(wait=1, warmup=1, active=3, repeat=2)
handler = tracekit.trace_handler("traces", ranks="all")
with torch.profiler.profile(schedule=schedule, on_trace_ready=handler) as profiler:
    for _ in range(12):
        optimizer.zero_grad()
        net(torch.randn(32, 64)).sum().backward()
        optimizer.step()
        profiler.step()
torch.distributed.destroy_process_group()
"""


def test_two_ranks_become_one_run(tmp_path):
    (tmp_path / "train.py").write_text(RANKS)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, env=ONE_THREAD, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "lacks" not in done.stderr
    run = runs.read(tmp_path / "traces" / "run.json")
    assert [[rank.rank for rank in variant.ranks] for variant in run.variants] == [[1], [1]]
    (_, second) = open_subject([tmp_path / "traces" / "run.json"]).profiles
    assert [capture.rank for capture in second.captures] == [0, 1]
