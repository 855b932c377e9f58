"""Stage `profile`: the traces. `cold` for compilation, `steady` for numbers, `detail` for lines, layers and bytes.

Each is of a window of steps, which is planned before: how many steps it takes, and what it records. It is exported as a
compressed file, without a step that never finished.
"""

import contextlib
import gzip
import json
import re
import shutil
import statistics
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from msgspec import Struct
from msgspec.structs import replace
from torch.profiler import ProfilerAction

from tracekit.base.atomic import replacing
from tracekit.capture.child import event_tree, timing
from tracekit.capture.child.clocks import stopwatch
from tracekit.capture.child.graph_log import GraphLog
from tracekit.capture.child.line_marks import IS_CHEAP, LineMarks
from tracekit.capture.child.replaced import real_profilers
from tracekit.capture.compiler import CompileRecorder, effective
from tracekit.capture.device import activities, is_gpu, synchronize
from tracekit.capture.environment import versions
from tracekit.capture.job import Job, PassResult, store_so_far
from tracekit.compile_log.ledger import StepStart, ledger
from tracekit.loading.record import FOLDER
from tracekit.run import Profiled, Traces, Window
from tracekit.statistics.typical_step import StepPattern, costliest_start, typical_step
from tracekit.vocabulary.event_names import OWN_WAIT
from tracekit.vocabulary.lines_file import marked_path

_COLD_WITHOUT_GPU = "its cold trace leaves out the GPU: autotuning launches hundreds of kernels for every choice"
_ABSORBING = 100  # launches; CUPTI spoils the first kernel of the second session in a process, two of the third, …
STACKS = dict.fromkeys(("with_stack", "record_shapes", "profile_memory", "with_modules"), True)
_MOST_DETAILED = 12  # steps, to hold a whole period: recording stacks is slow
STEADY_WARMUP = 2
# Where steps are few, the steady window comes first, because the report's numbers are from it.
_LEAST_FOR_COLD = 8  # leaves it 3 steps after its warm-up
_LEAST_FOR_DETAIL = 16  # leaves it 7
_LEAST_FOR_WARMUP = 4  # leaves it 2
_LEAST_FOR_MARKED = 36  # leaves it 18


def profile(job: Job, recorder: CompileRecorder, graphs: GraphLog) -> timing.Steps[PassResult]:
    """Three traces of one training: of its first steps, of steps after which nothing compiles any more, and with
    stacks."""
    taking = _Taking(job, recorder, graphs)
    with contextlib.suppress(timing.EndedError):
        yield from taking.take_all()
    return taking.result()


def record_first(job: Job, recorder: CompileRecorder, steps: int, *, stacks: bool) -> timing.Steps[PassResult]:
    """One trace of the first steps, or of all if there are fewer: none can be spared to warm up the profiler."""
    taking = _Taking(job, recorder, GraphLog(), warms_up_alone=True)
    with contextlib.suppress(timing.EndedError):
        yield from taking.trace(PlannedWindow("steady", steps, 0, STACKS if stacks else {}))
    return taking.result()


def short_trace(job: Job, recorder: CompileRecorder, steps: int) -> timing.Steps[str | None]:
    """The name of a trace of so many steps of a training that is warm already, or of fewer if it ends; None if none
    was left. Its folder has one of each round."""
    name = f"turn-{sum(1 for _ in Path(job.folder).glob('turn-*')) + 1}.json.gz"
    taking = _Taking(job, recorder, GraphLog())
    with contextlib.suppress(timing.EndedError):
        yield from taking.trace(PlannedWindow("steady", steps, STEADY_WARMUP, {}, is_marked=False), name)
    return taking.names.get("steady")


class PlannedWindow(Struct, frozen=True):
    """One trace: its number of steps, the number of warm-up steps of the profiler before them, and what it records."""

    name: Window
    steps: int
    warmup: int
    options: dict[str, bool]
    is_marked: bool = True  # whether the interpreter tells which lines run
    is_slow: bool = False  # even where that slows the steps down


class _Taking:
    """A training while it is traced: the current step, and when each step began."""

    def __init__(self, job: Job, recorder: CompileRecorder, graphs: GraphLog, *, warms_up_alone: bool = False) -> None:
        self.job = job
        self.graphs = graphs
        self.recorder = recorder
        self.warms_up_alone = warms_up_alone
        self.during: Window | Literal["warmup"] = "cold"
        self.starts: list[StepStart] = []
        self.names: dict[str, str] = {}
        self.profiled: Profiled | None = None
        self.first_steady = 0  # the number of the first step in the steady window
        self.steady_ns: list[int] = []  # how long each of its steps took

    def take_all(self) -> timing.Steps[None]:
        """Take every window, with the warm-up between the first two."""
        period = self.job.period
        cold, most_warmup, steady, marked, detail = planned_windows(self.job.steps, self.job.available, period)
        if cold and cold.name in self.job.windows:
            yield from self.trace(cold)
            store_so_far(self.job, self.result())
        elif cold:
            for _ in range(cold.steps):
                yield from self.step()
        self.during = "warmup"
        stopwatch.enter("warm up")
        for _ in timing.settle(self.recorder, max(self.job.warmup, period) - COLD.steps, most_warmup):
            yield from self.step()
        if steady.name in self.job.windows:
            yield from self.trace(steady)
            store_so_far(self.job, self.result())
            if marked and not IS_CHEAP:
                yield from self.trace(marked, marked_path(Path(self.names["steady"])).name)
        if detail and detail.name in self.job.windows:
            for _ in range(timing.agreed(self._until_costliest(detail))):
                yield from self.step()
            yield from self.trace(detail)

    def _until_costliest(self, detail: PlannedWindow) -> int:
        """After how many more steps that window begins, if it is to hold the costliest steps of a longer period, as
        those of the steady window were."""
        period = self.job.period
        if self.job.available is not None or not detail.steps < period <= len(self.steady_ns):
            return 0
        first = costliest_start(self.steady_ns, period, detail.steps)
        return (first - (len(self.starts) - self.first_steady) - detail.warmup) % period

    def result(self) -> PassResult:
        """The result: the traces that were taken."""
        happened = ledger(self.recorder, self.starts)
        outcome = effective(self.job, happened)
        if "cold" in self.names and not _sees_gpu(COLD, self.job) and self.job.device != "cpu":
            outcome = outcome.plus([_COLD_WITHOUT_GPU])
        loader = FOLDER if Path(self.job.folder, FOLDER).is_dir() else None
        traces, graphs = Traces(**self.names, loader=loader), self.graphs.first(len(self.starts))
        return PassResult(traces=traces, profiled=self.profiled, ledger=happened, effective=outcome, graphs=graphs)

    def step(self) -> timing.Steps[None]:
        """Train one step."""
        self.starts.append(StepStart(time.time_ns(), len(self.starts), self.during))
        yield

    def trace(self, window: PlannedWindow, name: str = "") -> timing.Steps[None]:
        """Record a window."""
        stopwatch.enter("trace")
        name = name or f"{window.name}.json.gz"
        first = len(self.starts) + window.warmup
        last = first + window.steps - 1
        path, has_stacks = Path(self.job.folder) / name, window.options.get("with_stack", False)
        marks = LineMarks()

        def write(profiler: Any) -> None:
            """The trace and the file of lines beside it, once it is recorded."""
            export(profiler, path, last)
            graphs = self.recorder.provenance.graphs if has_stacks else []
            event_tree.write(profiler, path, graphs, marks.taken(), stacks=has_stacks)

        with real_profilers():
            profiler = _profiler(window, first, last, self.job, write)
        profiler.step_num = len(self.starts)  # the N of ProfilerStep#N counts the training's steps
        self.during = window.name
        facts = _facts(self.job, window)
        synchronize(self.job.device)
        with real_profilers():
            if self.warms_up_alone and _sees_gpu(window, self.job):
                _start_warm(profiler, self.job.device)
            else:
                profiler.start()
        if window.is_marked and (IS_CHEAP or has_stacks or window.is_slow):
            marks.start()
        stamps: list[int] = []
        try:
            for step in range(profiler.step_num, last + 1):
                marks.step()
                if step == first:
                    stamps.append(time.perf_counter_ns())
                    for key, value in facts.items():  # Kineto accepts them only while it records: be quick
                        profiler.add_metadata_json(key, value)
                yield from self.step()
                if step in (first - 1, last):
                    # On a GPU inside a named span, so that the training is not blamed.
                    named = torch.profiler.record_function if self.job.device != "cpu" else contextlib.nullcontext
                    with named(OWN_WAIT):
                        synchronize(self.job.device)
                if step == last:
                    marks.stop()
                if step >= first:
                    stamps.append(time.perf_counter_ns())
                profiler.step()
        except GeneratorExit:  # these were not steps; the real ones will be traced again
            marks.stop()
            profiler.stop()
            raise
        except timing.EndedError:  # the steps that the script took so far are still useful
            marks.stop()
            self._keep(window, name, profiler, stamps, ended=True)
            raise
        self._keep(window, name, profiler, stamps)

    def _keep(self, window: PlannedWindow, name: str, profiler: Any, stamps: list[int], *, ended: bool = False) -> None:
        profiler.stop()
        steps = len(stamps) - 1
        if steps < 1:
            return
        if self.names.setdefault(window.name, name) != name:  # the same steps again, for their lines
            return
        # If the script ended, nothing waited for its last step, so it is not known when a GPU finished it.
        if window.name == "steady" and not (ended and is_gpu(self.job.device)):
            self.first_steady = len(self.starts) - steps
            self.steady_ns = [end - start for start, end in pairwise(stamps)]
            if is_gpu(self.job.device):  # the host runs ahead: only the first and the last time include a wait
                step_ns = round(statistics.fmean(self.steady_ns))
            else:
                pattern = StepPattern(alike=False, period=self.job.period) if self.job.period > 1 else None
                step_ns = typical_step(self.steady_ns, pattern).step_ns
            self.profiled = Profiled(step_ns=step_ns, steps=steps)


def _profiler(window: PlannedWindow, first: int, last: int, job: Job, write: Callable[[Any], None]) -> Any:
    def action(step: int) -> Any:
        if step < first:
            return ProfilerAction.WARMUP
        if step < last:
            return ProfilerAction.RECORD
        return ProfilerAction.RECORD_AND_SAVE if step == last else ProfilerAction.NONE

    recorded = activities(with_gpu=_sees_gpu(window, job))
    return torch.profiler.profile(activities=recorded, schedule=action, on_trace_ready=write, **window.options)


def _start_warm(profiler: Any, device: str) -> None:
    """Start recording, after launching kernels that may be lost."""
    profiler.step_num -= 1
    profiler.current_action = profiler.schedule(profiler.step_num)
    profiler.start()
    nothing = torch.zeros(1, device=device)
    for _ in range(_ABSORBING):
        nothing.zero_()
    synchronize(device)
    profiler.step()


def _sees_gpu(window: PlannedWindow, job: Job) -> bool:
    """Whether a window records the GPU: the cold one does not if hundreds of configurations are tried out in it."""
    autotunes = job.requested.compile and (job.requested.mode or "").startswith("max-autotune")
    return is_gpu(job.device) and not (window is COLD and autotunes)


def _facts(job: Job, window: PlannedWindow) -> dict[str, str]:
    """Facts for the trace's header. Kineto does not escape them, and turns `\\` into `/`, so they must not need it."""
    facts = {**versions(), "recipe": job.label, "trace": window.name, "device": job.device}
    safe = {key: re.sub(r"[^\w .:+=,/()-]", "_", str(value), flags=re.ASCII) for key, value in facts.items()}
    return {"tracekit": json.dumps(safe), "torch_version": json.dumps(safe["torch"])}


class Windows(NamedTuple):
    """The windows of one training, in order, with the warm-up between the first two."""

    cold: PlannedWindow | None
    most_warmup: int  # steps
    steady: PlannedWindow
    marked: PlannedWindow | None  # for lines, where marking them would have slowed the steady steps down
    detail: PlannedWindow | None


COLD = PlannedWindow("cold", steps=3, warmup=0, options={}, is_marked=False)
MARKED = PlannedWindow("steady", steps=8, warmup=1, options={}, is_slow=True)
DETAIL = PlannedWindow("detail", steps=3, warmup=1, options=STACKS)


def planned_windows(steps: int, available: int | None, period: int = 1) -> Windows:
    """The windows that fit into the available steps, of which there is no end if that is None; the steady one is of
    whole periods, if that is possible."""
    full_detail = replace(DETAIL, steps=min(max(period, DETAIL.steps), _MOST_DETAILED))
    marked = replace(MARKED, steps=min(max(period, MARKED.steps), _MOST_DETAILED))
    steps = -(-steps // period) * period
    if available is None:
        steady = PlannedWindow("steady", steps, STEADY_WARMUP, {})
        return Windows(COLD, timing.MOST_WARMUP_STEPS, steady, marked, full_detail)
    cold = COLD if available >= _LEAST_FOR_COLD else None
    fewest_steps = _LEAST_FOR_DETAIL + full_detail.steps - DETAIL.steps
    detail = full_detail if available >= fewest_steps + max(period - DETAIL.steps, 0) else None
    detail = detail or (DETAIL if available >= _LEAST_FOR_DETAIL else None)
    most_marked = marked if not IS_CHEAP and available >= _LEAST_FOR_MARKED * period else None
    steps_left = available - sum(window.steps + window.warmup for window in (cold, most_marked, detail) if window)
    warmup = STEADY_WARMUP if steps_left >= _LEAST_FOR_WARMUP else 0
    fitting = steps_left - warmup
    fitting -= fitting % period if fitting >= period else 0
    steady = PlannedWindow("steady", min(steps, fitting), warmup, {})
    return Windows(cold, steps_left - warmup - steady.steps, steady, most_marked, detail)


def export(profiler: Any, path: Path, last: int) -> None:
    """Write the trace, all of it or nothing; `last` is the intended last step, before or in which the recording may
    have been stopped."""
    unfinished = profiler.step_num
    raw = path.with_name(f".tracekit-{path.stem}.part")  # if the process is killed, a later write removes it
    try:
        profiler.export_chrome_trace(str(raw))
        with open(raw, "rb") as source, replacing(path) as part, gzip.open(part, "wb", compresslevel=5) as target:
            if unfinished > last:
                shutil.copyfileobj(source, target, 1 << 20)
            else:
                # The range was opened when the previous step ended, but what it contains is not a step: evaluation,
                # saving.
                name, replacement = f'"ProfilerStep#{unfinished}"'.encode(), b'"after the last step"'
                target.writelines(line.replace(name, replacement) for line in source)
    finally:
        raw.unlink(missing_ok=True)
