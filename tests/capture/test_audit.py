"""`tracekit audit` on unchanged scripts: every planted line is found, from the command line on."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import warm

pytest.importorskip("torch")
ROOT = Path(__file__).parents[2]

# A comment names what its line does: kind, operator. Another program writes the losses, because whatever the script
# itself writes is undone.
PLANTED = """
import argparse, json, subprocess, torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--losses", required=True)
parser.add_argument("--cpu", action="store_true")
args = parser.parse_args()
assert torch.cuda.is_available() != args.cpu
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
data = TensorDataset(torch.randn(96, 8), torch.randint(3, (96,)))
loader = DataLoader(data, batch_size=16, shuffle=True, pin_memory=not args.cpu)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 3)
    def forward(self, x):
        x = self.first(x).relu()
        if (x > 100).any():  # sync _local_scalar_dense, break _local_scalar_dense
            x = x * 0
        return self.second(x)

model = Net().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
right = 0
for epoch in range(2):
    for a, b in loader:
        a, b = a.to(device, non_blocking=True), b.to(device)  # copy _to_copy
        optimizer.zero_grad()
        out = model(a)
        loss = nn.functional.cross_entropy(out, b)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        value = loss.item()  # sync _local_scalar_dense
        subprocess.run(["tee", "-a", args.losses], input=f"{value}\\n", text=True, stdout=subprocess.DEVNULL)
        right += (out.argmax(1) == b).sum().cpu()  # sync _to_copy
        ones = out[b == 1]  # sync index
        rows = (b == 2).nonzero()  # sync nonzero
        several = b.unique()  # sync _unique2
        again = out.repeat_interleave(b, 0)  # sync repeat_interleave
        some = b.tolist()  # sync Tensor.tolist
        if b[0]:  # sync _local_scalar_dense
            pass
        picked = out[[0, 1]]  # copy index
        weight = torch.tensor([1.0, 2.0, 3.0], device=device)  # copy _to_copy
        out.detach()[b == 0] = 0.0
        fixed = out.repeat_interleave(torch.ones_like(b), 0, output_size=len(b))
        if not args.cpu:
            torch.cuda.synchronize()  # sync torch.cuda.synchronize
"""
MIXED = """
import torch
model = torch.nn.Linear(4, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10):
    x = torch.randn(8, 4).cuda(non_blocking=True)
    loss = (model(x) + torch.randn(8, 2)).square().mean()
    loss.backward()
    optimizer.step()
    if step == 2:
        raise ValueError("out of luck")
"""
MODERN = """
import torch
torch.set_default_device("cuda")
model = torch.compile(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()), mode="reduce-overhead")
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, capturable=True)
scaler = torch.amp.GradScaler("cuda")
start, end, stream = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True), torch.cuda.Stream()
x = torch.randn(8, 4, generator=torch.Generator("cuda").manual_seed(1))
assert x.is_cuda and x.device == torch.device("cuda", 0) and next(model.parameters()).device.type == "cuda"
for step in range(6):
    with torch.autocast("cuda"), torch.cuda.stream(stream):
        start.record()
        loss = model(x).sum()
        end.record()
        assert start.elapsed_time(end) > 0 and torch.cuda.max_memory_allocated() > 0
    scaler.scale(loss).backward()
    scaler.step(optimizer)  # asks whether a gradient overflowed
    scaler.update()
    optimizer.zero_grad()
"""


def audit(folder, text, *options, script=(), code=0):
    file = folder / "train.py"
    file.write_text(text)
    done = warm.tracekit("audit", file, *options, *(["--", *script] if script else []))
    assert done.returncode == code, done.stderr
    return done


def test_every_planted_line_and_the_losses_of_a_plain_run(tmp_path):
    on_gpu, on_cpu = tmp_path / "gpu.txt", tmp_path / "cpu.txt"
    done = audit(tmp_path, PLANTED, "--format", "json", "--steps", "7", "--in-place", script=["--losses", str(on_gpu)])
    answer = json.loads(done.stdout)
    assert answer["schema"] == "tracekit.audit/1"
    assert all({"kind", "operator", "file", "line", "function", "per_step"} <= {*row} for row in answer["rows"])
    assert answer["steps"] == 7
    assert {row["per_step"] for row in answer["rows"]} == {1.0}
    assert {Path(row["file"]).name for row in answer["rows"]} == {"train.py"}
    named = {(row["line"], row["kind"], row["operator"].removeprefix("aten::")) for row in answer["rows"]}
    assert named == set(planted(PLANTED))
    assert {row["function"] for row in answer["rows"]} == {"<module>", "forward"}
    assert warm.run([tmp_path / "train.py", "--cpu", "--losses", on_cpu]).returncode == 0
    losses = on_gpu.read_text().splitlines()
    assert len(losses) == 7  # the eighth was about to be written
    assert losses == on_cpu.read_text().splitlines()[:7]


def planted(text):
    for number, line in enumerate(text.splitlines(), 1):
        for each in line.partition("  # ")[2].split(", "):
            if each:
                yield number, *each.split(" ")


def test_a_crash_is_told_and_fails(tmp_path):
    done = audit(tmp_path, MIXED, "--fail-on", "mixed", "--steps", "20", code=1)
    assert "it would crash at 1 line" in done.stdout
    assert f"{tmp_path / 'train.py'}:7 <module>" in done.stdout
    assert "aten::add would crash: tensors on cpu and cuda:0" in done.stdout
    assert "The audit did not finish: ValueError: out of luck" in done.stdout
    assert "out of luck" in done.stderr  # its traceback


def test_autocast_streams_events_and_a_compiled_model(tmp_path):
    done = audit(tmp_path, MODERN, "--fail-on", "copy,mixed,break")
    assert "1 wait a step" in done.stdout
    assert "scaler.step(optimizer)" in done.stdout
    assert "the script timed with CUDA events" in done.stdout


def test_a_recipe_and_its_cure(tmp_path):
    recipe = "recipes/pathologies/syncs.py"
    command = ["audit", recipe, "--param", "nodes=200", "--fail-on", "sync"]
    before = warm.tracekit(*command, "--variant", "repeat", folder=ROOT)
    assert before.returncode == 1
    assert f"{recipe}:38 forward" in before.stdout
    after = warm.tracekit(*command, "--variant", "after", folder=ROOT)
    assert after.returncode == 0
    assert "nothing blocks there" in after.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing.py"], "missing.py: no such recipe or script"),
        (["README.md"], "is not a Python file"),
        (["recipes/gcn_cora.py", "--", "--epochs", "3"], "is a recipe"),
        (["recipes/gcn_cora.py", "--fail-on", "sink"], "'sink' is not a kind of row"),
        (["recipes/gcn_cora.py", "--timeout", "0"], "--timeout cannot be 0.0: it must be"),
    ],
)
def test_what_cannot_be_audited(arguments, said):
    done = warm.tracekit("audit", *arguments, folder=ROOT)
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_what_raises_at_once_has_nothing_to_show(tmp_path):
    done = audit(tmp_path, "raise SystemExit('no data')", code=1)
    assert "failed before its steps could be audited" in done.stderr


SLOW = """
import time, torch
weight = torch.nn.Parameter(torch.ones(3, device="cuda"))
optimizer = torch.optim.SGD([weight], lr=0.1)
while True:
    optimizer.zero_grad()
    weight.sum().backward()
    optimizer.step()
    open("steps", "a").close()
    time.sleep(0.1)
"""


def test_ctrl_c_ends_it(tmp_path):
    (tmp_path / "train.py").write_text(SLOW)
    command = [sys.executable, "-m", "tracekit", "audit", "train.py", "--steps", "9999", "--in-place"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=-1, stderr=-1, text=True)
    while not (tmp_path / "steps").exists():
        assert running.poll() is None
        time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    stdout, stderr = running.communicate(timeout=60)
    assert (stdout, stderr, running.returncode) == ("", "tracekit: interrupted\n", 130)


def test_a_module_and_one_without_steps(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "train.py").write_text("import torch\nprint(torch.ones(3, device='cuda').sum())\n")
    done = warm.tracekit("audit", "-m", "package.train", folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "package.train: no optimizer stepped" in done.stderr


LOADS = """
import torch
from torch import nn

class Scale(nn.Module):
    def forward(self, x):
        if (x > 100).any():
            raise ValueError
        return x / 2

scale, model = Scale(), nn.Linear(4, 2).to("cuda", non_blocking=True)

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 128
    def __getitem__(self, at):
        return scale(torch.rand(4))

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step, x in enumerate(torch.utils.data.DataLoader(Data(), batch_size=8)):
    loss = model(x.to("cuda", non_blocking=True)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    loss.item()
    if step == 3:
        with torch.no_grad():
            for _ in range(47):
                model(torch.rand(4, device="cuda")).sum().item()
"""


def test_what_happens_once_in_the_loader_or_in_our_own_code_is_not_the_steps(tmp_path):
    done = audit(tmp_path, LOADS, "--steps", "10")
    first, *_ = done.stdout.splitlines()
    assert first.endswith("10 steps: 1 wait a step; 47 waits in only some of the steps")
    assert "47 × " in done.stdout
    assert "<module> (in 1 of 10 steps)" in done.stdout
    assert "graph break" not in done.stdout  # nobody compiles a transform of the loader
    assert "Left open" not in done.stdout  # the script asks for no memory, and times nothing


def test_a_function_that_the_script_compiles_for_its_loader(tmp_path):
    done = audit(tmp_path, LOADS.replace("Scale(), nn", "torch.compile(Scale()), nn"), "--steps", "10")
    first, *_ = done.stdout.splitlines()
    assert first.endswith("47 waits in only some of the steps; 80 graph breaks in the data loader")
    assert "forward (in the data loader)" in done.stdout


def test_a_script_that_stays_on_the_cpu_is_not_said_to_be_free_of_waits(tmp_path):
    done = audit(tmp_path, LOADS.replace('"cuda"', '"cpu"'), "--steps", "4")
    assert done.stdout.splitlines()[0].endswith("4 steps: nothing was put there")
    assert "does the script choose its device" in done.stdout
