"""Failures of output: files to write, formats, standard output, the terminal."""

from collections.abc import Sequence

from tracekit.errors.base import TracekitError, named
from tracekit.installed import install_command


class OutputError(TracekitError):
    """An output path that cannot be written."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(f"{named(path)} cannot be written ({why}). Choose another path with -o.")


class NoFolderError(TracekitError):
    """No folder can be written where files that are no output are kept."""

    def __init__(self, variable: str, *others: object) -> None:
        places = " and ".join(["temporary folders", *map(named, others)])
        super().__init__(f"No file can be made in {places}. Set {variable} to a folder that can be written.")


class StandardOutputError(TracekitError):
    """Standard output that cannot be written: the disk is full, or it was closed."""

    def __init__(self, why: str) -> None:
        super().__init__(f"Standard output cannot be written to ({why}). Redirect it elsewhere.")


class NeedsFolderError(TracekitError):
    """A format of several files, without a folder to put them in."""

    def __init__(self, name: str, files: str = "several files") -> None:
        super().__init__(f"--format {name} writes {files}. Name a folder for them: -o {name}/")


class OtherFormatError(TracekitError):
    """A file whose suffix names another format than the requested one."""

    def __init__(self, path: object, by_name: str, given: str) -> None:
        super().__init__(
            f"{named(path)}: the suffix means {by_name}, but --format says {given}. Leave out --format, or give the "
            "file another name."
        )


class BytesToTerminalError(TracekitError):
    """Output that nobody can read on a terminal, but would go there."""

    def __init__(self) -> None:
        super().__init__("A terminal cannot show this format. Name a file: -o FILE")


class NeedsPackageError(TracekitError):
    """A format or a verb without the package that it needs."""

    def __init__(self, what: str, package: str, extra: str) -> None:
        super().__init__(f"{what} needs {package}, which is not installed: {install_command(extra)}")


class NoTerminalError(TracekitError):
    """The terminal UI without a terminal."""

    def __init__(self, inputs: Sequence[object]) -> None:
        traces = named(" ".join(str(path) for path in inputs))
        super().__init__(
            f"The TUI needs a terminal, and this is not one. Print the report instead: tracekit report {traces}"
        )
