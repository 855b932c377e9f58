"""A capture from end to end, and everything that can stop one."""

import contextlib
import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import warm
from capturing import COMPILED, perform, read_trace
from msgspec.structs import replace
from torch._dynamo.exc import BackendCompilerFailed

from tracekit import interruption
from tracekit import run as runs
from tracekit.capture import environment, messages, preparation, process, progress
from tracekit.capture.child.failure import outcome
from tracekit.capture.harness import Options, capture, exit_code, run_file
from tracekit.errors import (
    BadParameterError,
    BrokenSyntaxError,
    NoCompilerError,
    NoSuchDeviceError,
    NoSuchRecipeError,
    NotARecipeError,
    NothingCapturedError,
    NoTorchError,
    NotPythonError,
    OutputError,
    RecipeFailedError,
    UnknownParameterError,
    UnknownVariantError,
)

ROOT = Path(runs.__file__).parents[2]
FAILING = """
import torch
PARAMS = {"sound": True}
VARIANTS = {"sound": {"compile": False}, "unsound": {"compile": False, "sound": False}}
def setup(ctx):
    weight = torch.zeros(3, requires_grad=True)
    def step():
        if not ctx.sound:
            raise ValueError("the loss is gone")
        return weight.sum().detach()
    return step
"""


class Told(list):
    """What the capture said."""

    def __call__(self, line):
        self.append(line)

    def text(self):
        return "\n".join(self)


@pytest.fixture
def told():
    return Told()


def write_earlier(out):
    """A run of another day."""
    earlier = runs.Run(
        created="2026-01-01T00:00:00+00:00",
        tracekit="0",
        recipe="old",
        script="old.py",
        variants=[runs.Variant(name="eager", outcome="ok", requested=runs.Requested(compile=False))],
    )
    runs.write(earlier, out)
    return out.read_bytes()


@pytest.fixture(scope="module")
def captured(recipe, tmp_path_factory):
    """Eager and compiled, all passes, in front of an earlier run."""
    out = tmp_path_factory.mktemp("captured") / "run.json"
    write_earlier(out)
    told = Told()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        run = capture(
            Options(
                recipe,
                ["eager", "compiled"],
                backend="aot_eager",
                device="cpu",
                passes=3,
                budget=600,
                out=out,
                tell=told,
            )
        )
    return out, run, told.text()


def test_the_file_holds_what_capture_returns(captured):
    out, run, _ = captured
    assert runs.read(out) == run
    assert exit_code(run) == 0
    assert [variant.name for variant in run.variants] == run.planned == ["eager", "compiled"]
    assert (run.recipe, run.device, run.data) == ("tiny", "cpu", "random numbers")
    assert run.params == {"hidden": 8, "lr": 0.01, "sizes": [6], "broken": False}
    assert run.environment["torch"]
    assert run.environment["threads"] == 1


def test_an_earlier_run_is_kept(captured):
    out, _, said = captured
    aside = out.with_name("run-20260101-000000.json")
    assert runs.read(aside).recipe == "old"
    assert said.count(f"The earlier run is kept: {aside}") == 1


def test_three_traces_lie_beside_the_run(captured):
    out, run, _ = captured
    for variant in run.variants:
        cold, steady, detail = (run.trace_path(out, variant, which) for which in ("cold", "steady", "detail"))
        assert [*read_trace(cold).steps] == [0, 1, 2]
        assert len(read_trace(steady).steps) == run.steps == 20
        assert len(read_trace(detail).steps) == 3
        assert min(read_trace(steady).steps) >= run.warmup
        header = read_trace(steady).keys
        assert header["tracekit"]["recipe"] == f"tiny {variant.name}"
        assert header["torch_version"] == run.environment["torch"]
        assert "with_stack" not in header
        assert read_trace(detail).keys["with_stack"] == 1
    assert not [each for each in out.parent.rglob("*") if each.suffix == ".part"]


def test_the_unprofiled_pass_is_measured(captured):
    _, run, _ = captured
    for variant in run.variants:
        measured = variant.measured
        assert measured.steps >= 30
        assert min(measured.step_all_ns) <= measured.step_ns <= max(measured.step_all_ns)
        assert len(measured.first_steps_ns) == 3
        assert measured.warmup_steps >= 10
        assert measured.clock == "perf_counter"
        assert measured.infer_ns > 0
        assert variant.profiled.step_ns > 0
        assert variant.memory.host_peak_rss_bytes > 1e7
        assert variant.memory.peak_allocated_bytes is None
    eager, compiled = (variant.measured for variant in run.variants)
    assert (eager.compiles, eager.compile_ns) == (0, 0)
    assert (compiled.compiles, compiled.compiles_timed) == (2, 0)  # forward and backward
    assert 0.9 * compiled.first_steps_ns[0] < compiled.compile_ns < compiled.first_steps_ns[0]


def test_later_passes_take_turns_and_find_what_was_compiled(captured):
    _, run, said = captured
    eager, compiled = (variant.measured.passes for variant in run.variants)
    starts = [(each.started_ns, name) for name, side in (("e", eager), ("c", compiled)) for each in side]
    assert [name for _, name in sorted(starts)] == [*"ec", *"ce", *"ec"]
    assert [each.round for each in eager] == [each.round for each in compiled] == [0, 1, 2]
    for variant in run.variants:
        first, *later = variant.measured.passes
        assert all(15 <= len(each.step_all_ns) <= 150 for each in later)
        assert all(each.seconds > 0 and each.load >= 0 and each.counted for each in variant.measured.passes)
        product = math.prod(each.step_ns for each in variant.measured.passes)
        assert variant.measured.step_ns == pytest.approx(product ** (1 / 3), abs=1)
        assert variant.measured.step_all_ns[: len(first.step_all_ns)] == first.step_all_ns
    assert "Measuring again, in turns: at most 600 s (--budget), 3 passes each (--passes) …" in said
    assert re.search(r"compiled: .* a step in 3 passes, .* eager \(\d.*\)", said)


FAILS_LATER = FAILING.replace("not ctx.sound", "not ctx.sound and ctx.mark.exists()").replace(
    "def setup(ctx):", "def setup(ctx):\n    ctx.mark = __import__('pathlib').Path(__file__).with_name('mark')"
)


def test_a_later_pass_that_fails_costs_only_itself(write_recipe, tmp_path, told):
    recipe, out = write_recipe(FAILS_LATER), tmp_path / "run.json"

    def tell(line):
        told(line)
        if line.startswith("Measuring again"):
            (tmp_path / "mark").touch()

    run = capture(Options(recipe, ["sound", "unsound"], steps=2, warmup=0, passes=3, budget=600, out=out, tell=tell))
    assert runs.read(out) == run
    sound, unsound = run.variants
    assert (sound.outcome, len(sound.measured.passes)) == ("ok", 3)
    assert (unsound.outcome, len(unsound.measured.passes)) == ("ok", 1)
    assert "an unprofiled pass failed (ValueError: the loss is gone)" in unsound.effective.notes[0]
    assert told.text().count("unsound: unprofiled pass") == 1


@pytest.mark.parametrize("budget", [0, 1e-3])
def test_a_budget_that_is_spent_leaves_one_pass(recipe, tmp_path, told, budget):
    run = capture(Options(recipe, ["eager"], steps=2, warmup=0, budget=budget, out=tmp_path / "run.json", tell=told))
    assert len(run.variants[0].measured.passes) == 1
    assert "eager: " in told[-3]
    assert "a step in 1 pass" in told[-3]


def test_a_busy_machine_is_told_before_anything_is_measured(recipe, tmp_path, told, monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (64.0, 1.0, 1.0))
    cores = len(os.sched_getaffinity(0))
    capture(Options(recipe, ["eager"], steps=2, warmup=0, passes=1, out=tmp_path / "run.json", tell=told))
    (at,) = (at for at, line in enumerate(told) if f"warning: the machine is busy (load 64.0 on {cores} core" in line)
    assert at < told.index("eager: measuring, unprofiled …")


def test_eager_and_compiled_compute_the_same(captured):
    _, run, said = captured
    eager, compiled = (variant.losses for variant in run.variants)
    assert len(eager) == 20
    assert len(set(eager)) > 10
    assert runs.divergence(eager, compiled) < 1e-4
    assert "same losses as eager" in said
    assert run.variants[0].metrics == {"metric": 0.5}


def test_it_says_what_happened_and_what_opens_it(captured):
    out, _, said = captured
    assert f"tracekit tui {out}" in said
    assert f"tracekit report {out}" in said
    assert "1 graph, 0 recompilations, 0 graph breaks" in said


def test_loading_shows_as_loading(captured):
    import gzip

    out, run, _ = captured
    with gzip.open(run.trace_path(out, run.variants[0])) as file:
        assert b'"enumerate(DataLoader)#batches.__next__"' in file.read()


def test_a_variant_that_fails_does_not_stop_the_others(write_recipe, tmp_path, told):
    recipe, out = write_recipe(FAILING), tmp_path / "run.json"
    run = capture(Options(recipe, ["unsound", "sound"], steps=2, warmup=0, passes=1, out=out, tell=told))
    assert [(variant.outcome, variant.error) for variant in run.variants] == [
        ("error", "measure: ValueError: the loss is gone"),
        ("ok", None),
    ]
    assert exit_code(run) == 1
    assert runs.read(out) == run
    assert 'raise ValueError("the loss is gone")' in told.text()
    assert "tracekit/capture" not in told.text()


def test_a_capture_of_failures_only_writes_nothing(write_recipe, tmp_path, told):
    out = tmp_path / "run.json"
    earlier = write_earlier(out)
    with pytest.raises(NothingCapturedError, match="the loss is gone"):
        capture(Options(write_recipe(FAILING), ["unsound"], out=out, tell=told))
    assert out.read_bytes() == earlier
    assert not [*tmp_path.glob("run-*")]


def test_a_pass_that_takes_too_long_is_stopped(tmp_path, write_recipe):
    recipe = write_recipe("import time\ntime.sleep(60)")
    started = time.monotonic()
    answer = perform(tmp_path, "measure", recipe, timeout=1)
    assert (answer.outcome, answer.error) == ("timeout", "took longer than 1 s")
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(
    ("ending", "outcome", "error"),
    [
        ("os.kill(os.getpid(), 9)", "crash", "killed, as when memory runs out"),
        ("os.abort()", "crash", "died of SIGABRT"),
        ("os._exit(3)", "crash", "ended with exit code 3 and no answer"),
        ("sys.exit('enough')", "error", "SystemExit: enough"),
        ("import nowhere", "error", "ModuleNotFoundError: No module named 'nowhere'"),
        ("1 +", "error", "SyntaxError: invalid syntax (recipe.py, line 1)"),
        ("bytearray(1 << 62)", "oom", "MemoryError: "),
        ("import torch; torch.empty(1 << 60)", "oom", "RuntimeError: "),
    ],
)
def test_a_pass_that_dies_says_of_what(tmp_path, write_recipe, ending, outcome, error):
    line = ending if ending == "1 +" else f"import os, sys; {ending}"
    answer = perform(tmp_path, "inspect", write_recipe(line))
    assert answer.outcome == outcome
    assert answer.error is not None
    assert answer.error.startswith(error) if outcome == "oom" else answer.error == error


def test_memory_that_ran_out_is_known_through_what_wraps_it():
    assert outcome(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 16.00 TiB")) == "oom"
    assert outcome(RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")) == "oom"
    assert outcome(BackendCompilerFailed(print, torch.OutOfMemoryError("no more"), None)) == "oom"
    assert outcome(ValueError("the memory of this is out of order")) == "error"


def test_batches_that_end_are_told(tmp_path, write_recipe):
    text = "from types import SimpleNamespace\ndef setup(ctx): return SimpleNamespace(step=id, batches=iter([1, 2]))"
    answer = perform(tmp_path, "measure", write_recipe(text))
    assert "batches are empty, or can be iterated only once" in answer.error


def test_a_model_that_nobody_compiles_is_told(tmp_path, write_recipe):
    answer = perform(tmp_path, "profile", write_recipe(FAILING), requested=COMPILED, steps=1, warmup=0)
    assert answer.effective.mode == "eager"
    assert "does the recipe pass its model through ctx.compile?" in answer.effective.notes[0]


def test_data_is_prepared_once_with_the_parameters_given(write_recipe, tmp_path, told):
    text = FAILING.replace("def setup", "def prepare(ctx):\n    ctx.note(f'sound is {ctx.sound}')\ndef setup")
    options = Options(write_recipe(text), ["eager"], params={"sound": "no"}, out=tmp_path / "run.json", tell=told)
    preparation.prepare(options)
    assert "  sound is False" in told


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"recipe": "absent.py"}, NoSuchRecipeError, "absent.py"),
        ({"params": {"width": "1"}}, UnknownParameterError, "broken, hidden, lr, sizes"),
        ({"params": {"hidden": "wide"}}, BadParameterError, "hidden=wide"),
        ({"variants": ["fast"]}, UnknownVariantError, "wide-eager"),
        ({"device": "cuda:7"}, NoSuchDeviceError, "cpu"),
        ({"steps": 0}, BadParameterError, "--steps=0"),
        ({"timeout": 0}, BadParameterError, "--timeout=0"),
        ({"timeout": float("nan")}, BadParameterError, "--timeout=nan"),
        ({"timeout": float("inf")}, BadParameterError, "--timeout=inf"),
        (
            {"backend": "inductr", "variants": ["eager"]},
            BadParameterError,
            "--backend=inductr: .* aot_eager.* inductor",
        ),
        ({"variants": ["compiled:backend=aot"]}, BadParameterError, "^backend=aot:"),
        ({"recipe": "/etc/hostname"}, NotPythonError, "is a .py file"),
        ({"out": "absent/run.json"}, OutputError, "absent"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_runs(recipe, tmp_path, monkeypatch, told, change, error, said):
    monkeypatch.chdir(tmp_path)
    options = {"recipe": recipe, "backend": "aot_eager", "tell": told, **change}
    with pytest.raises(error, match=said):
        capture(Options(**options))
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("kind", ["script", "link", "dangling link", "device", "folder", "pipe"])
def test_what_is_no_run_is_left_where_it_is(recipe, tmp_path, told, kind):
    file, out = tmp_path / "train.py", tmp_path / "out"
    file.write_text("print(1)")
    match kind:
        case "script":
            out = file
        case "link":
            out.symlink_to(file)
        case "dangling link":
            out.symlink_to(tmp_path / "absent")
        case "device":
            out = Path(os.devnull)
        case "folder":
            out.mkdir()
        case "pipe":
            os.mkfifo(out)
    there = sorted(tmp_path.iterdir())
    with pytest.raises(OutputError, match=str(out)):
        capture(Options(recipe, out=out, tell=told))
    assert told == []
    assert sorted(tmp_path.iterdir()) == there
    assert file.read_text() == "print(1)"


def test_a_link_to_a_run_is_followed(tmp_path):
    (tmp_path / "there").mkdir()
    link, out = tmp_path / "run.json", tmp_path / "there" / "best.json"
    write_earlier(out)
    link.symlink_to(out)
    assert run_file(link) == out.resolve()


def test_names_are_harmless_to_the_terminal_and_one_line_each(tmp_path):
    path = tmp_path / "a\x1b[31m\n\u202eb.py"
    path.write_text("def setup(ctx): ctx.note('one\\ntwo')")
    given = ["--variants", "eager", "--backend", "aot_eager", "-o", str(tmp_path / "run.json")]
    done = warm.tracekit("capture", path, *given)
    lines = done.stderr.split("\n")
    assert done.returncode == 1
    assert all(line.isprintable() for line in lines)
    assert all(
        line.startswith(("a\\x1b[31m\\x0a\\u202eb", "No GPU: ", "eager: ", "warning: ", "tracekit: ")) or not line
        for line in lines
    )


def test_the_commonest_break_is_named():
    breaks = [runs.Break(compile="0/0", reason=reason, file="/a/net.py", line=7, t_ns=0) for reason in "abb"]
    assert messages._commonest(breaks) == "b, net.py:7"


def test_a_slow_pass_says_how_far_it_is(tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(progress, "_SAID_EVERY_S", 0)
    reader = progress.Reader(tmp_path, said.append)
    reader.look()  # before the first step there is nothing to say
    writer = progress.Writer(str(tmp_path), 50)
    writer.took(12, 10_000_000_000, 8_000_000_000)
    writer.took(13, 10_500_000_000, 10_000_000_000)  # too soon to be written
    reader.look()
    assert said == ["  step 12 of about 50, about 76.0 s left"]


def test_a_tab_is_space():
    assert messages.quoted("\tx = 1\n") == ["    x = 1"]


def test_only_what_came_to_its_end_is_said_to_be_kept():
    measured = runs.Measured(step_ns=5, step_all_ns=[5, 5], spread_ns=0, clock="perf_counter")
    cut = runs.Variant(name="eager", outcome="interrupted", requested=runs.Requested(compile=False), measured=measured)
    run = runs.Run(created=runs.now(), tracekit="0", recipe="r", script="r.py", variants=[cut])
    assert messages.interrupted(run, Path("run.json")) == "Interrupted. run.json keeps no finished variant."
    run = replace(run, variants=[replace(cut, name="first", outcome="ok"), cut])
    assert messages.interrupted(run, Path("run.json")) == "Interrupted. run.json keeps first."


def test_a_terminal_that_was_closed_stops_nothing(monkeypatch):
    closed = open(os.devnull)  # noqa: SIM115
    monkeypatch.setattr(sys, "stderr", closed)
    messages.on_stderr("said to nobody")
    closed.close()


def test_commands_can_be_pasted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert messages.written(tmp_path / "my run.json") == [
        "Wrote my run.json",
        "Open it:  tracekit tui 'my run.json'   or   tracekit report 'my run.json'",
    ]


def test_without_torch_it_says_how_to_get_it(recipe, monkeypatch):
    monkeypatch.setattr(environment, "has_torch", lambda: False)
    with pytest.raises(NoTorchError, match="pip install"):
        capture(Options(recipe))


def test_inductor_without_a_compiler_is_refused(recipe, tmp_path, monkeypatch, told):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(NoCompilerError, match="no-such-compiler"):
        capture(Options(recipe, ["compiled"], tell=told))
    preparation.prepare(Options(recipe, ["eager"], tell=told))  # eager needs none


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("def setup(ctx): ...\ndel setup", NotARecipeError, "no setup"),
        ("def setup(ctx): ...\n1 / 0", RecipeFailedError, "ZeroDivisionError"),
        ("def setup(ctx", BrokenSyntaxError, "is not valid Python"),
    ],
)
def test_a_file_that_is_no_recipe_is_refused(write_recipe, tmp_path, monkeypatch, told, text, error, said):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=said):
        capture(Options(write_recipe(text), tell=told))
    assert [*tmp_path.glob("run*")] == []


def test_capture_imports_neither_torch_nor_anything_heavy():
    heavy = "torch numpy pandas pyarrow rich textual"
    line = f"import sys, tracekit.capture.harness; print([name for name in '{heavy}'.split() if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", line], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


CAPTURE = """
import contextlib, sys, warm
from tracekit.capture import messages
from tracekit.capture.harness import Options, capture
recipe, out, passes, unforked, *variants = sys.argv[1:]
forked = contextlib.ExitStack()
forked.enter_context(warm.passes())
def tell(line):
    messages.on_stderr(line)
    if unforked and line.startswith(unforked):
        forked.close()
capture(Options(recipe, variants, steps=1, warmup=0, passes=int(passes), out=out, tell=tell))
"""


def start_capture(recipe, out, *variants, passes=1, unforked=""):
    """A capture in a process of its own; once it says `unforked`, it starts its passes as it does without a test."""
    asked = [str(recipe), str(out), str(passes), unforked, *(variants or ("eager", "sound"))]
    return subprocess.Popen(
        [sys.executable, "-c", CAPTURE, *asked],
        **warm.lend(),
        stderr=subprocess.PIPE,
        text=True,
        # A shell without job control starts background jobs deaf to Ctrl-C, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )


def read_until(process, line):
    return any(line in said for said in process.stderr)


def passes_of(pid):
    """The passes that this capture started and that still run."""
    return running(f"tracekit-pass-{pid}-")


def running(mark):
    """The processes with this in their command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (folder / "cmdline").read_text():
                found.append(folder)
    return found


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_and_its_like_keep_what_was_finished(write_recipe, tmp_path, ending):
    capturing = start_capture(write_recipe(FAILING), tmp_path / "run.json")
    assert read_until(capturing, "sound: measuring")
    capturing.send_signal(ending)
    said = capturing.communicate(timeout=30)[1]
    run = runs.read(tmp_path / "run.json")
    assert [(variant.name, variant.outcome) for variant in run.variants] == [
        ("eager", "ok"),
        ("sound", "interrupted"),
    ]
    assert "keeps eager.\n" in said
    assert not passes_of(capturing.pid)


def test_an_interruption_of_later_passes_loses_nothing(write_recipe, tmp_path):
    capturing = start_capture(write_recipe(FAILING), tmp_path / "run.json", passes=8)
    assert read_until(capturing, "Measuring again")
    capturing.send_signal(signal.SIGINT)
    said = capturing.communicate(timeout=30)[1]
    run = runs.read(tmp_path / "run.json")
    assert [(variant.name, variant.outcome) for variant in run.variants] == [("eager", "ok"), ("sound", "ok")]
    assert "keeps eager, sound.\n" in said
    assert not passes_of(capturing.pid)


def test_an_interruption_waits_for_what_is_being_started():
    said = []
    with pytest.raises(KeyboardInterrupt), interruption.deferred():  # noqa: PT012
        signal.raise_signal(signal.SIGINT)
        said.append("started")
    assert said == ["started"]


@pytest.mark.skipif(sys.platform != "linux", reason="nothing tells who left the group elsewhere")
def test_asked_to_end_it_leaves_neither_folder_nor_grandchildren(write_recipe, tmp_path):
    text = """
import subprocess, sys
def setup(ctx):
    line = f"import time; time.sleep(600)  # tracekit-pass-{sys.argv[0]}"
    for apart in (False, True):
        subprocess.Popen([sys.executable, "-c", line], start_new_session=apart)
    open(ctx.mark, "w").close()
    return lambda: None if __import__("time").sleep(0.1) else None
PARAMS = {"mark": "%s"}
"""
    mark = tmp_path / "started"
    recipe = write_recipe(text % mark)
    capturing = start_capture(recipe, tmp_path / "run.json", "eager", unforked="eager: measuring")
    deadline = time.monotonic() + 60
    while not mark.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(running(str(recipe))) >= 3
    capturing.terminate()
    said = capturing.communicate(timeout=30)[1]
    assert "Nothing was written" in said
    assert {each.name for each in tmp_path.iterdir()} == {"recipe.py", "started"}
    assert not running(str(recipe))


@pytest.mark.skipif(sys.platform != "linux", reason="children outlive a killed parent elsewhere")
@pytest.mark.parametrize("moment", ["eager: taking", "sound: measuring"])
def test_killed_at_any_moment_the_run_is_whole_and_nothing_runs_on(write_recipe, tmp_path, moment):
    out = tmp_path / "run.json"
    earlier = write_earlier(out)
    capturing = start_capture(write_recipe(FAILING), out, unforked=moment)
    assert read_until(capturing, moment)
    capturing.kill()
    capturing.wait()
    if moment.startswith("sound"):
        assert runs.read(out).planned == ["eager", "sound"]
        assert [variant.name for variant in runs.read(out).variants] == ["eager"]
        assert [each.read_bytes() for each in tmp_path.glob("run-*.json")] == [earlier]
    else:
        assert out.read_bytes() == earlier
    deadline = time.monotonic() + 60
    while passes_of(capturing.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not passes_of(capturing.pid)
    with process.scratch() as scratch:  # the next capture sweeps what the killed one left
        assert not [*scratch.parent.glob(f"tracekit-pass-{capturing.pid}-*")]
