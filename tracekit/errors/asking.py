"""Failures of what is asked for, such as names of variants and metrics, budgets, queries and charts, and of output:
files to write, formats, the terminal.
"""

from collections.abc import Sequence

from tracekit.errors import TracekitError, named
from tracekit.installed import install_command


class UnknownVariantError(TracekitError):
    """A name that no variant has."""

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"{name}: no such variant. Available: {', '.join(known)}")


class UnknownStepError(TracekitError):
    """A number that no step of a variant has."""

    def __init__(self, number: int, variant: str, known: Sequence[int]) -> None:
        steps = f"its steps are {known[0]} to {known[-1]}" if known else "it has no steps: leave out --step"
        super().__init__(f"{named(variant)} has no step {number}: {steps}.")


class NeedsFormatError(TracekitError):
    """An option that only some formats have."""

    def __init__(self, option: str, formats: Sequence[str]) -> None:
        super().__init__(f"{option} is for --format {' or '.join(formats)} only. Add it, or leave out {option}.")


class NotConfidentialError(TracekitError):
    """What `--confidential` cannot hide secrets in; `next_step` says what to do instead."""

    def __init__(self, what: str, next_step: str) -> None:
        super().__init__(f"--confidential cannot hide anything in {what}: {next_step}.")


class UnknownMetricError(TracekitError):
    """A metric that is not measured."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f"{name}: no such metric. Available: {', '.join(known)}")


class UnknownIdError(TracekitError):
    """An id that no page has; `kind` says what was looked for, `similar` is the id that was probably meant."""

    def __init__(self, name: str, kind: str, similar: str) -> None:
        hint = f"Did you mean {similar}?" if similar else "tracekit explain-finding lists all of them."
        super().__init__(f"{named(name)}: no such {kind}. {hint}")


class ToleratedRegressionError(TracekitError):
    """A regression that must be seen, but would pass."""

    def __init__(self, smallest: float, tolerance: float) -> None:
        super().__init__(
            f"--min-detectable {smallest * 100:g}%: regressions of up to {tolerance * 100:g} % pass. Ask for more, or "
            "for less with --tolerance."
        )


class BudgetError(TracekitError):
    """A budget that cannot be used."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(f"{named(path)} is not a budget: {why}.")


class FewTokensError(TracekitError):
    """A number of tokens in which no fact can be told."""

    def __init__(self, budget: int, needed: int) -> None:
        super().__init__(f"No fact fits into {budget} tokens. Give at least --budget-tokens {needed}.")


class FewBytesError(TracekitError):
    """A number of bytes in which no answer can be given."""

    def __init__(self, budget: int, needed: int) -> None:
        super().__init__(f"No answer fits into {budget} bytes. Give at least --max-bytes {needed}.")


class PlugInError(TracekitError):
    """A package that adds to tracekit, and cannot be imported."""

    def __init__(self, package: str, module: str, why: str) -> None:
        super().__init__(
            f"{named(module)} of the package {named(package)} cannot be imported ({why}): update it, or uninstall it."
        )


class OutsideOfRootError(TracekitError):
    """An input that an agent may not read."""

    def __init__(self, path: object, root: object) -> None:
        super().__init__(
            f"{named(path)} is not below {named(root)}, and nothing else is read. Name a file or folder in it by its "
            "path from there, or start tracekit mcp with another --root."
        )


class UnknownReferenceError(TracekitError):
    """A reference to a variant, finding, event or list that an answer does not have."""

    def __init__(self, reference: str, why: str) -> None:
        super().__init__(f"{named(reference)} refers to nothing here: {why}.")


class NothingToCompareError(TracekitError):
    """Variants are to be compared, and there is one."""

    def __init__(self, inputs: object) -> None:
        super().__init__(f"{named(inputs)}: there is a single variant. Name a second input to compare it with.")


class BadArgumentsError(TracekitError):
    """Arguments of a tool that do not fit its schema."""

    def __init__(self, tool: str, why: str) -> None:
        super().__init__(f"The arguments do not suit {named(tool)}: {why}. See the tool's input schema.")


class QueryError(TracekitError):
    """A query that DuckDB cannot answer."""

    def __init__(self, why: str, tables: Sequence[str]) -> None:
        super().__init__(f"The query failed ({why.rstrip('.')}). The tables are: {', '.join(tables)}.")


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


class OtherFileError(TracekitError):
    """A file that would be replaced, and is not one that tracekit wrote."""

    def __init__(self, path: object) -> None:
        super().__init__(f"{named(path)} is there, and is not tracekit's. Name another folder.")


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
