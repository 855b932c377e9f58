"""Audit a recipe or a script: a few steps on the emulated GPU, in a separate process."""

from collections.abc import Collection
from pathlib import Path

from msgspec.structs import replace

from tracekit import interruption
from tracekit.capture import messages, process
from tracekit.capture.audit.rows import Audit, Kind
from tracekit.capture.folder_lock import folder_lock
from tracekit.capture.job import Job, PassResult
from tracekit.capture.options import Options
from tracekit.capture.preparation import check_kind, check_options, trains_by_itself
from tracekit.capture.written_files import with_files
from tracekit.errors import AuditFailedError, NoStepsError
from tracekit.run import Effective

__all__ = ["Options", "audit", "exit_code"]


def audit(options: Options) -> Audit:
    """Run the first variant, and say what would block. If the run failed, `failure` says why."""
    check_options(options, "audit")
    check_kind(options, trains_by_itself(options), "audit")
    with interruption.by_any_signal(), folder_lock(), process.scratch() as scratch:
        result = process.perform(_job(options), scratch, scratch / "audit.log", options.timeout)
    for note in result.notes:
        options.tell(f"  {note}")
    for line in (*(files := with_files(Effective(), [result])).notes, *files.remarks):
        options.tell(f"  {line}")
    if result.outcome == "ok":
        return _with_short_names(result.audit)
    if result.no_steps:
        raise NoStepsError(options.program, result.error or "")
    for line in messages.quoted(result.traceback):
        options.tell(line)
    return _of_a_failure(result, options)


def exit_code(audit: Audit, fail_on: Collection[Kind]) -> int:
    """1 if the audit failed, or has a row of a kind that must not occur."""
    return int(audit.failure is not None or any(row.kind in fail_on for row in audit.rows))


def _of_a_failure(result: PassResult, options: Options) -> Audit:
    why = result.error or result.outcome
    if not result.audit.rows and not result.audit.steps:
        raise AuditFailedError(options.program, why)
    return replace(_with_short_names(result.audit), failure=why)


def _job(options: Options) -> Job:
    return Job(
        stage="audit",
        program=str(options.program),
        label=next(iter(options.variants), "eager"),
        params=dict(options.params),
        seed=options.seed,
        steps=options.steps,
        is_script=trains_by_itself(options),
        arguments=[*options.arguments],
        module=options.module,
        in_place=options.in_place,
        step_every=options.step_every,
        step_at=options.step_at,
    )


def _with_short_names(audit: Audit) -> Audit:
    """The audit, with file names relative to the current folder."""
    return replace(audit, rows=[replace(row, file=str(messages.short(Path(row.file)))) for row in audit.rows])
