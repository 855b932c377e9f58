"""Failures of reading: files, traces, runs, the ranks of a cluster, and what is requested from them."""

import errno
import os

from tracekit.errors import TracekitError, named, read_from

_ADVICE = {
    **dict.fromkeys((errno.EACCES, errno.EPERM), "Check its permissions."),
    **dict.fromkeys((errno.ENOSPC, errno.EFBIG), "Point TRACEKIT_CACHE_DIR at a folder with room."),
    errno.ENAMETOOLONG: "Give it a shorter name.",
    errno.ELOOP: "Check where its links lead.",
}

_WRITE_ONE = "Write one with prof.export_chrome_trace('trace.json.gz')."


class NoSuchFileError(TracekitError):
    """The path does not exist."""

    def __init__(self, path: object) -> None:
        super().__init__(f"{read_from(path)}: no such file or folder. Check the path.")


class DirectoryGivenError(TracekitError):
    """The path is a directory where a trace or a run is wanted."""

    def __init__(self, path: object, said: str = "is a directory. Name the trace or the run.json inside it.") -> None:
        super().__init__(f"{named(path)}: {said}")


class NothingToReadError(TracekitError):
    """A path to what is neither a file nor a folder, such as a pipe."""

    def __init__(self, path: object) -> None:
        super().__init__(f"{named(path)} is neither a file nor a folder. Name a trace or a run.json.")


class NoTraceInsideError(DirectoryGivenError):
    """A folder that should have traces has none."""

    def __init__(self, path: object) -> None:
        super().__init__(
            path, "no trace was found in this folder. Name a folder that contains .json or .json.gz files directly."
        )


class UnreadableFileError(TracekitError):
    """The operating system refuses to read the file."""

    def __init__(self, path: object, why: str) -> None:
        advice = next((said for code, said in _ADVICE.items() if os.strerror(code) == why), "Name another file.")
        super().__init__(f"{read_from(path)} cannot be read ({why}). {advice}")


class NotATraceError(TracekitError):
    """The file exists, but it is not a Kineto trace."""

    def __init__(self, path: object, why: str, next_step: str | None = None) -> None:
        super().__init__(f"{read_from(path)} is not a PyTorch profiler trace ({why}). {next_step or _WRITE_ONE}")


class EmptyTraceError(TracekitError):
    """A trace without any event that has a duration."""

    def __init__(self, path: object) -> None:
        super().__init__(
            f"{read_from(path)} holds no events. Was the profiler active? Its schedule may never have reached an "
            "active step."
        )


class BadRunError(TracekitError):
    """A run.json that is not valid."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(
            f"{read_from(path)} is not a run that this version can read ({why}). "
            "Capture it again: tracekit capture RECIPE"
        )


class BadWatchError(TracekitError):
    """A record of a watch that cannot be read."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(
            f"{read_from(path)} is not a record of tracekit.watch that this version can read ({why}). "
            "Watch again, or read it with the version that wrote it."
        )


class WatchAmongOthersError(TracekitError):
    """A watch that is opened together with other things."""

    def __init__(self, path: object) -> None:
        super().__init__(
            f"{named(path)} is a watch, which must be opened by itself. To open its traces with others, name them: "
            "*.pt.trace.json.gz"
        )


class NoTraceInRunError(TracekitError):
    """A run whose profiled passes all failed, for a command that shows traces."""

    def __init__(self, path: object, why: str, measured: bool) -> None:
        next_step = f"See what was measured: tracekit report {named(path)}" if measured else "Capture it again."
        super().__init__(f"{named(path)} holds no trace ({why}), so there is nothing to break down. {next_step}")


class BombError(TracekitError):
    """An archive that expands far more than traces do."""

    def __init__(self, path: object, packed: int, limit: int, setting: str) -> None:
        super().__init__(
            f"{read_from(path)} unpacks from {packed:,} to more than {limit:,} bytes, which no trace does. "
            f"If it is a trace all the same, raise the limit: {setting}={limit * 4}"
        )


class SourceUnavailableError(TracekitError):
    """An address that cannot be fetched."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(f"{named(path)} cannot be fetched ({why}). Download it by other means, and name the file.")


class NothingOfYoursError(TracekitError):
    """Lines are requested, but no recording has them."""

    def __init__(self, path: object, why: str, *, in_operators: bool = False) -> None:
        profiled = "profile with with_stack=True"
        if in_operators:  # that was done
            why = "its call stacks are in the arguments of operators, as in older versions of torch, and not read"
            profiled += " and a newer torch"
        super().__init__(
            f"{read_from(path)}: none of your lines can be identified, because {why.removesuffix('.')}. "
            f"Capture with tracekit capture, or {profiled}."
        )


class BadCompileLogError(TracekitError):
    """A compile log that cannot be read, or that does not belong to the traces given."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(
            f"{path} cannot be used as a compile log: {why}. Give one trace, and the folder that TORCH_TRACE named."
        )


class NoSuchSourceError(TracekitError):
    """A name that does not identify exactly one file or function of the user's."""

    def __init__(self, name: object, known: list[str]) -> None:
        listed = ", ".join(known[:8]) or "none"
        super().__init__(
            f"{named(name)} does not name exactly one file or function of yours in this recording. Available: {listed}"
        )


class ClusterError(TracekitError):
    """A cluster that cannot be used."""

    def __init__(self, address: str, why: str) -> None:
        super().__init__(
            f"--cluster {named(address)}: {why.rstrip('.')}. Name the address that its scheduler printed, "
            "or read the ranks on this machine: --workers 8"
        )


class RanksLostError(TracekitError):
    """No rank can be read."""

    def __init__(self, count: int, why: str) -> None:
        super().__init__(f"Not one of {count} traces could be read. The first one: {why}")
