"""The members of a study: one for each cell, without the traces, which are in the run of each cell."""

from collections import Counter

from tracekit.errors import NothingMeasuredError
from tracekit.profile.subject import Member, Subject, Untraced
from tracekit.study import Study
from tracekit.study.settings import settings


def study_subject(study: Study) -> Subject:
    """Every cell as a variant of its setting's run. Raises NothingMeasuredError."""
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
    subject = Subject(members, study)
    if not subject.known:
        outcomes = Counter(each.outcome for each in study.results)
        raise NothingMeasuredError(study.folder, ", ".join(f"{n} {outcome}" for outcome, n in outcomes.items()))
    return subject
