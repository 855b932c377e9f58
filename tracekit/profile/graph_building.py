"""What builds graphs in the loop itself, on which line, and how long does that take on the host, on the GPU, and of a
step?

Functions are known from Python stacks, and what they take in a steady step is what its owners say (docs/owners.md).
Operators and spans are known by their names alone; without stacks they are all that is seen.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import NO_INTS, NO_TIME, Ints, StepFunction, Union, distinct, topmost
from tracekit.engine.buckets import ON_THE_GPU
from tracekit.lines.owners import BUILDING, Group, OwnerNumbers, Owners
from tracekit.lines.ownership import MOST_EVENTS
from tracekit.lines.spans import merged
from tracekit.profile.profile import Profile
from tracekit.trace import Trace
from tracekit.trace.rows import outermost
from tracekit.vocabulary.graph_building import graph_builder


class GraphBuilder(Struct, frozen=True):
    """A function, operator or span that builds graphs, called from one line, and when it is at work in the steps."""

    name: str
    lines: Group  # that call it; empty where no stacks show them
    calls: int  # in the recorded steps
    recorded_steps: int  # of the recording in which the calls were counted
    wall: Union  # the time of a step that it takes: of the host's while the GPU idles, and of the GPU's work for it
    host: Union  # when the main thread is in it, whatever the GPU does
    work: Ints  # the GPU activities that it submits, by row, in order of their starts
    rows: Ints  # events that show it: its calls or, where stacks were recorded apart, its operators


def graph_builders(profile: Profile) -> tuple[GraphBuilder, ...]:
    """Everything that builds graphs on the main thread, what takes most of the steps first."""
    recording = profile.recording
    is_too_long = profile.variant is None and len(profile.trace.ts_ns) > MOST_EVENTS
    has_owners = profile.ownership.recording is not None and not is_too_long
    calls = _calls(recording.trace if has_owners else profile.trace)
    if not len(calls):
        return ()
    builders = _owned(profile, calls) if has_owners else _named(profile, calls)
    return tuple(sorted(builders, key=lambda builder: -builder.wall.total()))


def time_of_all(builders: Iterable[GraphBuilder]) -> Union:
    """The time of a step that any of them takes."""
    return reduce(Union.plus, (builder.wall for builder in builders), NO_TIME)


def per_step_ns(profile: Profile, time: Union) -> float:
    """How much of that time a counted step has, ns."""
    pieces = profile.attribution.pieces
    return time.common(pieces.union(profile.counted[pieces.step])).total() / profile.counted_steps


def _calls(trace: Trace) -> Ints:
    """The outermost of these events on the main thread, in steps."""
    builds = np.array([graph_builder(name) is not None for name in trace.names], bool)
    if not builds.any():
        return NO_INTS
    main = trace.threads.main
    rows = trace.where(
        lambda part: part.roles.host & (part.track == main) & part.lasting & builds[part.name_codes] & part.process
    )
    return outermost(trace, rows[trace.steps.of(trace.ts_ns[rows]) >= 0])


def _named(profile: Profile, calls: Ints) -> Iterator[GraphBuilder]:
    """By the names of the calls alone."""
    trace, pieces = profile.trace, profile.attribution.pieces
    waits = pieces.union(~pieces.of(*ON_THE_GPU))
    work, launches = trace.links.activities.astype(np.int64), trace.links.launches.astype(np.int64)
    of_main = trace.track[launches] == trace.threads.main
    for code in distinct(trace.name_codes[calls]).tolist():
        rows = calls[trace.name_codes[calls] == code]
        host = _time(trace, rows)
        submitted = distinct(work[of_main & host.covers(trace.ts_ns[launches])])
        others = _time(trace, np.setdiff1d(work, submitted))
        wall = waits.common(host).plus(_time(trace, submitted).minus(others))
        yield GraphBuilder(_names(trace, rows), (), len(rows), max(len(trace.steps), 1), wall, host, submitted, rows)


def _owned(profile: Profile, calls: Ints) -> Iterator[GraphBuilder]:
    """By the owners of the trace's time, which come from the recording with stacks, whose calls these are."""
    trace, recording, ownership = profile.trace, profile.recording, profile.ownership
    key_of_call, key_of_lines, lines_of_key = _keys(recording, calls)
    blame, main = ownership.blame.get(profile.attribution.pieces.view), ownership.main.owners
    gpu = trace.where(lambda part: part.roles.gpu & part.lasting)
    of_work = ownership.of_events(gpu)
    owner_keys = [_key(owner, ownership.owners, key_of_lines) for owner in ownership.owners.rows]  # known only now
    operators = trace.where(lambda part: part.roles.operator & (part.track == trace.threads.main) & part.lasting)
    for key, lines in enumerate(lines_of_key):
        is_of_key = np.array([owner_key == key for owner_key in owner_keys], bool)
        in_key = is_of_key[main.values]
        host, wall = Union.of(main.edges[:-1][in_key], main.edges[1:][in_key]), NO_TIME
        if blame is not None:
            mask = blame.known & is_of_key[blame.owner]
            wall = Union.of(blame.edges[:-1][mask], blame.edges[1:][mask])
        called = rows = calls[key_of_call == key]
        if recording is not profile:
            rows = outermost(trace, operators[host.covers(trace.ts_ns[operators])])
        name = _names(recording.trace, called)
        steps = max(len(recording.trace.steps), 1)
        yield GraphBuilder(name, lines, len(called), steps, wall, host, gpu[is_of_key[of_work]], rows)


def _keys(recording: Profile, calls: Ints) -> tuple[Ints, dict[Group, int], list[Group]]:
    """The calls by function, if it is the user's own, or else by the line that calls it: the key of each call, the key
    of all lines that run inside of them, and for each key the lines that call."""
    trace, ownership = recording.trace, recording.ownership
    owners, main = ownership.owners, ownership.main.owners
    assert ownership.recording is not None
    own = [ownership.recording.frames.of(trace.names[code]).line for code in trace.name_codes[calls].tolist()]
    # When a function of the user's returns, the line that called it runs again.
    moments = np.where([line is not None for line in own], trace.end_ns[calls], trace.ts_ns[calls])
    called_at = [owners.group_of(owner) for owner in main.at(moments).tolist()]
    # Where only a library calls it, its own `def` has to do.
    lines = [
        group or ((line._replace(whole=True),) if line else ()) for line, group in zip(own, called_at, strict=True)
    ]
    keys: dict[Group, int] = {}
    key_of_call = np.array(
        [keys.setdefault((line,) if line else group, len(keys)) for line, group in zip(own, lines, strict=True)],
        np.int64,
    )
    lines_of_key = [
        tuple(
            dict.fromkeys(
                line for group, of in zip(lines, key_of_call.tolist(), strict=True) if of == key for line in group
            )
        )
        for key in range(len(keys))
    ]
    spans = topmost(trace.ts_ns[calls], trace.end_ns[calls])
    _, (call, owner) = merged([StepFunction(spans.edges, spans.values.astype(np.int64)), main])
    pairs = np.unique(np.stack((owner[call >= 0], key_of_call[call[call >= 0]])), axis=1).T
    return key_of_call, {owners.group_of(owner): key for owner, key in pairs.tolist()}, lines_of_key


def _key(owner: OwnerNumbers, owners: Owners, key_of_lines: Mapping[Group, int]) -> int:
    """The key of an owner; −1 if it builds no graph. Lines that no call was recorded in count for the first key."""
    return key_of_lines.get(owners.groups[owner.group], 0) if owner.phase == BUILDING else -1


def _names(trace: Trace, calls: Ints) -> str:
    """What is called, those that take longest first."""
    taken: dict[str, int] = {}
    for code, ns in zip(trace.name_codes[calls].tolist(), trace.dur_ns[calls].tolist(), strict=True):
        name = graph_builder(trace.names[code]) or ""
        taken[name] = taken.get(name, 0) + ns
    return ", ".join(sorted(taken, key=lambda name: -taken[name]))


def _time(trace: Trace, rows: Ints) -> Union:
    events = trace.events_at(rows)
    return Union.of(events.ts_ns, events.end_ns)
