"""Failures of output: files to write, standard output, the terminal, and names of variants."""

from collections.abc import Sequence

from tracekit.errors.base import TracekitError, named


class UnknownMetricError(TracekitError):
    """A metric that is not measured."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f"{name}: no such metric. Available: {', '.join(known)}")


class BudgetError(TracekitError):
    """A budget that cannot be used."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(f"{named(path)} is not a budget: {why}.")


class OutputError(TracekitError):
    """An output path that cannot be written."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(f"{named(path)} cannot be written ({why}). Choose another path with -o.")


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
    """Output that is not text, but would go to a terminal."""

    def __init__(self) -> None:
        super().__init__("This format is not text, and a terminal cannot show it. Name a file: -o FILE")


class NeedsPackageError(TracekitError):
    """A format or a verb without the package that it needs."""

    def __init__(self, what: str, package: str, extra: str) -> None:
        super().__init__(f"{what} needs {package}, which is not installed: pip install 'tracekit[{extra}]'")


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


class HtaError(TracekitError):
    """An analysis by HTA that fails on a trace."""

    def __init__(self, analysis: str, why: str) -> None:
        super().__init__(
            f"HTA cannot answer {analysis} here ({named(why)}). Others may work: tracekit hta --help lists them."
        )


class NothingToDrawError(TracekitError):
    """A chart of something that was not recorded."""

    def __init__(self, kind: str) -> None:
        super().__init__(
            f"There is nothing to draw for --kind {kind}. Another kind may have something: tracekit plot --help"
        )


class QueryError(TracekitError):
    """A query that DuckDB cannot answer."""

    def __init__(self, why: str, tables: Sequence[str]) -> None:
        super().__init__(f"The query failed ({why.rstrip('.')}). The tables are: {', '.join(tables)}.")


class NoTerminalError(TracekitError):
    """The terminal UI without a terminal."""

    def __init__(self, inputs: Sequence[object]) -> None:
        traces = named(" ".join(str(path) for path in inputs))
        super().__init__(
            f"The TUI needs a terminal, and this is not one. Print the report instead: tracekit report {traces}"
        )


class UnknownVariantError(TracekitError):
    """A name that no variant has."""

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"{name}: no such variant. Available: {', '.join(known)}")
