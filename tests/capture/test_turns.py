"""Processes of the variants stay alive and take turns, step by step; where they cannot, whole passes do."""

import ast
import json
import os
import re
import signal
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
import warm

from tests.capture.test_interruptions import passes_of, read_until, start_capture
from tracekit import run as runs
from tracekit.capture import turns
from tracekit.capture.harness import Options, capture
from tracekit.capture.preparation import Prepared
from tracekit.capture.turns import line_that_reads_it
from tracekit.run import Memory, Requested, Variant
from tracekit.run.contrast import contrast
from tracekit.statistics.typical_step import StepPattern
from tracekit.trace import Trace

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has views, and pipes with names like these")

# Notes each of its losses in a file that no view hides, and in one of the user's that a view does.
NOTING = """
import os, torch
PARAMS = {"noted": "", "raises": False}
VARIANTS = {"first": {"compile": False}, "second": {"compile": False}}

def setup(ctx):
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    noted = os.open(ctx.noted, os.O_WRONLY | os.O_CREAT | os.O_APPEND) if ctx.noted else None
    losses = []

    def step():
        optimizer.zero_grad()
        loss = model(torch.randn(8, 4)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        with open("losses.txt", "a") as file:
            file.write(f"{losses[-1]}\\n")
        if noted is not None:
            os.write(noted, f"{os.getpid()} {len(losses)} {losses[-1]}\\n".encode())
        return loss.detach()

    return step
"""

# Its steps take so little that what the machine does may seem to recur in them.
WITHOUT_A_PERIOD = """
from tracekit.capture.child import measure
measure.common_period = lambda times: 1
"""


def captured(recipe, out, *variants, passes=4, tell=lambda _: None, **options):
    return capture(
        Options(recipe, variants, device="cpu", steps=2, warmup=0, passes=passes, budget=600, out=out,
                tell=tell, **options)
    )  # fmt: skip


def turns_of(run, number):
    """The turns of a round in order of time: whose it was, when it began, and when its last step ended."""
    made = []
    for variant in run.variants:
        one = next(each for each in variant.measured.passes if each.round == number)
        taken = 0
        for turn in one.turns:
            lasted = sum(one.step_all_ns[taken : taken + turn.steps])
            made.append((turn.started_ns, turn.started_ns + lasted, variant.name))
            taken += turn.steps
    return sorted(made)


@pytest.fixture(scope="module")
def taken(tmp_path_factory):
    """A capture whose variants noted all their losses, and the notes: process, step, loss."""
    folder = tmp_path_factory.mktemp("taken")
    noted = Path("/dev/shm", f"tracekit-noted-{os.getpid()}")
    (folder / "recipe.py").write_text(NOTING + WITHOUT_A_PERIOD)
    (folder / "losses.txt").write_text("mine")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(runs, "step_pattern", lambda *_: StepPattern())
        try:
            run = captured(
                folder / "recipe.py", folder / "run.json", "first", "second", passes=5, params={"noted": str(noted)}
            )
            notes = [line.split() for line in noted.read_text().splitlines()]
        finally:
            noted.unlink(missing_ok=True)
    return folder, run, notes


def test_one_at_a_time_takes_steps_in_an_order_that_changes(taken):
    _, run, _ = taken
    orders = []
    for number in (1, 2, 3, 4):
        of_round = turns_of(run, number)
        assert not run.why_no_turns
        assert len(of_round) >= 4
        clock_ns = 1_000_000  # the ends are those of another clock than the starts
        assert all(end <= start + clock_ns for (_, end, _), (start, _, _) in pairwise(of_round))
        orders.append([name for _, _, name in of_round])
        assert all(
            {first, second} == {"first", "second"} for first, second in zip(*[iter(orders[-1])] * 2, strict=True)
        )
    assert {tuple(order[:4]) for order in orders} == {
        ("first", "second", "second", "first"),
        ("second", "first", "first", "second"),
    }


def test_whose_process_is_made_ready_first_changes_from_round_to_round(tmp_path, monkeypatch):
    started, start = [], turns.Turns._started

    def noting(self, number, planned, *others):
        started.append((number, planned.name))
        return start(self, number, planned, *others)

    monkeypatch.setattr(turns.Turns, "_started", noting)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipe.py").write_text(NOTING)
    said = []
    captured(tmp_path / "recipe.py", tmp_path / "run.json", "first", "second", passes=6, tell=said.append)
    (line,) = (line for line in said if "rounds:" in line)  # between rounds that are taken together, and the next ones
    assert re.search(r"[45] rounds: second (.* \(.*; [34] pairs\)|too uncertain to tell yet).*; about .* left", line)
    first = [next(name for number, name in started if number == each) for each in (1, 2, 3, 4)]
    assert first in (["first", "second"] * 2, ["second", "first"] * 2)


def test_each_process_ends_with_a_short_trace(taken):
    """Of as many steps as were requested, four at most, one process after the other."""
    folder, run, _ = taken
    bounds = {}
    for variant in run.variants:
        paths = run.turn_paths(folder / "run.json", variant)
        assert sorted(paths) == [each.round for each in variant.measured.passes if each.turns]
        assert len({*paths.values()}) == len(paths) >= 3
        assert not set(paths.values()) & {run.trace_path(folder / "run.json", variant)}
        for number, path in paths.items():
            trace = Trace.load(path)
            assert len(trace.steps) == 2
            steps = (trace.base_ns + ns for ns in (trace.steps.begin[0], trace.steps.done[-1]))
            bounds.setdefault(number, []).append(tuple(steps))
    for (_, first_ends), (second_begins, _) in map(sorted, bounds.values()):
        assert first_ends < second_begins


def test_the_passes_of_a_round_are_a_pair(taken):
    _, run, _ = taken
    first, second = (variant.measured for variant in run.variants)
    comparison = contrast(second, first)
    assert (comparison.covers, comparison.passes) == ("rounds", 4)  # those after the first, which had to compile
    assert [each.round for each in first.passes] == [each.round for each in second.passes] == [*range(5)]


def test_each_pass_has_a_process_of_its_own(taken):
    _, run, notes = taken
    assert len({process for process, _, _ in notes}) == 2 * (3 + 4)  # measured, traced and checked, and those in turns
    for variant in run.variants:
        turns_taken = [turn for each in variant.measured.passes[1:] for turn in each.turns]
        for counted in ("minor_faults", "voluntary_switches", "involuntary_switches"):
            assert all(getattr(turn, counted) >= 0 for turn in turns_taken)


def test_turns_change_neither_losses_nor_files(taken):
    folder, run, notes = taken
    of_process = {}
    for process, step, loss in notes:
        losses = of_process.setdefault(process, [])
        if int(step) == len(losses) + 1:  # the pass that compares losses trains twice, and rounds differently then
            losses.append(loss)
    longest = max(of_process.values(), key=len)
    assert all(losses == longest[: len(losses)] for losses in of_process.values())
    assert (folder / "losses.txt").read_text() == "mine"
    assert any("what it wrote was discarded" in each for v in run.variants for each in v.effective.remarks)


# The same training as a script, which also overwrites a file of the user's.
TRAINING = """
import os, sys, torch
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
noted = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for step in range(1, 100_000):
    optimizer.zero_grad()
    loss = model(torch.randn(8, 4)).square().mean()
    loss.backward()
    optimizer.step()
    os.write(noted, f"{os.getpid()} {step} {loss.item()}\\n".encode())
    torch.save(model.state_dict(), "model.pt")
"""


def test_a_script_takes_turns_as_it_is(tmp_path, shared, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(TRAINING)
    (tmp_path / "model.pt").write_text("mine")
    run = captured("train.py", tmp_path / "run.json", "eager", "compiled", passes=2, backend="aot_eager",
                   arguments=[str(shared)])  # fmt: skip
    assert run.why_no_turns == ""
    assert len(turns_of(run, 1)) >= 4
    of_process = {}
    for line in shared.read_text().splitlines():
        process, step, loss = line.split()
        assert len(of_process.setdefault(process, [])) + 1 == int(step)
        of_process[process].append(float(loss))
    eager = max(of_process.values(), key=len)
    for losses in of_process.values():  # but for the one that rounds differently, and compiled code
        assert losses == pytest.approx(eager[: len(losses)], rel=1e-3)
    assert (tmp_path / "model.pt").read_text() == "mine"


def test_a_script_that_ends_early_takes_as_many_turns_as_it_can(tmp_path, shared, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(TRAINING.replace("100_000", "12"))
    run = captured("train.py", tmp_path / "run.json", "eager", passes=2, arguments=[str(shared)])
    first, again = run.variants[0].measured.passes
    assert (run.why_no_turns, run.variants[0].ended, first.turns) == (
        "",
        11,
        [],
    )  # the first ends where the first step begins
    assert 1 <= sum(turn.steps for turn in again.turns) == len(again.step_all_ns) < 12


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("subprocess.Popen(['sleep', '9'])", "it has 1 process of its own"),
        ("threading.Thread(target=wait, daemon=True, name='watchdog').start()", "it has a thread of its own (w"),
        ("_thread.start_new_thread(of_a_library, ('reader',)); time.sleep(1)", "it has a thread of its own (Dummy"),
        ("_thread.start_new_thread(of_a_library, ('pt_autograd_0',)); time.sleep(1)", ""),
        ("signal.setitimer(signal.ITIMER_REAL, 900)", "a timer runs"),
        ("server = socket.create_server(('127.0.0.1', 0))", "it listens to others"),
        ("pool = concurrent.futures.ThreadPoolExecutor(1); pool.submit(int).result()", ""),
    ],
)  # fmt: skip
def test_what_cannot_be_stopped_at_the_end_of_a_step(code, why):
    imports = "import _thread, concurrent.futures, os, signal, socket, subprocess, sys, threading, time"
    done = warm.run(["-c", f"{imports}\n"
        "def wait(): time.sleep(9)\n"
        "def of_a_library(name):\n"
        "  open(f'/proc/self/task/{_thread.get_native_id()}/comm', 'w').write(name)\n"
        f"  threading.current_thread(); wait()\n{code}\n"
        "from tracekit.capture.child.stopping import why_not_stopped\n"
        "print(why_not_stopped(), flush=True)\nos._exit(0)"])  # fmt: skip
    assert done.stdout.startswith(why or "\n"), done.stderr


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("start = time.time()\nfor _ in x:\n  if time.time() - start > 60: break", 3),
        ("begun = perf_counter()\nelapsed = perf_counter() - begun\nwhile elapsed < limit: pass", 3),
        ("if datetime.now() > later: save()", 1),
        ("start = time.time()\nprint(time.time() - start)\nrate = speed(time.time() - start)\nif rate == -1: x", None),
        ("if time > 3: pass\nif lower(loss) < best: save()", None),
    ],
)
def test_a_program_that_decides_by_the_clock_is_not_stopped(code, line):
    assert line_that_reads_it(ast.parse(code).body) == line


def test_variants_that_do_not_fit_into_memory_together_are_not_alive_together(monkeypatch):
    variants = [
        Variant(name=name, outcome="ok", requested=Requested(compile=False), memory=Memory(host_peak_rss_bytes=3 << 30))
        for name in ("eager", "compiled")
    ]
    run = runs.Run(created="", tracekit="", recipe="r", script="r.py", variants=variants)
    for free, why in ((8 << 30, ""), (7 << 30, "together they need 6.00 GiB of memory, and 7.00 GiB is free")):
        monkeypatch.setattr(turns, "free_on_host", lambda free=free: free)
        assert turns.why_not(run, Prepared(run, [], {}), Options("r.py")) == why


@pytest.mark.parametrize(
    ("peak", "total", "why"),
    [
        (3 << 30, 8 << 30, ""),
        (3 << 30, 7 << 30, "together they need 6.00 GiB of the 7.00 GiB of memory that the GPU has"),
        (None, None, "together they need more than is known of memory that the GPU has"),
    ],
)
def test_variants_that_do_not_fit_on_the_gpu_together_are_not_alive_together(monkeypatch, peak, total, why):
    monkeypatch.setattr(turns, "free_on_host", lambda: 8 << 30)
    memory = Memory(host_peak_rss_bytes=1 << 30, device_peak_bytes=peak, device_total_bytes=total)
    nothing = runs.Measured(step_ns=1, step_all_ns=[1], spread_ns=0, clock="cuda events")
    variants = [
        Variant(name=name, outcome="ok", requested=Requested(compile=False), memory=memory, measured=nothing)
        for name in ("eager", "compiled")
    ]
    run = runs.Run(created="", tracekit="", recipe="r", script="r.py", device="cuda", variants=variants)
    assert turns.why_not(run, Prepared(run, [], {}), Options("r.py")) == why


WITH_A_PROCESS = NOTING.replace(
    "    losses = []", "    losses = []\n    import subprocess\n    subprocess.Popen(['sleep', '600'])"
)


@pytest.mark.parametrize(
    ("text", "view", "why"),
    [(WITH_A_PROCESS, "", "process of its own"), (NOTING, "off", "no copy-on-write view")],
    ids=["a process of its own", "no view"],
)
def test_where_they_cannot_whole_passes_take_turns(write_recipe, tmp_path, monkeypatch, text, view, why):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRACEKIT_VIEW", view)
    said = []
    run = captured(write_recipe(text), tmp_path / "run.json", "first", "second", passes=3, tell=said.append)
    assert why in run.why_no_turns
    assert runs.read(tmp_path / "run.json").why_no_turns == run.why_no_turns
    assert any(run.why_no_turns in line for line in said)
    for variant in run.variants:
        assert [(each.round, each.turns) for each in variant.measured.passes] == [(0, []), (1, []), (2, [])]


def test_one_that_dies_in_its_turn_costs_only_its_own(write_recipe, tmp_path, shared, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = NOTING.replace(
        "        return loss.detach()",
        f"        if ctx.raises and len(losses) > 8 and os.path.exists({str(shared)!r}): os.abort()\n"
        "        return loss.detach()",
    ).replace('"second": {"compile": False}', '"second": {"compile": False, "raises": True}')
    said = []

    def tell(line):
        said.append(line)
        if line.startswith("Measuring again"):
            shared.touch()

    run = captured(write_recipe(text), tmp_path / "run.json", "first", "second", passes=4, tell=tell)
    first, second = run.variants
    assert [each.round for each in first.measured.passes] == [0, 1, 2, 3]
    assert [each.round for each in second.measured.passes] in ([0], [0, 1])  # it died in its second turn
    assert any(line.startswith("second: unprofiled pass 2 failed") for line in said)
    assert not any("pass 3" in line for line in said)


def wait_for_turns(mark, capturing):
    """Wait until the live processes of a capture take turns, which their recipe's file shows."""
    ends = time.monotonic() + 60
    while time.monotonic() < ends and capturing.poll() is None and not mark.exists():
        time.sleep(0.05)
    assert mark.exists()


# Its steps are long enough to be met in their middle, and the first one of a second turn leaves a mark.
SLOW = """
import os, time, torch
PARAMS = {"mark": %r}
VARIANTS = {"first": {"compile": False}, "second": {"compile": False}}

def setup(ctx):
    weight = torch.zeros(3, requires_grad=True)
    taken = []

    def step():
        taken.append(time.monotonic())
        time.sleep(0.02)
        if len(taken) > 30:
            open(ctx.mark, "w").close()
        return weight.sum().detach()

    return step
"""


def states(mark):
    """The states of all processes whose environment or command line has this text."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "cmdline").read_text() + (folder / "environ").read_text():
                found[folder.name] = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
    return found


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_ended_in_a_turn_nothing_runs_on_and_nothing_is_left_stopped(write_recipe, tmp_path, shared, ending):
    out = tmp_path / "run.json"
    capturing = start_capture(write_recipe(SLOW % str(shared)), out, "first", "second", passes=8)
    assert read_until(capturing, "Measuring again")
    shared.unlink(missing_ok=True)
    wait_for_turns(shared, capturing)
    capturing.send_signal(ending)
    capturing.communicate(timeout=30)
    ends = time.monotonic() + 30
    while passes_of(capturing.pid) and time.monotonic() < ends:
        time.sleep(0.05)
    assert not passes_of(capturing.pid)
    assert not states(f"tracekit-passes-{os.getuid()}/{capturing.pid}-")
    kept = runs.read(out)
    if ending == signal.SIGINT:  # the rounds that were interrupted count, too
        for variant in kept.variants:
            assert [each.round for each in variant.measured.passes] == [*range(1 + turns.AHEAD)]
            assert all(each.turns for each in variant.measured.passes[1:])
            assert variant.outcome == "ok"
    else:
        assert [len(variant.measured.passes) for variant in kept.variants] == [1, 1]
    assert json.loads(out.read_text())["planned"] == ["first", "second"]
