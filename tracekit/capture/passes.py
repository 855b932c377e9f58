"""Runs all passes of one variant, up to the first that fails.

How much do the losses of a script vary from run to run? Measured by another run, in which sums round differently.
"""

import math
import os
import re
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from tracekit.capture import lost_kernels, messages, process
from tracekit.capture.course import Course
from tracekit.capture.file_view import with_files
from tracekit.capture.job import Job, PassResult, Stage, has_something
from tracekit.capture.lost_kernels import completed
from tracekit.capture.options import Options, PlannedVariant
from tracekit.capture.preparation import Prepared
from tracekit.errors.capturing import ArgumentsRefusedError, NoStepsError
from tracekit.run import Outcome, Pass, StageTime, Traces, Variant, Window, divergence
from tracekit.run.settings import Settings, values_of
from tracekit.statistics.typical_step import typical_step

# Two of them compile: the measured pass, because compiling is timed where nothing observes it, and the profiled one,
# because its cold trace shows compiling, and its kernels have to be named. All others use what the first one compiled.
_STAGES: tuple[Stage, ...] = ("measure", "profile", "check")
PassResults = dict[Stage, PassResult]
# A relative difference of the first loss, before training has amplified anything, that rounding cannot explain.
_OTHER_TRAINING = 1e-2


def capture_variant(
    planned: PlannedVariant,
    prepared: Prepared,
    folder: Path,
    *,
    caches: Path,
    options: Options,
    course: Course,
) -> tuple[Variant, str | None]:
    """The variant, and what it trained on in the recipe's own words. Traces go to a folder named after it.

    `caches` is empty at first: the measured pass leaves there what it compiled, for all passes but the profiled one.
    """
    traces_folder = folder / slug(planned.name, prepared.run.planned)
    results: PassResults = {}
    outcome: Outcome
    error: str | None
    try:
        traces_folder.mkdir()
        for stage in stages(prepared, options):
            with process.scratch() if stage == "profile" else nullcontext(caches) as scratch:
                options.tell(f"{messages.doing(planned.name, stage)}{course.begins(planned.name, stage)}")
                job = _job(stage, planned, prepared, folder, options, before=results.get("measure"))
                job = with_headers(job, caches)
                perform = partial(_perform, scratch=scratch, options=options)
                results[stage] = result = perform(job)
                if stage == "measure" and result.spent is not None:
                    course.measured(planned.name, result.spent.seconds, result.spent.activities.get("compile", 0.0))
                if stage == "profile" and job.device != "cpu":
                    results[stage] = completed(result, traces_folder, partial(_again, job, perform, options))
                if stage == "check" and prepared.is_script and not planned.requested.compile:
                    results[stage] = with_drift(result, partial(perform, replace(job, rounded=True)))
                if results[stage].outcome != "ok" and not has_something(results[stage]):
                    break
        outcome, error = "ok", None
        for stage, result in results.items():
            if result.outcome != "ok":
                outcome, error = result.outcome, f"{stage}: {result.error}"
                break
    except KeyboardInterrupt as interrupt:
        outcome, error = "interrupted", str(interrupt) or "Ctrl-C"
    variant = _variant(planned, results, traces_folder, outcome, error)
    # What the recipe's setup said about its data in the last pass that reached it.
    data = next(("; ".join(result.notes) for result in reversed(results.values()) if result.notes), None)
    return replace(variant, workload=options.workload), data


def measure_again(
    number: int, planned: PlannedVariant, prepared: Prepared, folder: Path, *, caches: Path, options: Options
) -> PassResult:
    """Another, shorter unprofiled pass, which uses what the first one compiled."""
    return _perform(replace(_job("measure", planned, prepared, folder, options), round=number), caches, options)


def live_job(
    number: int, planned: PlannedVariant, prepared: Prepared, folder: Path, options: Options
) -> tuple[Job, Path]:
    """The same pass as one that takes turns with those of other variants, and the file for what its process prints."""
    job = replace(_job("live", planned, prepared, folder, options), round=number)
    return job, Path(job.folder, f"live{_log_suffix(job)}.log")


def train(
    seed: int, planned: PlannedVariant, prepared: Prepared, folder: Path, *, caches: Path, options: Options
) -> PassResult:
    """A training to its end with that seed."""
    job = replace(_job("train", planned, prepared, folder, options), seed=seed, epochs=options.epochs)
    return _perform(job, caches, options)


def slug(name: str, among: Sequence[str]) -> str:
    """A folder name for the variant, different for each of them."""
    short = [re.sub(r"[^\w.-]+", "-", variant_name).strip("-.") or "variant" for variant_name in among]
    position = among.index(name)
    return short[position] if short.count(short[position]) == 1 else f"{short[position]}-{position}"


def stages(prepared: Prepared, options: Options) -> tuple[Stage, ...]:
    """The first passes of each variant, in their order."""
    if options.quick:
        return _STAGES[:1]
    return _STAGES if has_losses(prepared, options) else _STAGES[:-1]


def has_losses(prepared: Prepared, options: Options) -> bool:
    """Whether losses are read. A recipe has a metric, too; for a script they could only be compared, which takes more
    than one variant."""
    return options.workload != "inference" and not (prepared.is_script and len(prepared.variants) == 1)


def _again(job: Job, perform: Callable[[Job], PassResult], options: Options, window: Window) -> PassResult:
    """That window by itself, in a separate process."""
    options.tell(messages.taking_again(window))
    return perform(replace(job, windows=(window,)))


def _job(
    stage: Stage,
    planned: PlannedVariant,
    prepared: Prepared,
    folder: Path,
    options: Options,
    *,
    before: PassResult | None = None,
) -> Job:
    run = prepared.run
    measured = before.measured if before is not None else None
    settings = {
        **values_of(options, Settings),
        "params": {**prepared.overrides, **planned.params},
        "is_script": prepared.is_script,
        "epochs": 0,  # only trainings have epochs
        "step_at": options.step_at if ":" in options.step_at or not before else before.boundary,
    }
    return Job(
        **settings,
        stage=stage,
        program=run.script,
        label=f"{run.recipe} {planned.name}",
        requested=planned.requested,
        device=run.device,
        folder=str(folder / slug(planned.name, prepared.run.planned)),
        available=before.ended if before else None,
        period=measured.period if measured is not None else prepared.period,
    )


def _perform(job: Job, scratch: Path, options: Options) -> PassResult:
    log = Path(job.folder, f"{job.stage}{_log_suffix(job)}.log")
    job = with_headers(job, scratch)
    load, began = load_average(), time.time_ns()
    result = process.perform(job, scratch, log, options.timeout, options.tell)
    # The log remains if it says more than the profiler's library, whose warnings are notes.
    text = log.read_text(errors="replace")
    if rest := lost_kernels.without_chatter(text):
        log.write_text(rest)
    else:
        log.unlink()
    if warnings := lost_kernels.warnings(text):
        notes = [*result.effective.notes, *(f"the profiler warned: {warning}" for warning in warnings)]
        result = replace(result, effective=replace(result.effective, notes=[*dict.fromkeys(notes)]))
    return finished(job, result, began=began, load=load, options=options)


def with_headers(job: Job, caches: Path) -> Job:
    """The job with a folder for precompiled headers, which is among these caches unless it has one already."""
    if job.headers or not job.requested.compile:
        return job
    folder = caches / "headers"
    folder.mkdir(exist_ok=True)
    return replace(job, headers=str(folder))


def finished(job: Job, result: PassResult, *, began: int, load: float | None, options: Options) -> PassResult:
    """The result as that of one pass, if steps were timed; what it raised is told."""
    seconds = round((time.time_ns() - began) / 1e9, 3)
    spent = StageTime(stage=job.stage, round=job.round, seconds=seconds, activities=result.activities)
    result = replace(result, spent=spent)
    if (measured := result.measured) is not None:
        typical = typical_step(measured.step_all_ns)
        this_pass = Pass(
            round=job.round,
            started_ns=began,
            seconds=seconds,
            step_ns=measured.step_ns,
            step_all_ns=measured.step_all_ns,
            alike=typical.alike,
            period=typical.period,
            compiles_timed=measured.compiles_timed,
            load=load,
            cores=usable_cores(),
            graphs=result.graphs,
            turns=result.turns,
            trace=relative(result.traces, Path(job.folder)).steady,
        )
        result = replace(result, measured=replace(measured, passes=[this_pass]))
    if result.no_steps:
        raise NoStepsError(job.program, result.error or "")
    if result.refused and (usage := messages.usage(result.traceback)):
        raise ArgumentsRefusedError(job.program, usage)
    for line in messages.quoted(result.traceback):
        options.tell(line)
    return result


def _log_suffix(job: Job) -> str:
    """The suffix that distinguishes the log of a pass from others of its stage."""
    number = f"-{job.round + 1}" if job.round else f"-seed-{job.seed}" if job.stage == "train" else ""
    return f"{number}{'-rounded' if job.rounded else ''}"


def load_average() -> float | None:
    """How many processes ran or waited for a processor in the last minute; None where the system does not say."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def usable_cores() -> int | None:
    """How many cores the passes may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def _variant(
    planned: PlannedVariant, results: PassResults, traces_folder: Path, outcome: Outcome, error: str | None
) -> Variant:
    """The variant, made of the results of the passes; a pass that did not happen leaves its fields empty."""
    nothing = PassResult()
    measured, profiled = results.get("measure", nothing), results.get("profile", nothing)
    checked = results.get("check", nothing)
    effectives = [result.effective for result in (profiled, measured, checked)]
    notes = dict.fromkeys(note for effective in effectives for note in effective.notes)
    remarks = dict.fromkeys(remark for effective in effectives for remark in effective.remarks)
    return Variant(
        name=planned.name,
        outcome=outcome,
        error=error,
        params=planned.params,
        requested=planned.requested,
        effective=with_files(replace(profiled.effective, notes=[*notes], remarks=[*remarks]), results.values()),
        traces=relative(profiled.traces, traces_folder),
        ranks=[replace(rank, traces=relative(rank.traces, traces_folder)) for rank in profiled.ranks],
        measured=measured.measured,
        memory=measured.memory,
        gpu=measured.gpu,
        profiled=profiled.profiled,
        ledger=profiled.ledger,
        graphs=profiled.graphs,
        losses=checked.losses,
        loss_drift=checked.loss_drift,
        gradients=checked.gradients if checked.losses else [],
        gradient_drift=checked.gradient_drift,
        metrics=checked.metrics,
        spent=[result.spent for result in results.values() if result.spent is not None],
        ended=measured.ended,
        step=measured.step or profiled.step,
    )


def relative(traces: Traces, traces_folder: Path) -> Traces:
    """The path relative to the run file, which is beside the run's folder; the worker only knows file names."""
    return traces.moved_under(f"{traces_folder.parent.name}/{traces_folder.name}")


def with_drift(checked: PassResult, again: Callable[[], PassResult]) -> PassResult:
    """The losses of an eager variant, with how far rounding moves them; none if no two runs of the script are alike.

    `again` runs it once more with different rounding.
    """
    if checked.outcome != "ok" or not checked.losses:
        return checked
    rerun = again()
    if rerun.outcome != "ok":
        remark = f"how far rounding alone moves its losses is unknown: {rerun.error}"
        return replace(checked, effective=checked.effective.plus(remarks=[remark]))
    apart = divergence(checked.losses[:1], rerun.losses[:1])
    if apart is None or apart > _OTHER_TRAINING:
        remark = (
            "losses were not compared: the script draws random numbers that no seed fixes, so no two runs are alike"
        )
        return replace(checked, losses=[], effective=checked.effective.plus(remarks=[remark]))
    drifts = divergence(checked.losses, rerun.losses), divergence(checked.gradients, rerun.gradients)
    loss_drift, gradient_drift = (moved if moved is not None and math.isfinite(moved) else None for moved in drifts)
    return replace(checked, loss_drift=loss_drift, gradient_drift=gradient_drift)
