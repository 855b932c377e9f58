"""Open runs, traces and studies side by side; every variant gets a name of its own."""

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from tracekit.engine import Attribution
from tracekit.engine.cached import attributed
from tracekit.errors import NoTraceInRunError, StudyAmongOthersError, TracekitError
from tracekit.profile.capture import Capture, Window
from tracekit.profile.names import distinct, run_names, stem
from tracekit.profile.of_study import study_subject
from tracekit.profile.profile import Profile
from tracekit.profile.ranks import together
from tracekit.profile.subject import Member, Missing, Subject, why_none
from tracekit.run import Run, is_run, read
from tracekit.study import is_study, read_study
from tracekit.trace import Trace
from tracekit.trace.reading.convert import Watch
from tracekit.trace.reading.inputs import is_address, traces_in

_WINDOWS: tuple[Window, ...] = ("steady", "cold", "detail")


def open_subject(
    paths: list[Path],
    watch: Watch | None = None,
    mine: Collection[str] = (),
    infer_steps: bool = False,
    *,
    opening: Callable[[Path], None] = lambda path: None,
    lenient: bool = False,
    ranks: bool = True,
) -> Subject:
    """Open runs and traces side by side; every variant gets a name of its own. Raises TracekitError.

    `mine` names packages whose code is the user's, where nothing recorded says so. With `infer_steps`, traces without
    steps are taken apart by what repeats in them. `opening` is called before each trace is read. A trace that was named
    and cannot be read is an error, unless `lenient` asks for the others. Traces of several ranks of one job are
    one variant, unless `ranks` is False. The folder of a study is opened alone.
    """
    if studies := [path for path in paths if not is_address(path) and is_study(path)]:
        if len(paths) > 1:
            raise StudyAmongOthersError(studies[0])
        return study_subject(read_study(studies[0]))

    def attribute(path: Path) -> Attribution:
        opening(path)
        trace = Trace.load(path, watch=watch)
        return attributed(trace.inferring_steps() if infer_steps else trace)

    members: list[Member] = []
    failure: TracekitError | None = None
    each = _each(paths)
    opened = [read(path) if os.path.isfile(path) and is_run(path) else None for path in each]
    named = iter(run_names([p for p, run in zip(each, opened, strict=True) if run], [r.recipe for r in opened if r]))
    for path, run in zip(each, opened, strict=True):
        if run is not None:
            members += _of_run(path, run, next(named), attribute)
            continue
        try:
            members.append(Profile(stem(path), (Capture(path, attribute(path)),)))
        except TracekitError as error:
            if path in paths and not lenient:  # one that a folder brought along is told, and the others are read
                raise
            failure = error
            members.append(Missing(stem(path), "error", str(error)))
    if failure is not None and not any(isinstance(member, Profile) for member in members):
        raise failure
    members = together(members) if ranks else members
    return Subject([_with(member, tuple(mine)) for member in _named(members)])


def _with(member: Member, mine: tuple[str, ...]) -> Member:
    return replace(member, mine=mine) if isinstance(member, Profile) and mine else member


def _each(paths: list[Path]) -> list[Path]:
    """What was given, with the traces of a folder in its place: each is reported apart."""
    each: list[Path] = []
    for path in paths:
        each += traces_in(path) if os.path.isdir(path) and not is_address(path) else [path]
    return each


def _of_run(path: Path, run: Run, name: str, attribute: Callable[[Path], Attribution]) -> list[Member]:
    members: list[Member] = []
    for variant in run.variants:
        paths: dict[Window, Path | None] = {window: run.trace_path(path, variant, window) for window in _WINDOWS}
        if paths["steady"] is None:
            reason = variant.error or "no trace of it was taken"
            members.append(Missing(variant.name, variant.outcome, reason, variant, run, name))
            continue
        try:
            captures = tuple(_capture(each, window, attribute) for window, each in paths.items() if each is not None)
            members.append(Profile(variant.name, captures, variant, run, name))
        except TracekitError as error:
            members.append(Missing(variant.name, "error", str(error), variant, run, name))
    if not Subject(members).known:
        raise NoTraceInRunError(path, why_none(members), measured=False)
    return members


def _capture(path: Path, window: Window, attribute: Callable[[Path], Attribution]) -> Capture:
    """Read, except for the detail: no figure comes from it."""
    cost = attribute(path) if window != "detail" else None
    return Capture(path, cost, window=window)


def _named(members: Sequence[Member]) -> list[Member]:
    """Each with a name of its own: that of its run goes before those of runs that have names in common with others."""
    given = [member.name for member in members]
    collide = {member.run_name for member in members if given.count(member.name) > 1}
    full = [f"{m.run_name}:{m.name}" if m.run is not None and m.run_name in collide else m.name for m in members]
    return [replace(member, name=name) for member, name in zip(members, distinct(full), strict=True)]
