"""Failures of capturing, auditing and sweeping: recipes, scripts, parameters, devices, grids."""

from collections.abc import Mapping, Sequence

from tracekit.errors import TracekitError, named
from tracekit.installed import install_command


class NoSuchRecipeError(TracekitError):
    """What is to be run is neither a file nor comes with tracekit; `similar` is the name that was probably meant."""

    def __init__(self, path: object, similar: str = "", kind: str = "recipe or script") -> None:
        hint = f"Did you mean {similar}?" if similar else "tracekit recipes lists those that come with tracekit."
        super().__init__(f"{named(path)}: no such {kind}. {hint}")


class FolderInUseError(TracekitError):
    """Another process captures or audits in the current folder."""

    def __init__(self, folder: object, owner: str) -> None:
        super().__init__(
            f"{named(folder)}: process {owner} is capturing in this folder. Wait for it, or capture in another folder."
        )


class NoLocksError(TracekitError):
    """The folder for backups is on a file system where nothing can be locked."""

    def __init__(self, folder: object, why: str) -> None:
        super().__init__(
            f"{named(folder)}: folders cannot be locked there ({why}), which backups need. Set XDG_STATE_HOME to a "
            "folder on a local disk."
        )


class NotARecipeError(TracekitError):
    """A Python file that breaks the recipe contract."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(
            f"{named(path)} is not a recipe ({why}). A recipe defines setup(ctx) and returns its training step."
        )


class NotPythonError(TracekitError):
    """A file to capture that Python would not run, or only by accident, as JSON is a valid expression."""

    def __init__(self, path: object) -> None:
        super().__init__(f"{named(path)} is not a Python file. A recipe or a training script is a .py file.")


class BrokenSyntaxError(TracekitError):
    """A file to capture that this Python cannot compile."""

    def __init__(self, path: object, line: int, why: str) -> None:
        super().__init__(
            f"{named(path)}:{line} is not valid Python ({why}). Fix that line; python {named(path)} shows it, too."
        )


class OnlyRecipesTakeThisError(TracekitError):
    """An option that only recipes take, given to a script."""

    def __init__(self, path: object, name: str, value: object, verb: str = "capture") -> None:
        super().__init__(
            f"{named(path)} is a script, and only recipes take --param. Pass a script its own arguments after --, "
            f"as in tracekit {verb} {named(path)} -- --{name} {value}"
        )


class OnlyScriptsTakeThisError(TracekitError):
    """An option that only scripts take, given to a recipe."""

    def __init__(self, path: object) -> None:
        super().__init__(
            f"{path} is a recipe, and arguments after --, --step-every and --step-at are for scripts only. "
            "Set its parameters with --param NAME=VALUE, or run it as a script with --script"
        )


class OnlyScriptsHaveRanksError(TracekitError):
    """Several ranks for a recipe."""

    def __init__(self, path: object) -> None:
        super().__init__(
            f"{named(path)}: --nproc is for scripts that use torch.distributed, and a recipe trains in one process. "
            "Capture it without --nproc"
        )


class OnlyRecipesHaveEpochsError(TracekitError):
    """Epochs to train, for a script or for inference."""

    def __init__(self, path: object) -> None:
        super().__init__(
            f"{named(path)}: --epochs is only for training a recipe. A script decides for itself how long it trains: "
            "pass it its own arguments after --"
        )


class NoSuchLineError(TracekitError):
    """A line that should end a step, but on which no statement begins."""

    def __init__(self, path: object, line: object) -> None:
        super().__init__(
            f"{named(path)}:{line}: no statement begins on this line. Name the line of a statement that runs once in "
            "every step, as in --step-at train.py:12"
        )


class NoStepsError(TracekitError):
    """A script in which nothing shows where a step ends."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(
            f"{named(path)}: {why}, so there is no step to measure. Does it train, with these arguments? "
            "Name the line at which a step ends, --step-at FILE:LINE, or call tracekit.step() there."
        )


class ArgumentsRefusedError(TracekitError):
    """The script does not accept the arguments that it was given."""

    def __init__(self, path: object, usage: str) -> None:
        super().__init__(
            f"{named(path)} does not accept its arguments, so nothing was captured. It says: {usage}. "
            f"Its own arguments go after --: tracekit capture {named(path)} -- --epochs 3"
        )


class RecipeFailedError(TracekitError):
    """The recipe raised an exception before anything was captured; `outcome` says of which kind."""

    def __init__(self, path: object, why: str, outcome: str = "error") -> None:
        super().__init__(f"{named(path)} failed before anything was captured ({why}). Does it run by itself?")
        self.outcome = outcome


class AuditFailedError(TracekitError):
    """What was to be audited raised an exception before its first steps were done."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(f"{named(path)} failed before its steps could be audited ({why}). Does it run by itself?")


class ProgramFailedError(TracekitError):
    """A program that an agent asked to audit or to capture, and that failed; the reason is a sentence of its own."""

    def __init__(self, program: object, why: str) -> None:
        super().__init__(f"{named(program)} could not be run to its end: {why}")


class UnknownParameterError(TracekitError):
    """A parameter that the recipe does not declare."""

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"{name}: the recipe has no such parameter. Available: {', '.join(known) or 'none'}")


class BadParameterError(TracekitError):
    """A value that does not suit its parameter or option."""

    def __init__(self, name: str, value: object, wanted: str) -> None:
        refused = f"cannot be {value}: it " if value != "" else ""
        super().__init__(f"{name} {refused}must be {wanted}.")


class NoTorchError(TracekitError):
    """Capturing without PyTorch."""

    def __init__(self) -> None:
        super().__init__(
            f"Capturing needs PyTorch, which is not installed here. Install it: {install_command('capture')}"
        )


class NoInterpreterError(TracekitError):
    """Another Python that cannot run a pass."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(
            f"{named(path)} cannot run a capture ({why}). Name a Python 3.11 or later that has torch and msgspec."
        )


class ProfilerBusyError(TracekitError):
    """A recording while another profiler runs in the same process."""

    def __init__(self) -> None:
        super().__init__(
            "A profiler is already running in this process, and two at once crash it. Stop that one first."
        )


class NoCompilerError(TracekitError):
    """torch.compile without the compiler that it needs."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"The inductor backend needs {what}, which is not installed here. "
            "Install it, or capture with --backend aot_eager."
        )


class NoSuchDeviceError(TracekitError):
    """A device that PyTorch does not see."""

    def __init__(self, device: str, known: list[str]) -> None:
        super().__init__(f"{device}: PyTorch sees no such device here. Available: {', '.join(known)}")


class UnsupportedDeviceError(TracekitError):
    """A device that PyTorch can train on, but that tracekit cannot measure."""

    def __init__(self, device: str) -> None:
        super().__init__(
            f"{device}: tracekit can capture only on CPUs and on NVIDIA and AMD GPUs. Capture with --device cpu; "
            "a trace that torch.profiler recorded on another device can be read: tracekit report trace.json"
        )


class ForeignDeviceError(TracekitError):
    """A script that trains on an accelerator that cannot be measured, although the accelerator was hidden from it."""

    def __init__(self, script: object, device: str) -> None:
        super().__init__(
            f"{script} trains on {device}, but tracekit can capture only on CPUs and on NVIDIA and AMD GPUs. "
            "Make it train on the CPU, for example by an argument after --"
        )


class NoInferenceError(TracekitError):
    """Inference is to be measured, but the recipe has no infer()."""

    def __init__(self, recipe: object) -> None:
        super().__init__(f"{recipe}: its setup() returns no infer(), so there is no inference to measure.")


class NothingCapturedError(TracekitError):
    """Every variant failed, so there is no run to write; `outcome` is the first one's."""

    def __init__(self, recipe: object, why: str, outcome: str = "error") -> None:
        super().__init__(f"{recipe}: no variant could be captured ({why}). Nothing was written.")
        self.outcome, self.why = outcome, why


class SweepFileError(TracekitError):
    """A sweep file that cannot be used."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(f"{named(path)} is not a sweep file: {why}.")


class NoCellError(TracekitError):
    """A selection that matches no cell."""

    def __init__(self, only: Mapping[str, Sequence[str]], axes: Mapping[str, Sequence[str]]) -> None:
        selection = ",".join(f"{name}={'|'.join(values)}" for name, values in only.items()) or "--only"
        known = "; ".join(f"{name}={','.join(values)}" for name, values in axes.items())
        super().__init__(f"{selection}: no cell of the sweep matches that. The axes are: {known}")


class StudyInUseError(TracekitError):
    """Another sweep is writing into the folder."""

    def __init__(self, folder: object) -> None:
        super().__init__(
            f"{named(folder)}: another sweep is writing to this folder. Wait for it, or name another folder with -o."
        )


class OtherOptionsError(TracekitError):
    """A study whose cells were captured with other options than the sweep now asks for."""

    def __init__(self, folder: object, differences: str) -> None:
        super().__init__(
            f"{named(folder)}: its cells were captured with other options ({differences}), so new ones could not be "
            "compared with them. Name another folder with -o."
        )


class BadStudyError(TracekitError):
    """A file of a study that cannot be read."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(f"{named(path)} cannot be read as part of a study ({why}).")


class EmptyStudyError(TracekitError):
    """A study without a cell."""

    def __init__(self, folder: object) -> None:
        super().__init__(f"{named(folder)}: no cell of this study was planned. Run its sweep: tracekit sweep")


class StudyAmongOthersError(TracekitError):
    """A study that is opened together with other things."""

    def __init__(self, folder: object) -> None:
        super().__init__(
            f"{named(folder)} is a study, which must be opened by itself. To open its runs with others, name them: "
            "cells/*/run.json"
        )


class NotAStudyError(TracekitError):
    """Cells are to be selected, but the input is not a study."""

    def __init__(self, path: object) -> None:
        super().__init__(f"{named(path)} is not the folder of a study: --only has no cells to select.")
