"""The events of one name; one of them in full: when and where it ran, what launched it, and what encloses it; and an
event or a gap of the GPU in words, with the user's line behind it.
"""

import re
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from msgspec import Struct

from tracekit.analyses.event_rows import numbered, text
from tracekit.base.intervals import NO_INTS, Ints
from tracekit.base.names import sanitize
from tracekit.base.units import duration, percent
from tracekit.engine.buckets import BUCKETS, KEYS
from tracekit.errors import TracekitError
from tracekit.profile import Profile
from tracekit.profile.where import line_table
from tracekit.timeline.categories import HOST, Kinds
from tracekit.trace import Trace
from tracekit.trace.rows import nested
from tracekit.trace.schema import LABEL, column
from tracekit.tui.model.content import Content, Pane, Place, prose
from tracekit.tui.model.opened import OpenReport, steps_of
from tracekit.tui.model.panes.names import name_code, work_chosen
from tracekit.tui.model.selection import Selection
from tracekit.tui.model.sheet import Sheet
from tracekit.vocabulary.kernel_names import short_kernel

_PARTS, _THREADS = 3, 3  # of a gap that are named
_NAME = 60  # characters of a name
_COLUMNS = pa.schema(
    [
        column("variant", LABEL, "variant that it belongs to", role="name"),
        column("step", pa.int64(), "the N of the step that launched it, or in which it starts", role="identity"),
        column("at_ns", pa.int64(), "start, counted from the beginning of the step's work", "ns", title="after"),
        column("dur_ns", pa.int64(), "duration", "ns", title="lasts"),
        column("latency_ns", pa.int64(), "from the start of its launch call to its own start", "ns"),
        column("operator", LABEL, "operator that launched it", role="name"),
        column("track", LABEL, "stream or thread"),
        column("event", pa.int64(), "row of the events table", role="plumbing"),
    ]
)
_STACK = pa.schema(
    [
        column("inside", pa.string(), "enclosing spans, outermost first, and the event itself", title="inside of"),
        column("dur_ns", pa.int64(), "duration of the span", "ns", title="lasts"),
        column("category", LABEL, "what kind of event"),
        column("event", pa.int64(), "row of the events table", role="plumbing"),
    ]
)


def instances(opened: OpenReport, selection: Selection) -> Content:
    """Every event of the selected name in the selected steps, the longest first."""
    name = selection.of("kernel") or selection.of("operator")
    if name is None:
        return Content((prose("No kernel and no operator is selected."),))
    shown_name = sanitize(name if selection.of("kernel") is None else short_kernel(name), _NAME)
    profiles = opened.profiles_of(selection)
    table = pa.concat_tables([_events(opened, profile, selection, name) for profile in profiles]).unify_dictionaries()
    variants, events = table["variant"], table["event"]

    def enter(row: int) -> Selection:
        variant, event = variants[row].as_py(), events[row].as_py()
        label = f"{sanitize(shown_name, 24)} {duration(table['dur_ns'][row].as_py())}"
        return selection.narrowed("event", (variant, event), label, "timeline")

    total = int(table["dur_ns"].to_numpy().sum())
    title = f"{table.num_rows:,} of {shown_name}, {duration(total)} in all"
    visible_table = table if len(profiles) > 1 else table.drop_columns(["variant"])
    return Content((Sheet("instances", visible_table, title, enter, ("dur_ns", True)),))


def _events(opened: OpenReport, profile: Profile, selection: Selection, name: str) -> pa.Table:
    work = opened.behind(profile, selection)
    steps = np.ones(len(profile.trace.steps), bool) if selection.of("steps") is None else steps_of(profile, selection)
    rows = np.flatnonzero(work_chosen(profile, work, selection, steps) & (work.name == name_code(profile, name)))
    events, first = np.unique(work.event[rows], return_index=True)
    step, launch, trace = work.step[rows][first].astype(np.int64), work.launch[rows][first], profile.trace
    begin = trace.steps.begin[step] if len(step) else NO_INTS
    columns = [
        pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(events), np.int32)), pa.array([profile.name])),
        numbered(trace, step),
        pa.array(trace.ts_ns[events] - begin),
        pa.array(trace.dur_ns[events]),
        pa.array(trace.ts_ns[events] - trace.ts_ns[np.maximum(launch, 0)], mask=launch < 0),
        text(trace, trace.operators.of(launch)).cast(LABEL),
        track_names(trace).take(pa.array(trace.track[events])).dictionary_encode(),
        pa.array(events.astype(np.int64)),
    ]
    return pa.Table.from_arrays(columns, schema=_COLUMNS)


def track_names(trace: Trace) -> pa.Array:
    """The name of each track: the thread or the stream, and its process or device."""
    rows = trace.tracks.to_pylist()
    return pa.array([sanitize(str(row["thread"] or f"{row['pid']} · {row['tid']}"), 40) for row in rows], pa.string())


def event(opened: OpenReport, selection: Selection) -> Content:
    """One event in full, and the spans that enclose it, or the call that launched it."""
    event_key = selection.of("event")
    if event_key is None:
        return Content((prose("No event is selected."),))
    name, row = event_key
    profile = opened.profile(name)
    # The spans of its thread that cover its start; for an activity of the GPU, those around its launch.
    trace, launch = profile.trace, launch_of(profile, row)
    inner = launch if launch >= 0 else row
    start_ns = int(trace.ts_ns[inner])
    before = slice(0, int(np.searchsorted(trace.ts_ns, start_ns, side="right")))
    covering = np.flatnonzero(
        (trace.track[before] == trace.track[inner]) & (trace.ts_ns[before] + trace.dur_ns[before] > start_ns)
    )
    spans = nested(trace, np.union1d(covering, [inner]))
    rows = [*spans.tolist(), *([row] if launch >= 0 else [])]
    names = [sanitize(name_of(trace, event_row), 300) for event_row in rows]
    table = pa.table(
        [
            pa.array([f"{'  ' * depth}{name}" for depth, name in enumerate(names)]),
            pa.array(trace.dur_ns[rows]),
            pa.array([trace.events["cat"][event_row].as_py() for event_row in rows]).dictionary_encode(),
            pa.array(rows, pa.int64()),
        ],
        schema=_STACK,
    )

    def enter(index: int) -> Selection:
        return to_event(selection, profile, rows[index], "event")

    title = "Its launch, and what encloses it" if launch >= 0 else "What encloses it"
    lead = prose(name_of(trace, row), tone="lead")
    return Content((lead, prose(*facts(profile, row)), Sheet("stack", table, title, enter)), (0, len(rows) - 1))


class About(Struct, frozen=True):
    """An event or a gap in words, and the user's line behind it."""

    lines: tuple[str, ...]
    place: Place | None


def about(profile: Profile, row: int) -> About:
    """A description of an event, including the line that it belongs to, which can take long to find."""
    name = sanitize(name_of(profile.trace, row), 1000)
    return About((name, *map(sanitize, facts(profile, row))), place_of(profile, row))


def about_gap(profile: Profile, start_ns: int, end_ns: int) -> About:
    """What happened between two moments on the trace's clock in which the GPU was idle: when that is, and what each
    thread of the host does in it, at which line of the user's.
    """
    length, pieces = end_ns - start_ns, profile.attribution.pieces
    piece = int(np.searchsorted(pieces.start, start_ns, side="right")) - 1  # the steps of the wall time, not the host's
    step = int(pieces.step[piece]) if piece >= 0 and start_ns < pieces.end[piece] else -1
    lines = [f"GPU idle for {duration(length)}", f"{profile.name}: {_time_in_step(profile.trace, step, start_ns)}"]
    place: Place | None = None
    # The buckets of the wall time, the longest first: the ns of each, and the event most to blame (−1: none).
    low, high = np.maximum(pieces.start, start_ns), np.minimum(pieces.end, end_ns)
    by_bucket: dict[str, Counter[int]] = {}
    for piece in np.flatnonzero(low < high).tolist():
        blamed = by_bucket.setdefault(KEYS[pieces.bucket[piece]], Counter())
        blamed[int(pieces.event[piece])] += int(high[piece] - low[piece])
    parts = [(bucket, blamed.total(), blamed.most_common(1)[0][0]) for bucket, blamed in by_bucket.items()]
    for bucket, dur, event in sorted(parts, key=lambda part: -part[1])[:_PARTS]:
        name = f", most in {name_of(profile.trace, event)}" if event >= 0 else ""
        line = place_of(profile, event) if event >= 0 else None
        location = f" at {line.file}:{line.line}" if line is not None else ""
        lines.append(f"{percent(dur / length)} {BUCKETS[bucket].label}{sanitize(name, _NAME)}{location}")
        place = place or line
    for thread, name in _busy_threads(profile, start_ns, end_ns):
        lines.append(f"meanwhile on {thread}: {sanitize(name, _NAME)}")
    return About(tuple(map(sanitize, lines)), place)


def _busy_threads(profile: Profile, start_ns: int, end_ns: int) -> Iterator[tuple[str, str]]:
    """For other threads than the main one, the event that takes most of the gap, the busiest threads first."""
    trace = profile.trace
    rows: Ints = np.flatnonzero((trace.ts_ns < end_ns) & (trace.ts_ns + trace.dur_ns > start_ns))
    rows = rows[(Kinds.of(trace).lanes[rows] == HOST) & (trace.track[rows] != trace.threads.main)]
    overlap_ns = np.minimum(trace.ts_ns[rows] + trace.dur_ns[rows], end_ns) - np.maximum(trace.ts_ns[rows], start_ns)
    names, described_tracks = track_names(trace), set[int]()
    for index in np.argsort(-overlap_ns, kind="stable").tolist():
        track = int(trace.track[rows[index]])
        if track not in described_tracks and len(described_tracks) < _THREADS:
            described_tracks.add(track)
            yield names[track].as_py(), f"{name_of(trace, rows[index])}, {duration(int(overlap_ns[index]))}"


def to_event(selection: Selection, profile: Profile, row: int, pane: str | None = None) -> Selection:
    """Narrowed to an event, of which the breadcrumb says name and duration, and shown in that pane."""
    trace = profile.trace
    name = name_of(trace, row)
    short_name = short_kernel(name) if trace.events_at(np.array([row])).roles.gpu[0] else name
    label = f"{sanitize(short_name, 24)} {duration(int(trace.dur_ns[row]))}"
    return selection.narrowed("event", (profile.name, row), label, pane)


def name_of(trace: Trace, row: int) -> str:
    """The name of an event as written, not sanitized."""
    return trace.name(row)


def launch_of(profile: Profile, row: int) -> int:
    """The row of the call that submitted a GPU activity; −1 for everything else."""
    return int(profile.trace.links.launch(np.array([row], np.int64))[0])


def place_of(profile: Profile, row: int) -> Place | None:
    """The user's line behind an event, where it is known."""
    try:
        lines = line_table(profile, np.array([row], np.int64))
    except TracekitError:
        return None
    text, file, line = (lines[name][0].as_py() for name in ("where", "file", "line"))
    if file is None:
        return None
    if line is None and (start := re.match(rf"{re.escape(file)}:(\d+)", text)):  # the first line of a function
        line = int(start[1])
    return Place(file, line) if line is not None else None


def facts(profile: Profile, row: int) -> Iterator[str]:
    """When the event ran and for how long, what launched it, how many bytes it moved, and the user's line."""
    trace = profile.trace
    start, launch = int(trace.ts_ns[row]), launch_of(profile, row)
    track_name = track_names(trace)[int(trace.track[row])].as_py()
    step = int(trace.steps.of(trace.ts_ns[np.array([launch if launch >= 0 else row])])[0])
    timing = _time_in_step(trace, step, start)
    yield f"{profile.name}: {timing}; lasts {duration(int(trace.dur_ns[row]))}; on {track_name}"
    if launch >= 0:
        operator = int(trace.operators.of(np.array([launch]))[0])
        operator_phrase = f", made by {name_of(trace, operator)}" if operator >= 0 else ""
        latency = duration(start - int(trace.ts_ns[launch]))
        yield f"launched by {name_of(trace, launch)}{operator_phrase}, {latency} before it starts"
    moved = trace.events["bytes"][row].as_py()
    if moved:
        yield f"moves {moved:,} bytes"
    user_line = line_table(profile, np.array([row], np.int64))["where"][0].as_py()
    if user_line is not None:
        yield f"your line: {user_line}"


def _time_in_step(trace: Trace, step: int, start_ns: int) -> str:
    if step < 0:
        return "in no step"
    return f"step {trace.steps.number[step]}, {duration(start_ns - int(trace.steps.begin[step]))} after its work began"


INSTANCES = Pane(
    "instances",
    "Instances",
    "Every event of one name, the longest first: Enter shows one of them on the timeline.",
    instances,
    is_listed=False,
)
EVENT = Pane(
    "event",
    "Event",
    "One event: when it ran, what launched it, and the spans that enclose the launch. Enter shows one of these, t the "
    "timeline.",
    event,
    is_listed=False,
)
