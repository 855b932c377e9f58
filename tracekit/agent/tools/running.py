"""What the user's own program does: an audit of its lines, or a capture. Both run it, with the rights of the server, so
they exist only with `--allow-run`.
"""

import json
import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct, field

from tracekit.agent.answers import Answer, Call, Figure, Question, Words, figure
from tracekit.agent.inputs import Workplace
from tracekit.catalogue import recipes
from tracekit.errors.capturing import ProgramFailedError
from tracekit.installed import python_path

_PATIENCE_S = 60  # beyond the time that the program may take: to start, and to write
_NAME = re.compile(r"\w[\w.-]*\.json")

Program = Annotated[
    str,
    Meta(description="a training script below the root, unchanged, or the name of a recipe that comes with tracekit"),
]
Arguments = Annotated[list[str], Meta(max_length=100, description="the script's own arguments")]
Seconds = Annotated[int, Meta(ge=1, le=3600, description="how long a pass may take")]


class AuditQuestion(Question, kw_only=True, forbid_unknown_fields=True):
    """What to audit."""

    program: Program
    arguments: Arguments = field(default_factory=list)
    steps: Annotated[int, Meta(ge=1, le=100, description="steps to run after the first")] = 3
    seconds: Seconds = 600


class Blocking(Struct, omit_defaults=True, forbid_unknown_fields=True):
    """A line that would wait for a GPU (sync), copy to it and wait (copy), crash on one (mixed), or break a graph
    (break). `untrusted.text` is its source, and why."""

    kind: Literal["sync", "copy", "mixed", "break"]
    per_step: Figure
    untrusted: Words
    loading: bool = False


class Audit(Answer, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The lines that would block on a GPU, of those that these steps reached; for how long, an audit cannot know."""

    lists: ClassVar = ("rows", "notes")
    steps: int
    finished: bool
    used: Annotated[
        bool, Meta(description="whether the program put anything on the GPU; if not, nothing was looked at")
    ]
    rows: list[Blocking] = field(default_factory=list)
    notes: list[dict[Literal["untrusted"], Words]] = field(default_factory=list)


class CaptureQuestion(Question, kw_only=True, forbid_unknown_fields=True):
    """What to capture."""

    program: Program
    arguments: Arguments = field(default_factory=list)
    variants: Annotated[
        list[Annotated[str, Meta(pattern=r"^[\w:=.+-]+$")]],
        Meta(description="eager, compiled, a mode such as reduce-overhead; by default eager and compiled"),
    ] = field(default_factory=list)
    steps: Annotated[int, Meta(ge=1, le=1000, description="profiled steps")] = 20
    output: Annotated[
        str, Meta(description="the name of the run file to write in the root; an earlier one is renamed")
    ] = "run.json"
    seconds: Seconds = 1800


class Captured(Answer, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A run that was captured. `messages` is what the capture said; not `finished` is a run of which a variant failed,
    and which holds the others."""

    lists: ClassVar = ("messages",)
    output: str
    finished: bool
    messages: list[dict[Literal["untrusted"], Words]] = field(default_factory=list)


def audit(workplace: Workplace, question: AuditQuestion) -> Audit:
    """Run a few steps of a training script on an emulated GPU, and list the lines that would wait for one, copy to it,
    crash on it, or break a graph. Needs no GPU."""
    command = ["audit", _program(workplace, question.program), "--steps", str(question.steps), "--format", "json"]
    said = _run(workplace, [*command, "--timeout", str(question.seconds)], question.arguments, question.seconds)
    document = json.loads(said.stdout) if said.stdout.lstrip().startswith("{") else None
    if document is None:
        raise ProgramFailedError(question.program, _last(said.stderr))
    notes = [*document["notes"], *([document["failure"]] if document["failure"] else [])]
    return Audit(
        steps=document["steps"],
        finished=document["failure"] is None,
        used=document["used"],
        rows=[_blocking(row) for row in document["rows"]],
        notes=[{"untrusted": Words(text=note)} for note in notes],
        next=[Call("capture", _program_of(question), "what a step takes, and where it goes")],
    )


def capture(workplace: Workplace, question: CaptureQuestion) -> Captured:
    """Run a training script under the profiler, each variant in processes of its own, and write a run that the other
    tools read. Takes minutes."""
    if not _NAME.fullmatch(question.output):
        raise ProgramFailedError(question.program, "output is the name of a .json file in the root, without a folder.")
    command = ["capture", _program(workplace, question.program), "--steps", str(question.steps)]
    if question.variants:
        command += ["--variants", ",".join(question.variants)]
    command += ["--timeout", str(question.seconds), "-o", question.output]
    passes = 4 * max(len(question.variants), 3)  # cold, steady, stacks and unprofiled ones of each variant
    output = workplace.root / question.output
    before = _written(output)
    said = _run(workplace, command, question.arguments, passes * question.seconds)
    if said.returncode and _written(output) in (None, before):
        raise ProgramFailedError(question.program, _last(said.stderr or said.stdout))
    lines = [line for line in (said.stdout + said.stderr).splitlines() if line.strip()]
    return Captured(
        output=question.output,
        finished=said.returncode == 0,
        messages=[{"untrusted": Words(text=line)} for line in lines],
        next=[Call("overview", {"inputs": [question.output]}, "what the run says")],
    )


def _program_of(question: AuditQuestion) -> dict[str, Any]:
    """The same program with the same arguments of its own."""
    return {"program": question.program, **({"arguments": question.arguments} if question.arguments else {})}


def _written(path: Path) -> tuple[int, int] | None:
    """Which file it is, and when it was written; None if there is none."""
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_ino, state.st_mtime_ns


def _program(workplace: Workplace, program: str) -> str:
    """The program as the command line takes it. Raises OutsideOfRootError."""
    if program in recipes() and not (workplace.root / program).exists():
        return program
    return str(workplace.path(program))


def _run(
    workplace: Workplace, command: list[str], arguments: list[str], seconds: int
) -> "subprocess.CompletedProcess[str]":
    """What a verb of tracekit says, in a process of its own with the root as its folder. Raises ProgramFailedError if
    it takes longer than that."""
    limit = seconds + _PATIENCE_S
    with subprocess.Popen(
        [sys.executable, "-m", "tracekit", *command, "--", *arguments],
        cwd=workplace.root,
        env={**os.environ, "PYTHONPATH": python_path()},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        try:
            said, complained = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.terminate()  # with time to put back the files that it changed
            with suppress(subprocess.TimeoutExpired):
                process.wait(_PATIENCE_S)
            process.kill()
            raise ProgramFailedError(Path(command[1]).name, f"it took longer than {limit} s.") from None
    return subprocess.CompletedProcess(command, process.returncode, said, complained)


def _last(text: str) -> str:
    """The last sentence of what was said."""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("tracekit: ") if lines else "it said nothing."


def _blocking(row: dict[str, Any]) -> Blocking:
    why = " – ".join(filter(None, (row["source"], f"{row['operator']} {row['why']}", row["via"])))
    return Blocking(
        row["kind"],
        figure(row["per_step"], "1"),
        Words(text=why, file=row["file"], line=row["line"], function=row["function"]),
        row["loading"],
    )
