"""Trace: what happened, as tables; and from what time on events may be missing in a truncated file."""

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from tracekit.base.intervals import NO_INTS, Bools, Ints, Rows, runs
from tracekit.trace.facts import Breach, breaches
from tracekit.trace.facts.coverage import Coverage, find_coverage
from tracekit.trace.facts.impossible import Impossible, find_impossible
from tracekit.trace.facts.law import Unknown
from tracekit.trace.links import Links, link
from tracekit.trace.reading.convert import ReadWatch
from tracekit.trace.roles import OPERATOR, PYTHON, Ask, Census, Labels, Roles, take_census
from tracekit.trace.rows import AroundCalls, Events, RowFilter, around_calls, is_users_frame, parts
from tracekit.trace.schema import EVENTS, codes, held, labels, small, values
from tracekit.trace.steps import StepTable, Threads, find_steps, find_threads, host_recorded
from tracekit.trace.storing.cache import Entry
from tracekit.trace.storing.scratch import scratch_array

if TYPE_CHECKING:
    from tracekit.trace.sources import TraceSource

# What begins the names of what the cache has of a trace, for other steps than people are told of by default.
_ANNOTATED, _NOT_INFERRED = "annotated-", "not-inferred-"


class Summary(Struct, frozen=True):
    """What a report needs of a trace besides its attribution; cached with it, so that no event has to be read again."""

    steps: StepTable
    device: str
    has_stacks: bool
    health: list[Breach]


class Trace(Struct, frozen=True, dict=True):
    """One profiler trace, read. Times are int64 ns on the trace's clock; `schema.py` describes the tables."""

    path: Path
    read_events: Callable[[], pa.Table]
    tracks: pa.Table
    communications: pa.Table  # what is recorded about collectives besides times; see reading/event_details.py
    notes: pa.Table  # what is recorded about waits and counters; see reading/event_details.py
    meta: dict[str, Any]
    lost: int = 0  # events that could not be read
    mended: int = 0  # events read although their JSON is broken
    cut_short: str | None = None  # why the file ends before its events do
    in_order: bool = True  # whether a file that was cut held its events in order of time, as the table always does
    damage: str | None = None  # what is wrong with the archive it is packed in
    header_lost: bool = False  # the keys before the events were too long to keep
    entry: Entry | None = None  # where the cache has the trace and what was computed from it
    summary: Summary | None = None  # as computed earlier from this very trace
    source_name: str = "kineto"  # the format of the file; see sources.py
    process: str | None = None  # of a file that merges several, the one whose events these are; see split.py
    infers_steps: bool = False  # whether repeated iterations count as steps if none are annotated
    cuts_own_end: bool = False  # whether the recording's own wait at its end belongs to no step
    name_ranks: Ints | None = None  # by number, the places of names in their order, where `names` are stand-ins
    is_recorded: bool = False  # whether it is as the file has it, with all that cannot have happened

    @staticmethod
    def load(
        path: str | Path, use_cache: bool | None = None, workers: int | None = None, watch: ReadWatch | None = None
    ) -> "Trace":
        """Read a Kineto trace of any torch version, packed or not. Raises a TracekitError that says what to do."""
        from tracekit.trace.sources import load

        return load(Path(path), use_cache, workers, watch)

    def as_told(self, infer_steps: bool = True) -> "Trace":
        """The same trace with the steps that people are told of: without the recording's own end and, where none are
        annotated, inferred from what repeats."""
        told_trace = replace(self, infers_steps=infer_steps, cuts_own_end=True, summary=None)
        return told_trace if infer_steps else told_trace._apart(_NOT_INFERRED)

    def as_annotated(self) -> "Trace":
        """The same trace with annotated steps only, as a whole; without any, all of it is one."""
        return replace(self, infers_steps=False, cuts_own_end=False, summary=None)._apart(_ANNOTATED)

    def _apart(self, prefix: str) -> "Trace":
        entry = replace(self.entry, prefix=f"{self.entry.prefix}{prefix}") if self.entry is not None else None
        return replace(self, entry=entry)

    @property
    def source(self) -> "TraceSource":
        """The format of the file, which knows how to look things up in it again."""
        from tracekit.trace.sources import SOURCES

        return SOURCES[self.source_name]

    @cached_property
    def recorded(self) -> "Trace":
        """The same trace as the file has it."""
        return self if self.is_recorded else replace(self, is_recorded=True, summary=None)

    @cached_property
    def impossible(self) -> Impossible:
        """What in it cannot have happened, and is therefore not believed."""
        return find_impossible(self.recorded)

    @cached_property
    def events(self) -> pa.Table:
        """The duration events; from the cache only when they are needed."""
        if self.is_recorded:
            return self.read_events()
        table = self.recorded.events.select(EVENTS.names)
        if len(self.impossible.shortened):
            table = table.set_column(EVENTS.get_field_index("dur_ns"), EVENTS.field("dur_ns"), pa.array(self.dur_ns))
        return table

    @property
    def base_ns(self) -> int:
        """What to add to the trace's times to get unix ns; 0 if the file does not say."""
        recorded_ns = self.meta.get("baseTimeNanoseconds")
        return recorded_ns if isinstance(recorded_ns, int) and 0 <= recorded_ns < 1 << 62 else 0

    @cached_property
    def ts_ns(self) -> Ints:
        """Start of each event."""
        return values(self.recorded.events["ts_ns"])

    @cached_property
    def dur_ns(self) -> Ints:
        """Duration of each event; of one that outlasts a whole later one of its stream, until that one starts."""
        dur_ns = values(self.recorded.events["dur_ns"])
        if self.is_recorded or not len(self.impossible.shortened):
            return dur_ns
        amended_ns: Ints = scratch_array(len(dur_ns), np.int64)
        amended_ns[:] = dur_ns
        amended_ns[self.impossible.shortened] = self.impossible.shortened_ns
        return amended_ns

    @property
    def end_ns(self) -> Ints:
        """End of each event, computed anew at each call; for a long trace, `events_at` gets only those needed."""
        return self.ts_ns + self.dur_ns

    @cached_property
    def track(self) -> Rows:
        """Row in `tracks` of each event."""
        return small(self.recorded.events["track"])

    @cached_property
    def track_rows(self) -> dict[tuple[str, str], int]:
        """The row in `tracks` of each process and thread."""
        threads = zip(self.tracks["pid"].to_pylist(), self.tracks["tid"].to_pylist(), strict=True)
        return {thread: row for row, thread in enumerate(threads)}

    @cached_property
    def correlation(self) -> Ints:
        """Correlation id of each event, 0 for none."""
        return held(self.recorded.events["correlation"])

    @cached_property
    def cat_codes(self) -> Rows:
        """For each event the number of its `cat`, in the order of `labels.kinds`; the last for one without any part."""
        cat_codes = codes(self.recorded.events["cat"])
        if self.is_recorded or not len(self.impossible.untimely):
            return cat_codes
        amended: Rows = scratch_array(len(cat_codes), np.int32)
        amended[:] = cat_codes
        amended[self.impossible.untimely] = len(self.labels.kinds) - 1
        return amended

    @cached_property
    def kinds(self) -> NDArray[np.int8]:
        """What kind of event each is."""
        if not self.is_recorded and not len(self.impossible.untimely):
            return self.recorded.kinds
        kinds: NDArray[np.int8] = scratch_array(len(self.ts_ns), np.int8)
        for part in self.parts():
            kinds[part.selection] = self.labels.kinds[self.cat_codes[part.selection]]
        return kinds

    @cached_property
    def in_process(self) -> Bools:
        """Which are host events of the main thread's process."""
        if not self.is_recorded and not len(self.impossible.untimely):
            return self.recorded.in_process
        in_process: Bools = scratch_array(len(self.ts_ns), np.bool_)
        for part in self.parts():
            in_process[part.selection] = part.roles.host & self.threads.process[part.track]
        return in_process

    @cached_property
    def name_codes(self) -> Rows:
        """For each event the index of its name in `names`."""
        return codes(self.recorded.events["name"])

    @property
    def file_row(self) -> Rows:
        """For each event the row of the file on which it stands; see `reading.tables.STORED`."""
        return small(self.recorded.events["file_row"])

    @cached_property
    def name_texts(self) -> pa.Array:
        """The distinct names as an Arrow array."""
        names = self.recorded.events["name"]
        return names.chunk(0).dictionary if names.num_chunks else pa.array([], pa.string())

    @cached_property
    def names(self) -> list[str]:
        """The distinct names."""
        return labels(self.recorded.events["name"]) if self.is_recorded else self.recorded.names

    def name(self, row: SupportsIndex) -> str:
        """What one event is called."""
        name: str = self.names[self.name_codes[row]]
        return name

    @cached_property
    def labels(self) -> Labels:
        """The roles that follow from categories and names."""
        return Labels([*labels(self.events["cat"]), ""], self.names) if self.is_recorded else self.recorded.labels

    @cached_property
    def census(self) -> Census:
        """How many events of which kind each track holds, those without any part included."""
        return take_census(self) if self.is_recorded else self.recorded.census

    def processes_with(self, ask: Ask) -> set[str]:
        """The processes, or devices, of which a track has events of that role."""
        tracks = np.flatnonzero(self.census.by_track(ask, len(self.tracks)))
        return {str(self.tracks["pid"][int(track)].as_py()) for track in tracks}

    @property
    def roles(self) -> Roles:
        """What each event is, computed anew at each call; for a long trace, use `events_at` or `parts`."""
        return self.events_at(slice(0, len(self.ts_ns))).roles

    def events_at(self, rows: slice | Ints | Rows) -> Events:
        """The events at these rows."""
        return Events(self, rows)

    def where(self, predicate: RowFilter) -> Ints:
        """The rows of the wanted events, in order of their starts; `predicate` is asked about some events at a time."""
        return np.concatenate([NO_INTS, *(part.rows(predicate(part)) for part in self.parts())])

    def parts(self) -> Iterator[Events]:
        """All events, some at a time, in order of their starts."""
        return parts(self)

    @cached_property
    def threads(self) -> Threads:
        """The thread that drives the training, and those that help it."""
        return find_threads(self) if self.is_recorded else self.recorded.threads

    @cached_property
    def host_recorded(self) -> tuple[int, int]:
        """From when to when what the host does between its calls is known."""
        return host_recorded(self)

    @cached_property
    def links(self) -> Links:
        """Which runtime call submitted which GPU activity."""
        impossible = None if self.is_recorded else self.impossible
        if impossible is not None and not impossible.changes_links:
            return self.recorded.links
        return link(self, impossible)

    @cached_property
    def operators(self) -> AroundCalls:
        """Which operator made which runtime call: the innermost one around it."""
        return around_calls(self, lambda part: part.roles.operator & part.lasting)

    @cached_property
    def frames(self) -> AroundCalls:
        """Which of the user's Python frames encloses each runtime call."""
        return around_calls(self, is_users_frame(self))

    @cached_property
    def steps(self) -> StepTable:
        """When each step was issued, began and was done."""
        return find_steps(self) if self.summary is None else self.summary.steps

    @cached_property
    def coverage(self) -> Coverage:
        """Which launches have work in the trace."""
        return find_coverage(self)

    @cached_property
    def health(self) -> list[Breach]:
        """The laws that the trace breaks, the gravest first: they limit the answers that it can give."""
        return breaches(self) if self.summary is None else self.summary.health

    @cached_property
    def unknown(self) -> Unknown:
        """When nobody knows what the GPU or the host did."""
        return Unknown.of(self.health)

    @cached_property
    def device(self) -> str:
        """`gpu` if the trace holds GPU activity, else `cpu`."""
        if self.summary is not None:
            return self.summary.device
        return "gpu" if self.census.any(lambda roles: roles.gpu) else "cpu"

    @property
    def gpus(self) -> list[dict[str, Any]]:
        """The properties of each GPU of the machine, where the profiler lists them."""
        listed = self.meta.get("deviceProperties")
        return [properties for properties in listed if isinstance(properties, dict)] if isinstance(listed, list) else []

    @property
    def compute_majors(self) -> list[int]:
        """The major compute capability of each GPU of which it is recorded."""
        recorded = (properties.get("computeMajor") for properties in self.gpus)
        return [major for major in recorded if isinstance(major, int)]

    @cached_property
    def has_stacks(self) -> bool:
        """Whether the trace holds Python frames."""
        if self.summary is not None:
            return self.summary.has_stacks
        return self.census.any(lambda roles: roles.kind == PYTHON)

    @cached_property
    def lost_from_ns(self) -> int | None:
        """The earliest time, in ns on the trace's clock, at which something may be missing; None in a complete file."""
        if not self.cut_short or not len(self.ts_ns):
            return None
        host_only = self.meta.get("deviceProperties") == [] and not self.meta.get("with_stack")
        is_ordered = self.in_order and (_host_follows_gpu(self) or (host_only and _take_turns(self)))
        return int(self.ts_ns[-1]) if is_ordered else int(self.ts_ns[0])


def _host_follows_gpu(trace: "Trace") -> bool:
    """Whether an operator comes after a GPU activity."""
    has_gpu = False
    for part in trace.parts():
        gpu, host = (np.flatnonzero(mask) for mask in (part.roles.gpu, part.roles.kind == OPERATOR))
        if len(host) and (has_gpu or (len(gpu) and host[-1] > gpu[0])):
            return True
        has_gpu = has_gpu or len(gpu) > 0
    return False


def _take_turns(trace: "Trace") -> bool:
    """Whether events of a thread come both before and after an event of another thread."""
    turns, last = 0, -1
    for part in trace.parts():
        tracks = part.track[part.roles.host]
        turns += len(runs(np.append(last, tracks))) - 2
        last = int(tracks[-1]) if len(tracks) else last
    threads = trace.census.by_track(lambda roles: roles.host, len(trace.tracks))
    return turns > int(np.count_nonzero(threads))
