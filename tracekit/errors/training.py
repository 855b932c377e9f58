"""Failures of what runs in a training: it is logged, and the training goes on."""

from tracekit.errors import TracekitError, named
from tracekit.installed import package_command


class NoFrameworkError(TracekitError, ImportError):
    """A callback for a framework that is not installed."""

    def __init__(self, framework: str) -> None:
        super().__init__(
            f"tracekit.integrations.{framework} needs {framework}, which is not installed here. Install it: "
            f"{package_command(framework)}"
        )


class NoTraceFolderError(TracekitError):
    """A folder in which no trace can be written."""

    def __init__(self, folder: object, why: str) -> None:
        super().__init__(
            f"{named(folder)}: no trace can be written there ({why}). Name another folder: "
            'tracekit.trace_handler("FOLDER")'
        )


class UnreadableResultsError(TracekitError):
    """Traces of a training that could not be read after its loop."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(
            f"{named(path)} could not be read after the loop ({why}). Try again: tracekit report {named(path)}"
        )
