"""The child process: performs one pass of one variant, or a whole training, and writes its result to a file."""

import contextlib
import gc
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from tracekit.base.atomic import put
from tracekit.capture import compiler
from tracekit.capture.child import recipe, script, timing
from tracekit.capture.child.clocks import stopwatch
from tracekit.capture.child.failures import failure, one_line
from tracekit.capture.child.file_journal import FileJournal
from tracekit.capture.child.loaders import RecordedLoaders
from tracekit.capture.child.loss_check import (
    GradientNorms,
    Losses,
    RoundedDifferently,
    check,
    draw_as_eager,
    drift,
    metrics,
    number,
)
from tracekit.capture.child.measure import infer_ns, measure
from tracekit.capture.child.recipe import RecipeStep
from tracekit.capture.child.traces import profile
from tracekit.capture.compiler import CompileRecorder
from tracekit.capture.device import GPU, accelerator, devices, show_only, synchronize, why_no_gpu
from tracekit.capture.environment import backends, gather, gather_bytes_per_s
from tracekit.capture.job import RESULT, Job, PassResult
from tracekit.capture.options import parse_all
from tracekit.compile_log.ledger import total_ns
from tracekit.errors import TracekitError
from tracekit.loading.record import FOLDER
from tracekit.run import Effective, Training, divergence


def main(folder: str) -> None:
    """Read `job.json` in that folder, perform it, and write `result.json`."""
    job = msgspec.json.decode(Path(folder, "job.json").read_bytes(), type=Job)
    stopwatch.start(job.began_ns or time.time_ns())
    timing.join(job)
    result = perform(job)
    put(Path(folder, RESULT), msgspec.json.encode(result, enc_hook=repr))
    if result.outcome == "ok":
        timing.leave(job)


def perform(job: Job) -> PassResult:
    """Perform the pass; an exception of the recipe becomes the result."""
    notes: list[str] = []
    stopwatch.enter("import")
    if job.is_script and job.stage != "inspect":  # the wanted device is the first of those that it sees
        job = replace(job, device=show_only(job.device))
    if job.stage == "profile":
        compiler.keep_kernel_lines()
    # A recipe fetches data in each stage, and must change no file; a script's journal knows where its steps begin.
    files = FileJournal(job) if job.journal and not (job.is_script or job.viewed or job.in_place) else None
    if files is not None:
        files.begin()
    try:
        result = _PASSES[job.stage](job, notes)
    except (Exception, SystemExit) as error:
        result = failure(error)
    finally:
        if files is not None:
            files.end()
    return replace(result, notes=notes, activities=stopwatch.seconds())


def _inspect(job: Job, notes: list[str]) -> PassResult:
    """What the recipe declares. Its data is fetched here, once, while nothing is timed. A script is not run."""
    if job.is_script:
        return PassResult(has_setup=False, **_machine())
    module = recipe.load(job.program)
    if not hasattr(module, "setup"):
        return PassResult()
    declared = dict(getattr(module, "PARAMS", {}))
    if hasattr(module, "prepare"):
        with contextlib.suppress(TracekitError):  # the parent reads the same parameters, and reports what is wrong
            parsed_job = replace(job, params=parse_all(job.params, declared))
            module.prepare(recipe.make_context(module, parsed_job, notes))
    variants = dict(getattr(module, "VARIANTS", {}))
    return PassResult(params=declared, variants=variants, has_setup=True, **_machine())


def _machine() -> dict[str, Any]:
    """What the parent, which never imports torch, needs to know about the machine."""
    environment = gather()
    if GPU in devices() and (speed := gather_bytes_per_s(GPU)) is not None:
        environment["gather_bytes_per_s"] = round(speed)
    return {
        "environment": environment,
        "devices": devices(),
        "accelerator": accelerator(),
        "why_no_gpu": why_no_gpu(),
        "backends": backends(),
    }


def _measure(job: Job, notes: list[str]) -> PassResult:
    with _recorder() as recorder:
        if job.is_script:
            return script.run(job, lambda graphs: measure(job, recorder, graphs), recorder)
        feed = _feed(job, notes)
        result = timing.run_steps(measure(job, recorder, feed.graphs), feed)
        if job.round:
            return result
        assert result.measured is not None
        measured = replace(result.measured, epoch_steps=feed.epoch_steps)
        result = replace(result, measured=measured)
        try:
            infer = infer_ns(feed, job, recorder)
        except Exception as error:  # the training was measured
            failed = failure(error)
            return replace(result, outcome=failed.outcome, error=f"infer(): {failed.error}", traceback=failed.traceback)
        return replace(result, measured=replace(measured, infer_ns=infer))


def _profile(job: Job, notes: list[str]) -> PassResult:
    with _recorder() as recorder, RecordedLoaders(Path(job.folder, FOLDER), job.rank):
        if job.is_script:
            return script.run(job, lambda graphs: profile(job, recorder, graphs), recorder)
        feed = _feed(job, notes, mark_loading=True)
        return timing.run_steps(profile(job, recorder, feed.graphs), feed)


def _check(job: Job, notes: list[str]) -> PassResult:
    draw_as_eager(job)
    if job.is_script:
        # How far rounding moves its losses takes another process, because a script runs only once in each.
        losses = Losses()
        rounding: Any = RoundedDifferently() if job.rounded else contextlib.nullcontext()
        with _recorder() as recorder, rounding, GradientNorms() as gradients:
            result = script.run(job, lambda _: losses.steps(), recorder, losses)
        return replace(result, gradients=gradients.norms)
    with _recorder(), GradientNorms() as gradients:
        checked = check(_feed(job, notes))
    checked = replace(checked, gradients=gradients.norms)
    if job.requested.compile or not checked.losses:
        return checked
    gc.collect()  # the second training needs the memory of the first one
    try:
        with GradientNorms() as rounded:
            loss_drift = drift(_feed(job, []), checked.losses)
        moved = divergence(gradients.norms, rounded.norms)
        gradient_drift = moved if moved is not None and math.isfinite(moved) else None
        return replace(checked, loss_drift=loss_drift, gradient_drift=gradient_drift)
    except Exception as error:  # its losses are known, and can be compared like any others
        note = f"how far rounding alone moves its losses is unknown: {one_line(error)}"
        return replace(checked, effective=Effective(notes=[note]))


def _train(job: Job, notes: list[str]) -> PassResult:
    """Train that many epochs, with only a clock reading between them, then evaluate the recipe's own metric."""
    feed = _feed(job, notes)
    steps, loss, times = 0, None, []
    synchronize(job.device)
    for _ in range(job.epochs):
        started = time.perf_counter_ns()
        steps, loss = feed.epoch()
        synchronize(job.device)
        times.append(time.perf_counter_ns() - started)
    last = number(loss)  # before evaluating, because the next replay of a CUDA graph overwrites it
    reached = metrics(feed.evaluate() if feed.evaluate else {})
    training = Training(seed=job.seed, epochs=job.epochs, steps=steps, epoch_all_ns=times, loss=last, metrics=reached)
    return PassResult(training=training)


def _audit(job: Job, notes: list[str]) -> PassResult:
    from tracekit.capture.audit.child import audit

    return audit(job, notes)


_PASSES: dict[str, Callable[[Job, list[str]], PassResult]] = {
    "inspect": _inspect,
    "measure": _measure,
    "profile": _profile,
    "check": _check,
    "train": _train,
    "audit": _audit,
}


def _recorder() -> CompileRecorder:
    recorder = CompileRecorder()
    stopwatch.listen(lambda: total_ns([*recorder.compiled]))
    return recorder


def _feed(job: Job, notes: list[str], mark_loading: bool = False) -> RecipeStep:
    module = recipe.load(job.program)
    stopwatch.enter("set up")
    recipe.seed_all(job.seed)
    feed = RecipeStep(module, recipe.make_context(module, job, notes), mark_loading, job.workload)
    recipe.seed_all(job.seed)
    return feed
