"""A trace that no capture of tracekit took, with the log that its process wrote beside it under TORCH_TRACE."""

from dataclasses import replace
from pathlib import Path

from tracekit.compile_log.torch_trace import read
from tracekit.errors import BadCompileLogError
from tracekit.profile.subject import Subject
from tracekit.run import Requested, Variant


def with_compile_log(subject: Subject, path: Path) -> Subject:
    """The same subject with what the log says about its only bare trace. Raises BadCompileLogError, also if there are
    several."""
    bare = [profile for profile in subject.profiles if profile.variant is None]
    if len(bare) != 1:
        raise BadCompileLogError(path, f"it belongs to a single trace outside of a run, but {len(bare)} were given")
    (profile,) = bare
    ledger, graphs = read(path)
    variant = Variant(name=profile.name, outcome="ok", requested=Requested(compile=True), ledger=ledger)
    logged = replace(profile, variant=variant, graphs=tuple(graphs))
    return replace(subject, members=[logged if member is profile else member for member in subject.members])
