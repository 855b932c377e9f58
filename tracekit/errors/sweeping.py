"""Failures of sweeps and studies."""

from collections.abc import Mapping, Sequence

from tracekit.errors.base import TracekitError, named


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
