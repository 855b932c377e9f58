"""What uses memory at the peak: planted by hand, in a real recording, and in other people's traces."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
import warm
from real import trace_path
from small import event, kernel, launch, op, step, write

from tests.capture.capturing import perform
from tests.lines.recorded import FILE, call, recorded_run, with_lines
from tracekit.cli import main
from tracekit.engine import attribute
from tracekit.profile import Capture, Profile, open_subject
from tracekit.profile.memory_use import known_use
from tracekit.trace import Trace
from tracekit.trace.rereading import memory_events

KEPT = 8 << 20
RECIPE = f"""
import torch

def setup(ctx):
    net = torch.nn.Linear(32, 32)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    kept = []

    def step():
        kept.clear()
        optimizer.zero_grad()
        x = torch.ones(8, 32)
        kept.append(torch.zeros({KEPT} // 4))  # held to the end of the step
        x = x + torch.zeros(1 << 18).sum()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
"""


def instant(ts, size, address, *, device=0, allocated=0, reserved=0):
    args = {"Addr": address, "Bytes": size, "Total Allocated": allocated, "Total Reserved": reserved}
    kind = {"Device Type": device, "Device Id": 0 if device else -1}
    return {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": ts} | {
        "args": {**args, **kind}
    }


def planted(path):
    """Line 2 holds 4000 bytes while line 3 allocates 100 more; line 4 allocates 300 once these are free again."""
    write(
        path,
        step(0, 0, 100),
        call("mine.py(1): work", 0, 100),
        call("<built-in function slow>", 10, 60),
        op("aten::mm", 20, 60),
        op("aten::empty", 25, 26),
        instant(25.5, 4000, 1, allocated=9000),
        instant(30, 50, 2),
        instant(31, -50, 2),
        op("aten::add", 60, 70),
        instant(65, 100, 3),
        instant(66, -4000, 1),
        call("<built-in function fast>", 80, 100),
        op("aten::relu", 85, 95),
        instant(90, 300, 4),
    )
    trace = json.loads(path.read_text())
    path.write_text(json.dumps({"profile_memory": 1, **trace}))
    return with_lines(path, {10: 2, 60: 3, 80: 4})


def use_of(path):
    (profile,) = open_subject([path]).profiles
    return known_use(profile)


def test_the_line_that_holds_a_tensor_is_the_culprit_at_the_peak(tmp_path):
    (device,) = use_of(recorded_run(planted(tmp_path / "trace.json"))).devices
    assert (device.device, device.peak_bytes, device.before_bytes) == ("cpu", 4100, None)
    assert (device.allocated_bytes, device.allocations, device.reserved_bytes) == (4450, 4, None)
    first, second, *others = device.holders
    assert (first.line, first.file, first.operator) == (2, FILE, "aten::mm")
    assert (first.peak_bytes, first.tensors, first.allocated_bytes) == (4000, 1, 4050)
    assert (second.operator, second.peak_bytes) == ("aten::add", 100)
    assert [each.peak_bytes for each in others] == [0]
    assert [point.bytes for point in device.curve] == [0, 4000, 4050, 4000, 4100, 100, 400]


def test_what_compiled_code_allocates_belongs_to_the_kernel_that_fills_it(tmp_path):
    """Line 2 calls a graph, whose buffers are allocated before the kernels that fill them; the last one has none."""
    write(
        path := tmp_path / "trace.json",
        step(0, 0, 100),
        call("mine.py(1): work", 0, 100),
        call("<built-in function graph>", 10, 60),
        op("Torch-Compiled Region: 0/0", 10, 60),
        op("## Call CompiledFxGraph f1 ##", 12, 58),
        instant(13, 4000, 1),
        op("aten::empty", 14, 15),
        instant(14.5, 2000, 2),
        op("graph_0_cpp_fused_add_0", 20, 30),
        instant(25, 10, 3),
        instant(31, 500, 4),
        op("aten::mm", 35, 50),
        instant(55, 70, 5),
        call("<built-in function last>", 70, 100),
        op("aten::relu", 80, 90),
    )
    path.write_text(json.dumps({"profile_memory": 1, **json.loads(path.read_text())}))
    (device,) = use_of(recorded_run(with_lines(path, {10: 2, 70: 3}))).devices
    held = {(holder.operator, holder.line): holder.peak_bytes for holder in device.holders}
    assert held == {
        ("graph_0_cpp_fused_add_0", 2): 6010,
        ("aten::mm", 2): 500,
        ("## Call CompiledFxGraph f1 ##", 2): 70,
    }


def test_what_the_allocator_reserves_and_what_was_there_before(tmp_path):
    path = write(
        tmp_path / "trace.json",
        step(0, 0, 100),
        instant(10, 600, 1, device=1, allocated=1600, reserved=2000),
        instant(20, 400, 2, device=1, allocated=2000, reserved=4000),
        instant(30, -600, 1, device=1, allocated=1400, reserved=4000),
    )
    path.write_text(json.dumps({"profile_memory": 1, **json.loads(path.read_text())}))
    use = use_of(path)
    (device,) = use.devices
    assert not use.owned
    assert (device.device, device.before_bytes, device.peak_bytes) == ("cuda:0", 1000, 1000)
    assert (device.reserved_bytes, device.idle_bytes) == (4000, 2000)


def test_the_level_is_said_where_the_allocator_tells_it(tmp_path, capsys):
    path = write(tmp_path / "trace.json", step(0, 0, 100), instant(10, 1024, 1, device=1, allocated=3072))
    path.write_text(json.dumps({"profile_memory": 1, **json.loads(path.read_text())}))
    assert main(["report", str(path), "--full"]) == 0
    said = " ".join(capsys.readouterr().out.replace("\u00a0", " ").split())
    assert "peaks at 1.00 KiB above the start of the recording (3.00 KiB in all)" in said


def test_less_than_half_is_not_most_of_it(tmp_path, capsys):
    events = [each for k in (1, 2, 3) for each in (op(f"aten::a{k}", 9 * k, 9 * k + 8), instant(9 * k + 4, 100, k))]
    path = write(tmp_path / "trace.json", step(0, 0, 100), *events)
    path.write_text(json.dumps({"profile_memory": 1, **json.loads(path.read_text())}))
    assert main(["report", str(path), "--full"]) == 0
    said = " ".join(capsys.readouterr().out.replace("\u00a0", " ").split())
    assert "; the largest part of what was allocated since then is held by aten::a1, " in said


@pytest.mark.parametrize(
    ("call_of_a_step", "said"),
    [
        ("cudaLaunchKernel", "The allocator reserves 3.91 KiB, of which 50.0 % is unused."),
        ("cudaGraphLaunch", "The allocator reserves 3.91 KiB, including the memory of CUDA graphs."),
    ],
)
def test_what_graphs_hold_is_not_unused(tmp_path, capsys, call_of_a_step, said):
    events = [
        op("aten::add", 10, 60),
        instant(20, 400, 1, device=1, allocated=2000, reserved=4000),
        launch(65, 70, 7, call_of_a_step),
        kernel("gemm", 72, 90, 7),
    ]
    path = write(tmp_path / "trace.json", step(0, 0, 100), *events)
    path.write_text(json.dumps({"profile_memory": 1, **json.loads(path.read_text())}))
    assert main(["report", str(path), "--full"]) == 0
    assert said in " ".join(capsys.readouterr().out.replace("\u00a0", " ").split())


def test_in_every_face(tmp_path, capsys):
    run = recorded_run(planted(tmp_path / "trace.json"))
    assert main(["report", str(run), "--full"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "eager: memory peaks at 4.00 KiB above the start of the recording" in said
    assert "; most of what was allocated since then is held by aten::mm at /home/me/mine.py:2 work, " in said
    assert "3.91 KiB (97.6 %)." in said
    assert main(["report", str(run), "--format", "json"]) == 0
    section = next(each for each in json.loads(capsys.readouterr().out)["sections"] if each["id"] == "memory_use")
    curve = next(block for block in section["blocks"] if block["kind"] == "series")
    assert curve["unit"] == "B"
    assert max(curve["lines"][0]["values"]) == 4100
    assert main(["export", str(run), "-o", str(tmp_path / "tables")]) == 0
    holders = pq.read_table(tmp_path / "tables" / "memory_holders.parquet").to_pylist()
    assert (holders[0]["variant"], holders[0]["line"], holders[0]["peak_bytes"]) == ("eager", 2, 4000)
    assert pq.read_table(tmp_path / "tables" / "memory_curve.parquet")["level_bytes"].to_pylist()[-1] == 400


def test_a_real_recording_names_the_line_that_holds_a_tensor(tmp_path):
    (tmp_path / "net.py").write_text(RECIPE)
    with warm.passes():
        result = perform(tmp_path, "profile", tmp_path / "net.py", steps=3)
    assert result.outcome == "ok", result.traceback
    steady, detail = (tmp_path / f"{window}.json.gz" for window in ("steady", "detail"))
    captures = (Capture(steady, attribute(Trace.load(steady))), Capture(detail, None, window="detail"))
    (device,) = known_use(Profile("eager", captures)).devices
    first = device.holders[0]
    line = RECIPE.splitlines()[first.line - 1]
    assert line.endswith("# held to the end of the step")
    assert (first.operator, first.tensors, first.peak_bytes) == ("aten::zeros", 1, KEPT)
    assert KEPT + (1 << 20) <= device.peak_bytes < KEPT + (2 << 20)
    assert {"forward", "backward", "other"} <= {each.phase for each in device.phases}


@pytest.mark.parametrize("name", ["leimao_eager_rtx5080", "dtu_resnet18_cpu", "tracelens_owlv2_h100_dataloader"])
def test_levels_are_the_totals_of_real_traces(name):
    devices = memory_events(Trace.load(trace_path(name)))
    assert devices
    for events in devices:
        level, total = np.cumsum(events.bytes), events.allocated
        counted = total > 0  # a CPU's total is 0 where what was allocated before is released
        apart = (total - level)[counted]
        assert (np.diff(apart) >= 0).mean() > 0.99


def test_a_trace_without_memory_has_no_section(tmp_path, capsys):
    path = write(tmp_path / "trace.json", step(0, 0, 100), event("cpu_op", "aten::mm", 10, 20))
    assert use_of(path) is None
    assert main(["report", str(path), "--format", "json"]) == 0
    assert "memory_use" not in capsys.readouterr().out
