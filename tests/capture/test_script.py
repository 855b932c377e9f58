"""Scripts that know nothing about tracekit, run unchanged."""

from types import SimpleNamespace

import pytest
import warm

from tests.capture.capturing import perform, read_trace
from tests.capture.small_scripts import EAGER, PLAIN, event_names, kinds, profiled, script
from tracekit import run as runs
from tracekit.capture.options import Options
from tracekit.capture.preparation import prepare
from tracekit.cli import main
from tracekit.engine import attribute
from tracekit.engine.buckets import HOST
from tracekit.errors.capturing import OnlyRecipesTakeThisError
from tracekit.report.notes import warnings
from tracekit.run import divergence
from tracekit.trace import Trace


def test_from_the_command_line_to_a_run(tmp_path):
    path, out = script(tmp_path, PLAIN + "\n    if steps == 23: print('given')"), tmp_path / "run.json"
    given = ["--backend", "aot_eager", "--steps", "2", "--passes", "1", "--device", "cpu", "-o", str(out), "--", "23"]
    done = warm.tracekit("capture", path, *given)
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
    assert "; same losses and gradients as eager;" in done.stderr
    for variant in run.variants:
        assert "the script ended after 23 steps, which is fewer than a capture takes" in variant.effective.notes
        assert (variant.measured.steps, variant.profiled.steps) == (20, 2)
        assert [*read_trace(run.trace_path(out, variant, "cold")).steps] == [0, 1, 2]
    assert (tmp_path / run.variants[0].traces.steady).parent.joinpath("measure.log").read_text() == "given\n" * 23


def test_a_model_of_torchs_own_modules_is_compiled_too(tmp_path):
    body = "net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))" + PLAIN
    result = profiled(tmp_path, body)
    assert kinds(result) == [("0/0", "first"), ("0/0", "backward")]
    assert "compiled in place: Sequential" in result.effective.remarks


def test_a_module_of_torch_jit_is_left_as_it_is_and_the_run_says_why(tmp_path):
    result = profiled(tmp_path, f"net = torch.jit.script(net)\n{PLAIN}")
    assert kinds(result) == []
    assert result.ledger.breaks == []
    assert result.effective.notes[0].startswith("torch.compile does not accept modules of torch.jit.script (Net)")
    assert result.effective.ran_eagerly == result.effective.notes[0]


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
    result = profiled(tmp_path, body)
    assert "several optimizers step (SGD, Adam): a step ends where the first one does" in result.effective.remarks
    assert "compiled in place: Net" in result.effective.remarks
    names = event_names(tmp_path / result.traces.steady)
    assert (names.count("Optimizer.step#SGD.step"), names.count("Optimizer.step#Adam.step")) == (2, 4)


def test_accumulated_gradients_are_steps_of_several(tmp_path):
    result = profiled(tmp_path, PLAIN, step_every=3)
    names = event_names(tmp_path / result.traces.steady)
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
    result = profiled(tmp_path, body, requested=EAGER, steps=4)
    attribution = attribute(Trace.load(tmp_path / result.traces.steady))
    assert len(attribution.trace.steps) == 4
    assert (attribution.host[:, HOST.index("dataload")] > 0).all()


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
    result = profiled(tmp_path, body)
    assert len(read_trace(tmp_path / result.traces.steady).steps) == 2
    assert "the script's own profiler was kept idle: two at once crash" in result.effective.remarks
    assert not [*tmp_path.glob("own*"), *tmp_path.glob("ready")]


def test_after_the_first_step_no_class_is_touched(tmp_path):
    """Assigning to Module in each step would cost 70 to 300 µs, because its thousands of subclasses are updated."""
    body = PLAIN.replace("for _ in", "for step in").replace(
        "    optimizer.step()\n",
        "    optimizer.step()\n"
        "    call = torch.nn.Module.__call__\n"
        "    if step == 3: ours = torch.nn.Module.__call__ = lambda *args, call=call: call(*args)\n"
        "    assert step <= 3 or call is ours\n",
    )
    assert body != PLAIN
    result = perform(tmp_path, "measure", script(tmp_path, body), is_script=True, arguments=["23"])
    assert result.outcome == "ok", result.traceback


def test_a_script_may_leave_its_folder(tmp_path):
    folder, body = tmp_path / "here", "import os\nos.chdir('/')\n" + PLAIN
    folder.mkdir()
    script(folder, body)
    given = ["--steps", "2", "--passes", "1", "--device", "cpu", "--variants", "eager", "--", "4"]
    done = warm.tracekit("capture", "train.py", *given, folder=folder)
    assert done.returncode == 0, done.stderr
    assert "Wrote run.json\n" in done.stderr
    run = runs.read(folder / "run.json")
    (eager,) = run.variants
    assert run.trace_path(folder / "run.json", eager).is_file()
    assert eager.traces.steady.startswith("run-")
    # Three of its four steps are first steps: the pace rests on a single one, which has no spread.
    assert eager.measured.steps == 1
    assert "a step, which is 1 step of Adam;" in done.stderr
    assert "based on only one step" in next(
        warnings(SimpleNamespace(variant=eager), SimpleNamespace(name="eager", variant=eager))
    )


def test_a_parameter_for_a_script_is_pointed_to_its_arguments(tmp_path):
    with pytest.raises(OnlyRecipesTakeThisError, match="-- --epochs 3"):
        prepare(Options(script(tmp_path, PLAIN), params={"epochs": "3"}))


def test_an_unknown_option_is_pointed_to_its_arguments(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["capture", "train.py", "--lr", "3"])
    assert "arguments: --lr 3. A script's own arguments go after --" in capsys.readouterr().err
