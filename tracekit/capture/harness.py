"""Captures a recipe or a script: every pass of every variant in a separate process, and one run file for all.

Complete trainings, each in a process: every variant with every seed, variants taking turns.
"""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import cast

from msgspec.structs import replace

from tracekit import run as runs
from tracekit.base import interruption
from tracekit.capture import messages, process, turns
from tracekit.capture.course import Course, explained_time
from tracekit.capture.guardian import folder_lock
from tracekit.capture.options import Options
from tracekit.capture.passes import capture_variant, load_average, stages, train
from tracekit.capture.preparation import Prepared, prepare
from tracekit.capture.rounds import RESERVED_ROUNDS, Rounds, detectable, seconds_for_rounds, visible
from tracekit.errors import TracekitError
from tracekit.errors.asking import OutputError
from tracekit.errors.capturing import NothingCapturedError
from tracekit.run import Run, StageTime, Training, with_common_period
from tracekit.run.accuracy import accuracy_contrast, in_words, reached
from tracekit.run.model import TrainingOutcome

__all__ = ["Options", "capture", "exit_code"]


def capture(options: Options) -> Run:
    """Run every pass, and write the run file after each variant.

    A variant that fails does not stop the others. After Ctrl-C, SIGTERM or SIGHUP, what was finished is stored, and a
    KeyboardInterrupt is raised.
    """
    with interruption.by_any_signal(), folder_lock():
        return _capture(options)


def _capture(options: Options) -> Run:
    run_file = run_path(Path(options.out))
    load, began = load_average(), time.monotonic()
    prepared = prepare(options)
    if options.threads:
        environment = {**prepared.run.environment, "threads_requested": options.threads}
        prepared = replace(prepared, run=replace(prepared.run, environment=environment))
    options.tell(messages.beginning(prepared.run))
    if warning := messages.busy(load, prepared.run.environment):
        options.tell(warning)
    spent = StageTime(stage="inspect", seconds=round(time.monotonic() - began, 3))
    prepared = replace(prepared, run=replace(prepared.run, spent=[spent]))
    folder = make_folder(run_file, prepared.run.created)
    try:
        with _empty_caches(prepared) as caches:
            run = _capture_all(prepared, folder, caches, run_file, options)
            # Passes and traces that hold the longest period of any variant whole hold the others, too, or nearly.
            period = max((variant.measured.period for variant in run.variants if variant.measured), default=1)
            prepared = replace(prepared, period=period)
            run = replace(run, why_no_turns=turns.why_not(run, prepared, options))
            by_blocks = None if run.why_no_turns else turns.Turns(prepared, folder, caches, options)
            rounds = Rounds(prepared, folder, caches, options, by_blocks)
            run = _repeat(run, rounds, run_file, options)
        if options.epochs:
            # The compiler's caches are empty for the first seed.
            with _empty_caches(prepared) as caches:
                run = _stored(trainings(run, prepared, folder, caches, options), run, run_file, options)
            for line in results(run):
                options.tell(line)
    except OSError as error:  # the disk is full, or somebody removed the folder
        raise OutputError(folder, error.strerror or str(error)) from None
    finally:
        written = None
        with suppress(TracekitError):
            written = runs.read(run_file).created
        if written != prepared.run.created:
            shutil.rmtree(folder, ignore_errors=True)
    if options.explain_time:
        for line in explained_time(run):
            options.tell(line)
    for line in messages.written(run_file):
        options.tell(line)
    return run


@contextmanager
def _empty_caches(prepared: Prepared) -> Iterator[dict[str, Path]]:
    """An empty folder for the compiler caches of each variant, by its name."""
    with ExitStack() as stack:
        yield {variant.name: stack.enter_context(process.scratch()) for variant in prepared.variants}


def exit_code(run: Run) -> int:
    """1 if a variant did not finish."""
    return int(any(variant.outcome != "ok" for variant in run.variants))


def _capture_all(prepared: Prepared, folder: Path, caches: dict[str, Path], run_file: Path, options: Options) -> Run:
    run = prepared.run
    course = Course(prepared.variants, stages(prepared, options), options)
    for planned in prepared.variants:
        variant, data = capture_variant(
            planned, prepared, folder, caches=caches[planned.name], options=options, course=course
        )
        if data and run.data and data != run.data:
            note = f"it trained on other data: {data}"
            variant = replace(variant, effective=variant.effective.plus([note]))
        run = with_common_period(replace(run, variants=[*run.variants, variant], data=run.data or data))
        options.tell(messages.ending(variant, run))
        # An earlier run is replaced only by a result: a recipe with a typing error must not replace it.
        if any(captured.measured for captured in run.variants) and (aside := runs.write(run, run_file)):
            options.tell(messages.moved_aside(aside))
        if variant.outcome == "interrupted":
            options.tell(messages.interrupted(run, run_file))
            raise KeyboardInterrupt(variant.error)  # the command line learns from it which signal it was
    if not any(captured.measured for captured in run.variants):
        first = run.variants[0]
        raise NothingCapturedError(run.script, first.error or first.outcome, first.outcome)
    return run


def _repeat(run: Run, rounds: Rounds, run_file: Path, options: Options) -> Run:
    """Measure again; the run file is updated after each round."""
    if options.passes > 1:

        def announced() -> Iterator[Run]:
            seconds = seconds_for_rounds(run, options)
            visible_share = visible(run, seconds, options.passes)
            options.tell(messages.repeating(seconds, options.passes, RESERVED_ROUNDS, visible_share))
            yield from rounds.runs(run)

        run = _stored(announced(), run, run_file, options)
        for line in messages.step_times(run):
            options.tell(line)
    if options.min_detectable is not None:
        options.tell(messages.reached(detectable(run), options.min_detectable))
    return run


def _stored(coming: Iterator[Run], run: Run, run_file: Path, options: Options) -> Run:
    """The last of the coming runs, each of which is written; the one before them if none comes."""
    try:
        for run in coming:  # noqa: PLR1704
            runs.write(run, run_file)
    except KeyboardInterrupt:
        options.tell(messages.interrupted(run, run_file))
        raise
    return run


def run_path(run_file: Path) -> Path:
    """The absolute path of the run file; refuses to replace anything but a run.

    A link is followed, so that it remains a link, and traces are beside the file that names them.
    """
    if run_file.is_dir():
        raise OutputError(run_file, f"it is a folder: name a file in it, as in {run_file / 'run.json'}")
    if not run_file.parent.is_dir():
        raise OutputError(run_file, f"the folder {run_file.parent} does not exist")
    if os.path.lexists(run_file) and not (run_file.is_file() and runs.is_run(run_file)):
        raise OutputError(run_file, "the file there is not one of tracekit's runs")
    return Path(os.path.realpath(run_file)) if run_file.is_symlink() else run_file.absolute()


def make_folder(run_file: Path, created: str) -> Path:
    """Make the folder `run-20261121-070501` beside `run.json`; an earlier run's file gets such a name, too."""
    name = f"{run_file.stem}-{runs.stamp(created)}"
    for tries in range(1, 1000):
        folder = run_file.with_name(name if tries == 1 else f"{name}-{tries}")
        try:
            folder.mkdir()
            return folder
        except FileExistsError:
            continue
        except OSError as error:
            raise OutputError(folder, error.strerror or str(error)) from None
    raise OutputError(run_file, f"a thousand folders named {name}-… already exist beside it")


def trainings(run: Run, prepared: Prepared, folder: Path, caches: dict[str, Path], options: Options) -> Iterator[Run]:
    """Yield the run after each training. One that fails does not stop the others."""
    sound = {captured.name for captured in run.variants if captured.outcome == "ok"}
    able = [variant for variant in prepared.variants if variant.name in sound]
    for seed in range(run.seed, run.seed + options.seeds):
        for variant in able:
            options.tell(messages.training(variant.name, options.epochs, seed))
            result = train(seed, variant, prepared, folder, caches=caches[variant.name], options=options)
            outcome = cast("TrainingOutcome", result.outcome)
            failed = Training(seed=seed, epochs=options.epochs, outcome=outcome, error=result.error)
            training = result.training or failed
            if training.outcome != "ok":
                options.tell(messages.lost_training(variant.name, seed, training.error or training.outcome))
            variants = [
                replace(captured, trainings=[*captured.trainings, training])
                if captured.name == variant.name
                else captured
                for captured in run.variants
            ]
            run = replace(run, variants=variants)
            yield run


def results(run: Run) -> Iterator[str]:
    """The results, each variant compared with the first."""
    trained = [variant for variant in run.variants if reached(variant.trainings) is not None]
    for variant in trained[1:]:
        if (contrast := accuracy_contrast(variant.trainings, trained[0].trainings)) is not None:
            yield f"{variant.name}: {in_words(contrast, variant.name, trained[0].name)}"
