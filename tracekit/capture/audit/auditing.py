"""Audit a recipe or a script: a few steps on the emulated GPU, in a process of their own."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tracekit import interruption
from tracekit.capture import environment, messages, process
from tracekit.capture.audit.rows import Audit, Kind
from tracekit.capture.child.script import is_script
from tracekit.capture.job import Answer, Job
from tracekit.errors import (
    AuditFailedError,
    BadParameterError,
    NoRecipeError,
    NoScriptError,
    NoSuchRecipeError,
    NoTorchError,
    NotPythonError,
)


@dataclass(frozen=True)
class Options:
    """One audit. Only the file has no default."""

    file: str | Path
    variant: str = "eager"  # of a recipe
    params: Mapping[str, Any] = field(default_factory=dict)  # of a recipe; text is read as the default's type
    arguments: Sequence[str] = ()  # of a script that is no recipe
    steps: int = 3  # after the first, which is not counted
    step_every: int = 1  # optimizer steps that make a step of a script
    seed: int = 0
    timeout: float = 600  # seconds
    tell: Callable[[str], None] = messages.on_stderr


def audit(options: Options) -> Audit:
    """Run it, and say what would block. One that fails on its way has shown something, too: `failure` says why."""
    _check(options)
    with interruption.by_any_signal(), process.scratch() as scratch:
        answer = process.perform(_job(options), scratch, scratch / "audit.log", options.timeout)
    for note in answer.notes:
        options.tell(f"  {note}")
    if answer.outcome == "ok":
        return _named(answer.audit)
    for line in messages.quoted(answer.traceback):
        options.tell(line)
    return _of_a_failure(answer, options)


def exit_code(found: Audit, fail_on: Collection[Kind]) -> int:
    """1 where it failed, and where there is any row of a kind that must not be."""
    return int(found.failure is not None or any(row.kind in fail_on for row in found.rows))


def _of_a_failure(answer: Answer, options: Options) -> Audit:
    why = answer.error or answer.outcome
    if not answer.audit.rows and not answer.audit.steps:
        raise AuditFailedError(options.file, why)
    return replace(_named(answer.audit), failure=why)


def _check(options: Options) -> None:
    if not Path(options.file).is_file():
        raise NoSuchRecipeError(options.file, "audit")
    if Path(options.file).suffix != ".py":
        raise NotPythonError(options.file)
    if not environment.has_torch():
        raise NoTorchError
    if not 0 < options.timeout < math.inf:
        raise BadParameterError("--timeout", options.timeout, "a number of seconds above 0")
    script = is_script(options.file)
    if not script and (options.arguments or options.step_every > 1):
        raise NoScriptError(options.file)
    if script:
        for name, value in options.params.items():
            raise NoRecipeError(options.file, name, value, "audit")


def _job(options: Options) -> Job:
    return Job(
        stage="audit",
        recipe=str(options.file),
        label=options.variant,
        params=dict(options.params),
        seed=options.seed,
        steps=options.steps,
        script=is_script(options.file),
        arguments=[*options.arguments],
        step_every=options.step_every,
    )


def _named(found: Audit) -> Audit:
    """Its files as one would type them here."""
    return replace(found, rows=[replace(row, file=str(messages.short(Path(row.file)))) for row in found.rows])
