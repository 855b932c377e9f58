"""Failures of sweeps and studies."""

from collections.abc import Mapping, Sequence

from tracekit.errors.base import TracekitError, named


class SweepFileError(TracekitError):
    """A sweep file that cannot be used."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(f"{named(path)}: is not a sweep file: {why}.")


class NoCellError(TracekitError):
    """A selection of cells that selects none."""

    def __init__(self, selection: str, axes: Mapping[str, Sequence[str]]) -> None:
        known = "; ".join(f"{name}={','.join(values)}" for name, values in axes.items())
        super().__init__(f"{selection}: no cell of the sweep is like that. There are: {known}")


class StudyInUseError(TracekitError):
    """Another sweep is writing into the folder."""

    def __init__(self, folder: object) -> None:
        super().__init__(
            f"{named(folder)}: another sweep is writing here. Wait for it, or name another folder with -o."
        )


class OtherOptionsError(TracekitError):
    """A study whose cells were captured otherwise than the sweep now asks for."""

    def __init__(self, folder: object, differences: str) -> None:
        super().__init__(
            f"{named(folder)}: its cells were captured with other options ({differences}), so new ones could not be "
            "compared with them. Name another folder with -o."
        )


class BadStudyError(TracekitError):
    """A file of a study that cannot be read."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(f"{named(path)}: does not belong to a study that this version reads ({why}).")


class NothingMeasuredError(TracekitError):
    """A study in which no cell has been measured."""

    def __init__(self, folder: object, outcomes: str) -> None:
        super().__init__(f"{named(folder)}: no cell of this study was measured ({outcomes}): nothing to show.")


class StudyAmongOthersError(TracekitError):
    """A study that is opened together with other things."""

    def __init__(self, folder: object) -> None:
        super().__init__(
            f"{named(folder)}: is a study, and is opened alone. Its runs can be opened with others: cells/*/run.json"
        )


class NotAStudyError(TracekitError):
    """Cells that are to be selected where there are none."""

    def __init__(self, path: object) -> None:
        super().__init__(f"{named(path)}: is not the folder of a study: --only has no cells to select.")
