"""Subjects that are not only traces: the cells of a study, a watch with the last traces that it took, and a bare trace
with the log that its process wrote beside it under TORCH_TRACE, which is not used unless it may be of the process that
was recorded. All are imported only where they are asked for.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from tracekit.compile_log.torch_trace import read
from tracekit.errors import TracekitError
from tracekit.errors.capturing import EmptyStudyError
from tracekit.errors.reading import BadCompileLogError
from tracekit.profile.growth import grown
from tracekit.profile.names import distinct
from tracekit.profile.opening import as_shown
from tracekit.profile.profile import Profile
from tracekit.profile.subject import Member, Subject, Untraced
from tracekit.run import Ledger, Requested, Variant
from tracekit.study import Study
from tracekit.study.settings import settings
from tracekit.trace import Trace
from tracekit.trace.facts.law import Broken, Law
from tracekit.vocabulary.lines_file import GRAPH_CALL, Graph
from tracekit.watched.reading import Watched

OPENED = 3  # moments at which a watch took traces: the first and the last ones are opened
_MOST_APART_NS = 86_400_000_000_000  # a day: training may go on for long between compilation and recording
_YEAR_2000_NS, _YEAR_2100_NS = 946_684_800_000_000_000, 4_102_444_800_000_000_000  # others are no unix time
_MOST_DIGITS = 20  # of the id of a process
FOREIGN_LOG = Law(
    "foreign_log",
    "doubt",
    ("lines",),
    look=lambda trace: (),  # that of one log is known when it is read
    text="""The compile log that was given is of another process, day or version than the trace.

    Holds: A compile log that is given with a trace (`--compile-log`) is of the process that was recorded.
    Breaks: No graph that the recording calls is in the log; or the log's processes are others than the trace's; or more
        than a day lies between them.
    Then: The log is not used: graph breaks and reasons of recompilations are unknown.
    Do: Give the folder that TORCH_TRACE named when the trace was recorded.
    """,
)
_MOST_PROCESSES = 1 << 22  # on Linux; before 2.5, torch wrote ids of threads instead, which are far larger


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


def watch_subject(watched: Watched, open_traces: Callable[[list[Path]], Subject]) -> Subject:
    """The first trace that the watch took, with which others are compared, and the last ones, each named by the step
    after which it was taken; without any that can be read, there is nothing but the watch."""
    after = {trace.path: trace.after for trace in watched.traces}
    first, *later = sorted({*after.values()}) or [0]
    paths = [path for path, step in after.items() if step in (first, *later[1 - OPENED :])]
    reason = "the watch took no trace"
    members: list[Member] = []
    if after:
        try:
            members = open_traces(paths).members
        except TracekitError as error:
            reason = as_shown(error, paths[-1])
    names = distinct(
        [
            f"trace at step {after[member.trace.path]}"
            if isinstance(member, Profile) and member.trace.path in after
            else member.name
            for member in members
        ]
    )
    opened = [
        replace(member, name=name, loaders={capture.rank: folder for capture in member.captures})
        if (folder := watched.shown.loader_folder) is not None and isinstance(member, Profile)
        else replace(member, name=name)
        for member, name in zip(members, names, strict=True)
    ]
    return Subject(_with_growth(opened) or [Untraced("watch", "ok", reason)], watch=watched)


def _with_growth(members: list[Member]) -> list[Member]:
    """The traces of a watch with the operators that their steps call more and more often."""
    profiles = [member for member in members if isinstance(member, Profile)]
    growth = grown(profiles[0], profiles[-1]) if len(profiles) > 1 else ()
    return [replace(member, growth=growth) if isinstance(member, Profile) else member for member in members]


def with_compile_log(subject: Subject, path: Path) -> Subject:
    """The same subject with what the log says about its only bare trace, unless it is of another process. Raises
    BadCompileLogError, also if there are several."""
    bare = [profile for profile in subject.profiles if profile.variant is None]
    if len(bare) != 1:
        raise BadCompileLogError(path, f"it belongs to a single trace outside of a run, but {len(bare)} were given")
    (profile,) = bare
    ledger, graphs = read(path, processes(profile.trace))
    of_process = replace(FOREIGN_LOG, look=partial(_of_another, ledger, graphs))
    if beside := of_process.breaches(profile.trace):
        logged = replace(profile, beside=tuple(beside))
    else:
        variant = Variant(name=profile.name, outcome="ok", requested=Requested(compile=True), ledger=ledger)
        logged = replace(profile, variant=variant, graphs=tuple(graphs))
    return replace(subject, members=[logged if member is profile else member for member in subject.members])


def processes(trace: Trace) -> frozenset[int]:
    """The id of the process that trains; none if the trace does not say."""
    pids = (pid for pid, trains in zip(trace.tracks["pid"].to_pylist(), trace.threads.process, strict=True) if trains)
    return frozenset(int(pid) for pid in pids if str(pid).isdecimal() and len(str(pid)) <= _MOST_DIGITS)


def _of_another(ledger: Ledger, graphs: Sequence[Graph], trace: Trace) -> Iterator[Broken]:
    """That a compile log is not of the day, the process or the version of its trace, if it is not."""
    reason = ""
    called = {match[1] for match in map(GRAPH_CALL.fullmatch, trace.names) if match}
    if called and graphs and not called & {graph.key for graph in graphs}:
        reason = "No graph that the recording calls is in the compile log: the log is of another program or version"
    logged, recorded = {compiled.thread for compiled in ledger.compiles}, processes(trace)
    if logged and recorded and max(logged) <= _MOST_PROCESSES and not logged & recorded:
        numbers = " and ".join(", ".join(map(str, sorted(pids))) for pids in (logged, recorded))
        reason = f"The compile log is of another process than the recording ({numbers})"
    begun, ended = (trace.base_ns + moment for moment in trace.host_recorded)
    compiles = [compiled for compiled in ledger.compiles if _is_date(compiled.start_ns) and _is_date(compiled.end_ns)]
    if compiles and _is_date(begun):
        first, last = min(compiled.start_ns for compiled in compiles), max(compiled.end_ns for compiled in compiles)
        if first - ended > _MOST_APART_NS or begun - last > _MOST_APART_NS:
            days = f"The compile log is of {_day(first)}, the recording of {_day(begun)}"
            reason = f"{days}: the log is of another run"
    if reason:
        yield Broken(f"{reason}, and is not used.")


def _is_date(unix_ns: int) -> bool:
    return _YEAR_2000_NS < unix_ns < _YEAR_2100_NS


def _day(unix_ns: int) -> str:
    return datetime.fromtimestamp(unix_ns / 1e9, UTC).date().isoformat()
