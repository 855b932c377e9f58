"""Every failure a user can cause: one class each, one sentence that names the thing and the next step.

The command line turns these into exit codes; nothing else catches them wholesale.
"""

import errno
import os
from collections.abc import Sequence

_LONGEST = 200  # characters of a name that a sentence bears
_STDIN = "-"
_ADVICE = {
    **dict.fromkeys((errno.EACCES, errno.EPERM), "Check its permissions."),
    **dict.fromkeys((errno.ENOSPC, errno.EFBIG), "Point TRACEKIT_CACHE_DIR at a folder with room."),
    errno.ENAMETOOLONG: "Give it a shorter name.",
    errno.ELOOP: "Check where its links lead.",
}


def _named(path: object) -> str:
    """A path in a sentence: one that is very long, cut in its middle."""
    text = str(path)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}…{text[-_LONGEST // 2 :]}"


def _read(path: object) -> str:
    """What is read, in a sentence."""
    return "standard input" if str(path) == _STDIN else _named(path)


class TracekitError(Exception):
    """The base of every failure that a user can cause. `str()` of it is the sentence to show; exit code 1."""


class NoSuchFileError(TracekitError):
    """The path names nothing."""

    def __init__(self, path: object) -> None:
        super().__init__(f"{_read(path)}: no such file or folder. Check the path.")


class DirectoryGivenError(TracekitError):
    """The path is a directory where a trace or a run is wanted."""

    def __init__(self, path: object, said: str = "is a directory. Name the trace or the run.json inside it.") -> None:
        super().__init__(f"{_named(path)}: {said}")


class NoTraceInsideError(DirectoryGivenError):
    """A folder of traces, and there is none in it."""

    def __init__(self, path: object) -> None:
        super().__init__(path, "no trace was found in this folder. Name one that holds .json or .json.gz files itself.")


class UnreadableFileError(TracekitError):
    """The operating system refuses to read the file."""

    def __init__(self, path: object, why: str) -> None:
        advice = next((said for code, said in _ADVICE.items() if os.strerror(code) == why), "Name another file.")
        super().__init__(f"{_read(path)}: cannot be read ({why}). {advice}")


class NotATraceError(TracekitError):
    """The file exists, but it is not a Kineto trace."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(
            f"{_read(path)}: is not a PyTorch profiler trace ({why}). "
            "Write one with prof.export_chrome_trace('trace.json.gz')."
        )


class EmptyTraceError(TracekitError):
    """A trace, and no event with a duration in it."""

    def __init__(self, path: object) -> None:
        super().__init__(
            f"{_read(path)}: the trace holds no events. "
            "Was the profiler active? Its schedule may have ended before a step."
        )


class BadRunError(TracekitError):
    """A run.json that does not say what it should."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(
            f"{_read(path)}: is not a run that this version can read ({why}). Capture it again: tracekit capture RECIPE"
        )


class NoTraceInRunError(TracekitError):
    """A run whose profiled passes all failed, for a command that shows traces."""

    def __init__(self, path: object, why: str, measured: bool) -> None:
        next_step = f"See what was measured: tracekit report {_named(path)}" if measured else "Capture it again."
        super().__init__(f"{_named(path)}: holds no trace ({why}), so there is nothing to break down. {next_step}")


class UnknownVariantError(TracekitError):
    """A baseline that no variant is named after."""

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"{name}: no such variant. There are: {', '.join(known)}")


class UnknownMetricError(TracekitError):
    """A metric that nobody measures."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f"{name}: no such metric. There are: {', '.join(known)}")


class BudgetError(TracekitError):
    """A budget that cannot be used."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(f"{_named(path)}: is not a budget: {why}.")


class OutputError(TracekitError):
    """An output path that cannot be written."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(f"{_named(path)}: cannot be written ({why}). Name another place with -o.")


class StandardOutputError(TracekitError):
    """Standard output that takes nothing: a full disk, or it was closed."""

    def __init__(self, why: str) -> None:
        super().__init__(f"Standard output cannot be written ({why}). Send it somewhere else.")


class NeedsFolderError(TracekitError):
    """A format of several files without a folder to put them in."""

    def __init__(self, name: str) -> None:
        super().__init__(f"--format {name} writes several files. Name a folder for them: -o tables/")


class NoTerminalError(TracekitError):
    """The terminal UI without a terminal."""

    def __init__(self, inputs: Sequence[object]) -> None:
        named = _named(" ".join(str(path) for path in inputs))
        super().__init__(
            f"The TUI needs a terminal, and this is none. Print the report instead: tracekit report {named}"
        )


class NoSuchRecipeError(TracekitError):
    """The recipe to capture names no file."""

    def __init__(self, path: object, verb: str = "capture") -> None:
        super().__init__(f"{_named(path)}: no such recipe. Try: tracekit {verb} recipes/gcn_cora.py")


class NotARecipeError(TracekitError):
    """A Python file that breaks the recipe contract."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(
            f"{_named(path)}: is not a recipe ({why}). A recipe defines setup(ctx) and returns its training step."
        )


class NotPythonError(TracekitError):
    """A file to capture that Python would not run, or would run by accident: JSON reads as an expression."""

    def __init__(self, path: object) -> None:
        super().__init__(f"{_named(path)}: is not a Python file. A recipe or a training script is a .py file.")


class BrokenSyntaxError(TracekitError):
    """A file to capture that this Python cannot compile."""

    def __init__(self, path: object, line: int, why: str) -> None:
        super().__init__(
            f"{_named(path)}:{line}: is no valid Python ({why}). Mend that line; python {_named(path)} shows it, too."
        )


class NoRecipeError(TracekitError):
    """What only a recipe can be given, given to a script."""

    def __init__(self, path: object, name: str, value: object, verb: str = "capture") -> None:
        super().__init__(
            f"{_named(path)}: is a script, and --param is for recipes. Give it its own arguments after --, "
            f"as in tracekit {verb} {_named(path)} -- --{name} {value}"
        )


class NoScriptError(TracekitError):
    """What only a script can be given, given to a recipe."""

    def __init__(self, path: object) -> None:
        super().__init__(
            f"{path}: is a recipe, and arguments after --, --step-every and --step-at are for other scripts. "
            "Give it parameters, --param NAME=VALUE, or say that it is one: --script"
        )


class NoSuchLineError(TracekitError):
    """A line to end steps at where no statement begins."""

    def __init__(self, path: object, line: object) -> None:
        super().__init__(
            f"{_named(path)}:{line}: no statement begins there. Name the line of one that runs once in every step, "
            "as in --step-at train.py:12"
        )


class NoStepsError(TracekitError):
    """A script in which nothing tells where a step ends."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(
            f"{_named(path)}: {why}, so there is no step to measure. Does it train, with these arguments? "
            "Name the line at which a step ends, --step-at FILE:LINE, or call tracekit.step() there."
        )


class RecipeFailedError(TracekitError):
    """The recipe raised before anything was captured."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(f"{_named(path)}: failed before anything was captured ({why}). Does it run by itself?")


class AuditFailedError(TracekitError):
    """What was to be audited raised before its first steps were done."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(f"{_named(path)}: failed before its steps could be seen ({why}). Does it run by itself?")


class UnknownParameterError(TracekitError):
    """A parameter that the recipe does not declare."""

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"{name}: the recipe has no such parameter. There are: {', '.join(known) or 'none'}")


class BadParameterError(TracekitError):
    """A value that does not fit the parameter or option it is given to."""

    def __init__(self, name: str, value: object, wanted: str) -> None:
        super().__init__(f"{name}={value}: is not {wanted}. Give one, as in {name}=…")


class NoTorchError(TracekitError):
    """Capturing without PyTorch."""

    def __init__(self) -> None:
        super().__init__(
            "Capturing needs PyTorch, which is not installed here. Install it: pip install 'tracekit[capture]'"
        )


class ProfilerBusyError(TracekitError):
    """A recording while another profiler runs in the same process."""

    def __init__(self) -> None:
        super().__init__(
            "A profiler runs in this process already, and two at once crash it. Stop it first, or leave its block."
        )


class NoCompilerError(TracekitError):
    """torch.compile without what it generates code for."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"The inductor backend needs {what}, and there is none here. "
            "Install it, or capture with --backend aot_eager."
        )


class NoSuchDeviceError(TracekitError):
    """A device that PyTorch does not see."""

    def __init__(self, device: str, known: list[str]) -> None:
        super().__init__(f"{device}: PyTorch sees no such device here. There are: {', '.join(known)}")


class UnsupportedDeviceError(TracekitError):
    """A device that PyTorch trains on, and that cannot be measured."""

    def __init__(self, device: str) -> None:
        super().__init__(
            f"{device}: a capture measures CPUs and GPUs of NVIDIA and AMD alone. Capture with --device cpu; "
            "what torch.profiler recorded elsewhere is still read: tracekit report trace.json"
        )


class ForeignDeviceError(TracekitError):
    """A script that trains on an accelerator that cannot be measured, though it was told that there is none."""

    def __init__(self, script: object, device: str) -> None:
        super().__init__(
            f"{script}: it trains on {device}, and a capture measures CPUs and GPUs of NVIDIA and AMD alone. "
            "Tell it to train on the CPU, as by an argument after --"
        )


class NothingCapturedError(TracekitError):
    """Every variant failed, so there is no run to write."""

    def __init__(self, recipe: object, why: str) -> None:
        super().__init__(f"{recipe}: no variant could be captured ({why}). Nothing was written.")


class BombError(TracekitError):
    """An archive that unpacks to far more than traces do."""

    def __init__(self, path: object, packed: int, limit: int, setting: str) -> None:
        super().__init__(
            f"{_read(path)}: unpacks to more than {limit:,} bytes from {packed:,}, which no trace does. "
            f"If it is one, raise the limit: {setting}={limit * 4}"
        )


class SourceUnavailableError(TracekitError):
    """An address that cannot be fetched."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(f"{_named(path)}: cannot be fetched ({why}). Fetch it by other means, and name the file.")


class NothingOfYoursError(TracekitError):
    """Asking for lines where no recording has any."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(
            f"{_read(path)}: no line of yours can be told: {why}. "
            "Capture with tracekit capture, or profile with with_stack=True."
        )


class NoSuchSourceError(TracekitError):
    """A file or a function that is not among the user's, or not one alone."""

    def __init__(self, name: object, known: list[str]) -> None:
        shown = ", ".join(known[:8]) or "none"
        super().__init__(f"{_named(name)}: is not one source of yours in this recording. There are: {shown}")
