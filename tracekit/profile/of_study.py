"""The members of a study: one for each cell, without the traces, which are in the run of each cell."""

from tracekit.errors import EmptyStudyError
from tracekit.profile.subject import Member, Subject, Untraced
from tracekit.study import Study
from tracekit.study.settings import settings


def study_subject(study: Study) -> Subject:
    """Every cell as a variant of its setting's run. Raises EmptyStudyError."""
    members: list[Member] = [
        Untraced(
            f"{setting.name} seed={result.cell.seed}: {group.variant}",
            result.outcome,
            (result.record.error if result.record is not None else None) or "its traces are in its own run",
            result.variant,
            result.run,
            f"{setting.name} seed={result.cell.seed}",
            result.cell,
        )
        for setting in settings(study)
        for group in setting.groups
        for result in group.results
    ]
    if not members:
        raise EmptyStudyError(study.folder)
    return Subject(members, study)
