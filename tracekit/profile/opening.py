"""Open runs, traces and studies side by side; every variant gets a name of its own."""

import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from tracekit.base import disclosure
from tracekit.engine import Attribution
from tracekit.engine.cached import known_attribution
from tracekit.errors import TracekitError, named
from tracekit.errors.capturing import StudyAmongOthersError
from tracekit.errors.reading import NoTraceInRunError, WatchAmongOthersError
from tracekit.profile.names import distinct, path_as_text, run_names, shown_name, together
from tracekit.profile.profile import Capture, Profile
from tracekit.profile.rare_steps import one_lacks_rare_steps
from tracekit.profile.subject import Member, Subject, Untraced, why_none
from tracekit.run import Run, Variant, Window, is_run, read
from tracekit.study import is_study, read_study
from tracekit.trace import Trace
from tracekit.trace.facts import Breach, Law
from tracekit.trace.reading.convert import ReadWatch
from tracekit.trace.reading.source import is_address, traces_in
from tracekit.trace.split import split
from tracekit.watched.reading import is_watch, read_watch

WINDOWS = Law(
    "windows",
    "note",
    (),
    look=lambda trace: (),  # files show it, not a trace
    text="""A process left several traces, of which one is shown; or a capture's trace of the first steps is unreadable.

    Holds: Each file is a variant of its own.
    Breaks: A folder holds several windows of one process, as a profiler whose schedule repeats writes them; or the
        trace of the first steps, which a capture took beside the steady ones, cannot be read.
    Then: Of several windows, the last is shown. The first steps are missing from the series of steps.
    Do: Give the files by name to compare windows.
    """,
)
_LISTED: tuple[Window, ...] = ("steady", "cold", "detail")  # the one that figures come from is read and listed first
# A window of a process as torch.profiler.tensorboard_trace_handler names it: a worker, which is host and process unless
# it is given a name, and when the window was written, ns.
_WINDOW = re.compile(r"(.+_\d+)\.(\d{12,})\.pt\.trace\.json(?:\.gz|\.zst)?", re.DOTALL)


def open_subject(
    paths: list[Path],
    watch: ReadWatch | None = None,
    mine: Collection[str] = (),
    infer_steps: bool = True,
    *,
    opening: Callable[[Path], None] = lambda path: None,
    arrived: Callable[[Subject], None] = lambda subject: None,
    lenient: bool = False,
    ranks: bool = True,
) -> Subject:
    """Open runs and traces side by side; every variant gets a name of its own. Raises TracekitError.

    `mine` names packages whose code is the user's, where nothing recorded says so. With `infer_steps`, what plainly
    repeats in a trace without steps takes their place. `opening` is called before each trace is read, `arrived` after
    each variant that could be read, with all variants read so far. A trace that was named and cannot be read is an
    error, unless `lenient` asks for the others. Traces of several ranks of one job are one variant, unless `ranks` is
    False. The folder of a study or a watch is opened alone.
    """
    if studies := [path for path in paths if not is_address(path) and is_study(path)]:
        if len(paths) > 1:
            raise StudyAmongOthersError(studies[0])
        from tracekit.profile.assembled import study_subject

        return study_subject(read_study(studies[0]))
    if watches := [path for path in paths if not is_address(path) and is_watch(path)]:
        if len(paths) > 1:
            raise WatchAmongOthersError(watches[0])
        from tracekit.profile.assembled import watch_subject

        def open_traces(traces: list[Path]) -> Subject:
            return open_subject(
                traces, watch, mine, infer_steps, opening=opening, arrived=arrived, lenient=True, ranks=ranks
            )

        return watch_subject(read_watch(watches[0]), open_traces)

    def attribute(trace: Trace, with_pieces: bool = False) -> Attribution:
        return known_attribution(trace.as_told(infer_steps), with_pieces=with_pieces)

    def captures(path: Path) -> tuple[Capture, ...]:
        """One, or one for each rank of a file that merges several."""
        opening(path)
        trace = Trace.load(path, watch=watch)
        parts = split(trace) if ranks else []
        return tuple(Capture(path, attribute(part.trace), rank=part.rank) for part in parts) or (
            Capture(path, attribute(trace, with_pieces=paths == [path])),
        )

    def subject(members: list[Member]) -> Subject:
        return Subject(
            [
                replace(member, mine=tuple(mine)) if isinstance(member, Profile) and mine else member
                for member in _side_by_side(together(members) if ranks else members)
            ]
        )

    members: list[Member] = []
    failures: dict[Path, TracekitError] = {}
    expanded = [*_expanded(paths)]
    said = dict(expanded)
    for path, opened in _members([path for path, _ in expanded], captures, failures):
        beside = said[path]
        member = replace(opened, beside=(beside,)) if beside is not None and isinstance(opened, Profile) else opened
        if (failed := [path for path in failures if path in paths]) and not lenient:
            raise failures[failed[0]]  # a failed trace from a folder is only reported, and the others are read
        members.append(member)
        if isinstance(member, Profile):
            arrived(subject(members))
    if failures and not any(isinstance(member, Profile) for member in members):
        raise next(reversed(failures.values()))
    return subject(members)


def _members(
    paths: list[Path], captures: Callable[[Path], tuple[Capture, ...]], failures: dict[Path, TracekitError]
) -> Iterator[tuple[Path, Member]]:
    """Open the members one by one, each with its input; for a trace that cannot be read, the reason is remembered."""
    runs = [read(path) if os.path.isfile(path) and is_run(path) else None for path in paths]
    labels = iter(
        run_names([p for p, run in zip(paths, runs, strict=True) if run], [run.recipe for run in runs if run])
    )
    for path, run in zip(paths, runs, strict=True):
        if run is not None:
            name = next(labels)
            of_run: list[Member] = []
            for variant in run.variants:
                of_run.append(_of_variant(path, run, name, variant, captures))
                yield path, of_run[-1]
            if not Subject(of_run).known:
                raise NoTraceInRunError(path, why_none(of_run), measured=False)
            continue
        try:
            member: Member = Profile(shown_name(path), captures(path))
        except TracekitError as error:
            failures[path] = error
            member = Untraced(shown_name(path), "error", as_shown(error, path))
        yield path, member


def _expanded(paths: list[Path]) -> Iterator[tuple[Path, Breach | None]]:
    """The inputs, with a folder replaced by its traces, each of which is reported separately. Of the windows of one
    process in a folder, as a profiler whose schedule repeats leaves them, it is the last only, with what says so."""
    for path in paths:
        if is_address(path) or not os.path.isdir(path):
            yield path, None
            continue
        windows: dict[str, list[tuple[int, Path]]] = {}
        for trace in traces_in(path):
            match = _WINDOW.fullmatch(trace.name)
            process, written_ns = (match[1], int(match[2])) if match else (trace.name, 0)
            windows.setdefault(process, []).append((written_ns, trace))
        for group in windows.values():
            _, last = max(group, key=lambda window: window[0])
            left_out = (
                f"the folder has {len(group)} windows of this process, which are one run: this is the last, "
                f"{path_as_text(last) if disclosure.current() else last.name}. Give the files to compare windows."
            )
            yield last, Breach(WINDOWS.id, WINDOWS.severity, left_out) if len(group) > 1 else None


def _of_variant(
    path: Path, run: Run, name: str, variant: Variant, captures: Callable[[Path], tuple[Capture, ...]]
) -> Member:
    paths: dict[Window, Path | None] = {window: run.trace_path(path, variant, window) for window in _LISTED}
    if paths["steady"] is None:
        reason = variant.error or "no trace of it was taken"
        return Untraced(variant.name, variant.outcome, reason, variant, run, name)
    own_captures, unread = [], []
    for window, trace_path in paths.items():
        if trace_path is None:
            continue
        try:
            # The detailed trace is not read, since no figure comes from it.
            attribution = captures(trace_path)[0].attribution if window != "detail" else None
        except TracekitError as error:
            if window == "steady":
                return Untraced(variant.name, "error", as_shown(error, trace_path), variant, run, name)
            unread.append(
                Breach(WINDOWS.id, WINDOWS.severity, f"its first steps cannot be shown: {as_shown(error, trace_path)}")
            )
        else:
            own_captures.append(Capture(trace_path, attribution, window=window))
    # The steady traces of the ranks after the first; one that cannot be read is missing among the ranks.
    for rank_part in variant.ranks:
        with suppress(TracekitError):
            if (steady := run.trace_path(path, variant, rank=rank_part.rank)) is not None:
                own_captures.append(Capture(steady, captures(steady)[0].attribution, rank=rank_part.rank))
    ranks = [0, *(rank_part.rank for rank_part in variant.ranks)]
    return Profile(
        variant.name,
        tuple(own_captures),
        variant,
        run,
        name,
        beside=tuple(unread),
        turns=run.turn_paths(path, variant),
        loaders={rank: folder for rank in ranks if (folder := run.loader_path(path, variant, rank)) is not None},
    )


def as_shown(error: TracekitError, path: Path) -> str:
    """What is said of a file, whose path may have spaces or be cut, so that only here it is known to be one."""
    text, filter_ = str(error), disclosure.current()
    if filter_ is None:
        return text
    stand_in = filter_.path(path)
    return filter_.text(text.replace(named(path), stand_in).replace(str(path), stand_in))


def _side_by_side(members: Sequence[Member]) -> list[Member]:
    """The members as they can be compared: each with a unique name, and without the steps of a kind that another
    variant of its run did not record.

    If runs share names, the names are preceded by that of the run. Where a window is shorter than the period in which
    an evaluation recurs, one trace may hold it and another not: their difference would be the evaluation.
    """
    names = [member.name for member in members]
    collide = {member.run_name for member in members if names.count(member.name) > 1}
    full = [f"{m.run_name}:{m.name}" if m.run is not None and m.run_name in collide else m.name for m in members]
    variants = [replace(member, name=name) for member, name in zip(members, distinct(full), strict=True)]
    runs: dict[str, list[Profile]] = {}
    for member in variants:
        if isinstance(member, Profile) and member.run_name:
            runs.setdefault(member.run_name, []).append(member)
    uneven = {name for name, profiles in runs.items() if one_lacks_rare_steps(profiles)}
    return [
        replace(member, without_rare=True) if isinstance(member, Profile) and member.run_name in uneven else member
        for member in variants
    ]
