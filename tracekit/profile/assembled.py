"""Subjects that are not only traces: the cells of a study, and a bare trace with the log that its process wrote beside
it under TORCH_TRACE. Both are imported only where they are asked for.
"""

from pathlib import Path

from msgspec.structs import replace

from tracekit.compile_log.torch_trace import read
from tracekit.errors.capturing import EmptyStudyError
from tracekit.errors.reading import BadCompileLogError
from tracekit.profile.foreign_log import foreign_log, processes
from tracekit.profile.subject import Member, Subject, Untraced
from tracekit.run import Requested, Variant
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


def with_compile_log(subject: Subject, path: Path) -> Subject:
    """The same subject with what the log says about its only bare trace, unless it is of another process. Raises
    BadCompileLogError, also if there are several."""
    bare = [profile for profile in subject.profiles if profile.variant is None]
    if len(bare) != 1:
        raise BadCompileLogError(path, f"it belongs to a single trace outside of a run, but {len(bare)} were given")
    (profile,) = bare
    ledger, graphs = read(path, processes(profile.trace))
    if beside := foreign_log(profile.trace, ledger, graphs):
        logged = replace(profile, beside=tuple(beside))
    else:
        variant = Variant(name=profile.name, outcome="ok", requested=Requested(compile=True), ledger=ledger)
        logged = replace(profile, variant=variant, graphs=tuple(graphs))
    return replace(subject, members=[logged if member is profile else member for member in subject.members])
