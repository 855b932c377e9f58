"""`with tracekit.record("run.json"):` records what runs inside, in this process, as a variant of a run."""

import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from msgspec.structs import replace

from tracekit import run as runs
from tracekit.base.names import sanitize
from tracekit.base.units import count, many
from tracekit.capture import device, environment, lost_kernels, messages
from tracekit.capture.child import timing
from tracekit.capture.child.loaders import RecordedLoaders
from tracekit.capture.child.replaced import are_idle, idle_profilers
from tracekit.capture.child.script import is_captured
from tracekit.capture.child.step_ends import StepEnds
from tracekit.capture.child.traces import record_first
from tracekit.capture.compiler import CompileRecorder
from tracekit.capture.harness import make_folder, run_path
from tracekit.capture.job import Job, PassResult
from tracekit.capture.passes import relative, slug
from tracekit.errors import TracekitError
from tracekit.errors.capturing import NoTorchError, ProfilerBusyError
from tracekit.installed import version
from tracekit.loading.record import FOLDER
from tracekit.run import Effective, Outcome, Requested, Run, Traces, Variant
from tracekit.vocabulary import step_marks

_MOST_SECONDS = 60.0  # of recorded steps: a trace of so many has some GB at most
_NOTE = "it was recorded in a running process: not measured without the profiler, and without comparing losses"


@contextmanager
def record(
    path: str | Path = "run.json", *, variant: str = "eager", stacks: bool = False, steps: int = 200
) -> Iterator[None]:
    """Profile what runs inside, and write it to a run: the trace, its steps, and what the compiler did.

    A step ends where `tracekit.step()` is called, or else where the first optimizer to step does so; without either,
    all of it is one step. With `stacks`, the trace also shows which lines of your code the time belongs to, and the
    shapes of operators, but steps become slower. Other profilers are idle meanwhile. A second recording adds its
    variant to the run of the first; if the run already has a variant of that name, a new run begins.

    The first 200 steps are recorded (`steps`), or those of the first minute; what follows them runs as if nothing
    recorded it, so that memory and file stay small however long it takes.
    """
    if not environment.has_torch():
        raise NoTorchError
    if is_captured():
        yield  # the recording script itself runs in a capture, which records it
        return
    import torch

    if are_idle() or torch.autograd._profiler_enabled():
        raise ProfilerBusyError
    run_file = run_path(Path(path))
    run = _run_to_add_to(run_file, variant)
    traces_folder = make_folder(run_file, run.created) / slug(variant, [variant])
    traces_folder.mkdir()
    recording = _Recording(
        Job(stage="profile", program="", label=variant, folder=str(traces_folder), device=run.device), stacks, steps
    )
    outcome: Outcome = "ok"
    error: str | None = None
    try:
        with idle_profilers(), RecordedLoaders(traces_folder / FOLDER), recording:
            yield
    except KeyboardInterrupt:
        outcome, error = "interrupted", "Ctrl-C"
        raise
    except BaseException as raised:
        outcome, error = "error", sanitize(f"{type(raised).__name__}: {str(raised).partition(chr(10))[0]}")
        raise
    finally:
        if recording.result is None:  # the recording never began, because another profiler is running, or it failed
            shutil.rmtree(traces_folder.parent, ignore_errors=True)
            if recording.failure is not None:
                messages.on_stderr(_not_recorded(variant, recording.failure))
        else:
            recorded = _variant(variant, recording.result, traces_folder, outcome, error, left_out=recording.left_out)
            for note in recorded.effective.notes[1:]:
                messages.on_stderr(f"warning: {note}")
            run = replace(run, planned=[*run.planned, variant], variants=[*run.variants, recorded])
            try:
                aside = runs.write(run, run_file)
            except TracekitError as failure:  # what was trained until now is worth more than its recording
                messages.on_stderr(_not_recorded(variant, failure))
            else:
                for line in [*([messages.moved_aside(aside)] if aside else []), *messages.written(run_file)]:
                    messages.on_stderr(line)


class _Recording:
    """One trace of what runs between enter and exit, in steps, or of the first of them."""

    def __init__(self, job: Job, stacks: bool, most_steps: int) -> None:
        self.result: PassResult | None = None
        self.failure: Exception | None = None
        self._compiler = CompileRecorder()
        self._pass = record_first(job, self._compiler, most_steps, stacks=stacks)
        self._until = time.monotonic() + _MOST_SECONDS
        self._steps = self._recorded = 0
        self._ends = StepEnds(lambda _: None if self._calls_of_step else self._stepped())
        self._calls_of_step = 0  # of tracekit.step(); after the first, optimizers end no step

    def __enter__(self) -> "_Recording":
        with ExitStack() as entered:
            entered.enter_context(self._ends)  # it looks at every object there is, which a profiler would record
            next(self._pass)
            self._compiler.__enter__()
            entered.pop_all()
        step_marks.listen(self._marked)
        return self

    def __exit__(self, *_: object) -> None:
        step_marks.stop_listening(self._marked)
        self._ends.__exit__()
        if not self._steps:
            self._stepped()  # all of it is one step
        self._compiler.__exit__()
        self._end()

    @property
    def left_out(self) -> str:
        """Which steps were not recorded, as a note; empty if all were."""
        if self._recorded == self._steps:
            return ""
        return (
            f"the first {count(self._recorded)} of {many(self._steps, 'step')} were recorded: "
            f"tracekit.record(steps=…) says how many, for {_MOST_SECONDS:.0f} s at most"
        )

    def _end(self) -> None:
        if self.result is None and self.failure is None:
            self._advance(lambda: self._pass.throw(timing.EndedError))

    def _advance(self, advance: Callable[[], object]) -> None:
        try:
            advance()
        except StopIteration as end:
            self.result = end.value
        except Exception as error:  # a full disk, for example: a training must not end because it is recorded
            self.failure = error

    def _marked(self) -> None:
        self._calls_of_step += 1
        self._stepped()

    def _stepped(self) -> None:
        self._steps += 1
        if self.result is not None or self.failure is not None:
            return
        self._recorded += 1
        self._advance(lambda: next(self._pass))
        if time.monotonic() > self._until:
            self._end()


def _not_recorded(variant: str, failure: Exception) -> str:
    why = str(failure) if isinstance(failure, TracekitError) else f"{type(failure).__name__}: {failure}"
    return sanitize(f"warning: {variant} was not recorded. {why}")


def _run_to_add_to(run_file: Path, variant: str) -> Run:
    try:
        earlier = runs.read(run_file)
    except TracekitError:
        earlier = None  # there is no run, or a damaged one, which will be moved aside
    if earlier is not None and earlier.variant(variant) is None:
        return earlier
    return new_run("tracekit.record")


def new_run(recorder: str) -> Run:
    """A run of this process, as yet without variants, that such a function of ours records."""
    return Run(
        created=runs.now(),
        tracekit=version() or "0",
        recipe="recorded",
        script=recorder,
        device=device.preferred(),
        environment=environment.gather(),
        variants=[],
    )


def recorded_variant(name: str, traces: Traces, *, compiled: bool, notes: Iterable[str] = ()) -> Variant:
    """A variant of such a run; its traces are named relative to the run file."""
    effective = Effective(mode=None if compiled else "eager", notes=[_NOTE, *notes])
    return Variant(name=name, outcome="ok", requested=Requested(compile=compiled), effective=effective, traces=traces)


def _variant(
    name: str, result: PassResult, traces_folder: Path, outcome: Outcome, error: str | None, *, left_out: str = ""
) -> Variant:
    variant = recorded_variant(
        name,
        relative(result.traces, traces_folder),
        compiled=name != "eager" or bool(result.ledger.compiles),
        notes=[*filter(None, [left_out]), *_warnings(result, traces_folder)],
    )
    return replace(variant, outcome=outcome, error=error, profiled=result.profiled, ledger=result.ledger)


def _warnings(result: PassResult, traces_folder: Path) -> Iterator[str]:
    """Warnings about what happened but is not in the trace."""
    if device.has_gpu() and result.traces.steady:
        if side := lost_kernels.what_is_missing(traces_folder / result.traces.steady):
            yield side.sentence()
    elif (accelerator := device.other_accelerator()) and device.holds_tensors(accelerator):
        yield (
            f"its work on {accelerator} is not in its trace, and was not waited for, because {accelerator} cannot be "
            "measured"
        )
