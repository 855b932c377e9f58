"""Some cells of a study, with the baselines that they are compared with."""

from collections.abc import Mapping, Sequence

from tracekit.errors import NoCellError
from tracekit.study.cell import values_of
from tracekit.study.settings import settings
from tracekit.study.store import Study


def narrowed(study: Study, only: Mapping[str, Sequence[str]]) -> Study:
    """The cells whose axes have these values, and the first variant at the setting of each. Raises NoCellError."""
    wanted = {axis: [*values] for axis, values in only.items()}
    chosen = {each.cell.key for each in study.results if each.cell.matches(wanted)}
    if not chosen:
        raise NoCellError(wanted, values_of(study.cells))
    for setting in settings(study):
        if any(result.cell.key in chosen for group in setting.groups for result in group.results):
            chosen |= {result.cell.key for result in setting.groups[0].results}
    return Study(study.folder, study.manifest, [each for each in study.results if each.cell.key in chosen])
