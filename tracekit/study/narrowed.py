"""Some cells of a study, with the baselines that they are compared with."""

from collections.abc import Mapping, Sequence

from tracekit.errors.capturing import NoCellError
from tracekit.study.settings import settings
from tracekit.study.store import Study, values_of


def narrowed(study: Study, selection: Mapping[str, Sequence[str]]) -> Study:
    """The cells whose axes have these values, and the first variant at the setting of each. Raises NoCellError."""
    axes = {axis: [*values] for axis, values in selection.items()}
    keys = {result.cell.key for result in study.results if result.cell.matches(axes)}
    if not keys:
        raise NoCellError(axes, values_of(study.cells))
    for setting in settings(study):
        if any(result.cell.key in keys for group in setting.groups for result in group.results):
            keys |= {result.cell.key for result in setting.groups[0].results}
    return Study(study.folder, study.manifest, [result for result in study.results if result.cell.key in keys])
