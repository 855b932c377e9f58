"""How much memory do the recorded steps take beyond what was held before, in which phase, and what holds the peak?

Everything is read from the recording with stacks, whose allocations, unlike its times, are those of the training. From
allocations and releases, works out what is held at each moment, and how long each allocation lives. Levels are bytes
above what was held before the first event: memory that was allocated earlier may be released, so a level may be
negative.

A summary is kept in the cache, and beside a run in a small file, so that a report of many runs opens none of their
traces.
"""

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.atomic import replacing
from tracekit.base.intervals import NO_INTS, Bools, Ints, StepFunction, distinct
from tracekit.errors import TracekitError
from tracekit.lines.means import kept_with_recording
from tracekit.lines.owners import OTHER, PHASES
from tracekit.lines.ownership import MOST_EVENTS, Ownership
from tracekit.lines.spans import Spans, on_thread
from tracekit.profile import Profile, open_subject
from tracekit.profile.where import line_cells
from tracekit.study.store import MEMORY
from tracekit.trace import Trace
from tracekit.trace.rereading import MemoryEvents, memory_events
from tracekit.trace.roles import COMPILED_REGION, OPERATOR
from tracekit.trace.storing.cache import file_state, result_name
from tracekit.vocabulary.lines_file import lines_path

# Operators that only allocate memory: their caller is of interest.
_FETCHES = re.compile(r"aten::(?:empty|new_empty|resize)(?:_.*)?")
SCHEMA = "tracekit.memory/1"


class PhaseUse(msgspec.Struct, frozen=True):
    """One phase of a step: the highest level, and what is allocated in a step, both in bytes."""

    phase: str
    peak_bytes: int
    allocated_bytes: float
    allocations: float


class Holder(msgspec.Struct, frozen=True):
    """Allocations of one operator on one line that are held at the peak, or made in a step."""

    where: str | None
    file: str | None
    line: int | None
    function: str | None
    operator: str | None
    phase: str
    peak_bytes: int  # held at the peak
    tensors: int  # number of these allocations
    allocated_bytes: float  # in a step
    allocations: float


class Point(msgspec.Struct, frozen=True):
    """The level after an event of the step that has the peak."""

    at_ns: int  # since the step was issued
    bytes: int  # above what was held before the recording
    phase: str


class DeviceUse(msgspec.Struct, frozen=True, kw_only=True):
    """The memory of one device."""

    device: str
    steps: int
    step: int  # the N of ProfilerStep#N of the step with the peak
    peak_bytes: int  # above what was held before the recording
    before_bytes: int | None  # held when the recording began; None if that was not counted, as on a CPU
    allocated_bytes: float  # in a step
    allocations: float
    reserved_bytes: int | None  # the most that the allocator reserves; None if it reserves nothing
    idle_bytes: int | None  # reserved but not allocated, when most is reserved
    phases: list[PhaseUse]
    holders: list[Holder]
    curve: list[Point]
    addressed: bool  # False: an old trace without addresses, in which what is held is unknown


class MemoryUse(msgspec.Struct, frozen=True):
    """The memory of every device; `owned` is False if no stacks show lines and phases."""

    devices: list[DeviceUse] = []
    owned: bool = True


def memory_use(trace: Trace, ownership: Ownership) -> MemoryUse:
    """The memory use of each device; empty if the recording was made without `profile_memory`."""
    owned, phase = ownership.recording is not None, StepFunction(NO_INTS, NO_INTS, OTHER)
    if owned:
        main, phases = ownership.main.owners, np.array([row.phase for row in ownership.owners.rows], np.int64)
        phase = StepFunction(main.edges, phases[main.values] if len(main.values) else main.values, OTHER)
    uses = (_of_device(trace, ownership, phase, events) for events in memory_events(trace))
    return MemoryUse([use for use in uses if use is not None], owned)


def _of_device(trace: Trace, ownership: Ownership, phase: StepFunction, events: MemoryEvents) -> DeviceUse | None:
    low, high = trace.steps.window
    events = events.chosen((events.ts_ns >= low) & (events.ts_ns < max(high, low + 1)))
    if not len(events):
        return None
    walk, steps = Walk(events), len(trace.steps)
    allocated, is_allocation = np.maximum(events.bytes, 0), events.bytes > 0
    # The phases that occur, in the order of their peaks.
    phases, phase_of = [], phase.at(events.ts_ns)
    for number, peak in sorted(walk.peaks_by(phase, low, high).items(), key=lambda item: -item[1]):
        mask = phase_of == number
        allocations = int(is_allocation[mask].sum())
        phases.append(PhaseUse(PHASES[number], peak, float(allocated[mask].sum()) / steps, allocations / steps))
    # The level in the step that has the peak, from its start on.
    peak_step = max(int(trace.steps.of(events.ts_ns[walk.peak : walk.peak + 1])[0]), 0)
    begin = int(trace.steps.issued[peak_step])
    mask = (events.ts_ns >= begin) & (events.ts_ns < int(trace.steps.until[peak_step]))
    moments = np.concatenate(([begin], events.ts_ns[mask]))
    levels = np.concatenate((walk.entering(moments[:1]), walk.level[mask]))
    curve = zip((moments - begin).tolist(), levels.tolist(), phase.at(moments).tolist(), strict=True)
    reserved_bytes, idle_bytes = int(events.reserved.max()), events.reserved - events.allocated
    before_bytes = int(events.allocated[0] - events.bytes[0]) if events.allocated[0] >= 0 else None
    return DeviceUse(
        device=events.device,
        steps=steps,
        step=trace.steps.number[peak_step],
        peak_bytes=walk.peak_bytes,
        before_bytes=before_bytes if not events.device.startswith("cpu") else None,
        allocated_bytes=float(allocated.sum()) / steps,
        allocations=float(is_allocation.sum()) / steps,
        reserved_bytes=reserved_bytes if reserved_bytes > 0 else None,
        idle_bytes=int(idle_bytes[events.reserved == reserved_bytes].min()) if reserved_bytes > 0 else None,
        phases=phases,
        holders=[*_holders(trace, ownership, walk, steps)],
        curve=[Point(at_ns, level, PHASES[number]) for at_ns, level, number in curve],
        addressed=events.addressed,
    )


class Walk(Struct, frozen=True, dict=True):
    """The events of one device, and what follows from their order."""

    events: MemoryEvents

    @cached_property
    def level(self) -> Ints:
        """Bytes above the start, after each event."""
        level: Ints = np.cumsum(self.events.bytes)
        return level

    @cached_property
    def peak(self) -> int:
        """The event after which the most is held; the first of several."""
        return int(np.argmax(self.level))

    @property
    def peak_bytes(self) -> int:
        """What is held at the peak, above the start; 0 if it never exceeds the start."""
        return max(int(self.level[self.peak]), 0)

    @cached_property
    def released(self) -> Ints:
        """For each allocation, the event that ends it: the next one at its address, or the number of events for
        none."""
        events = self.events
        order = np.lexsort((np.arange(len(events)), events.address))
        ends = np.full(len(events), len(events), np.int64)
        if len(order) > 1:
            same_address = events.address[order[1:]] == events.address[order[:-1]]
            ends[order[:-1][same_address]] = order[1:][same_address]
        return ends

    @property
    def live(self) -> Bools:
        """Which events are allocations that are held at the peak."""
        mask: Bools = (self.events.bytes > 0) & (np.arange(len(self.events)) <= self.peak) & (self.released > self.peak)
        return mask

    def entering(self, moments: Ints) -> Ints:
        """The level at each moment, before what happens at it."""
        after = np.searchsorted(self.events.ts_ns, moments, side="left")
        level: Ints = np.concatenate(([0], self.level))[after]
        return level

    def peaks_by(self, kind: StepFunction, low: int, high: int) -> dict[int, int]:
        """The highest level in `[low, high)` by the value that a step function has at the time.

        A stretch begins at the level before it, and each event counts in the stretch in which it happens.
        """
        ts = self.events.ts_ns
        in_window = (ts >= low) & (ts < high)
        edges = kind.edges[(kind.edges > low) & (kind.edges < high)]
        moments = distinct(np.concatenate((np.array([low], np.int64), edges)))
        kinds = np.concatenate((kind.at(moments), kind.at(ts[in_window])))
        levels = np.concatenate((self.entering(moments), self.level[in_window]))
        return {int(number): int(levels[kinds == number].max()) for number in distinct(kinds).tolist()}


def _holders(trace: Trace, ownership: Ownership, walk: Walk, steps: int) -> Iterator[Holder]:
    """A row for each operator, line and phase that allocates, those that hold the most at the peak first."""
    events, owners = walk.events, ownership.owners
    allocations = np.flatnonzero(events.bytes > 0)
    sizes, live = events.bytes[allocations], walk.live[allocations] & events.addressed
    rows: dict[tuple[int, int, int], list[int]] = {}
    operators = _operators(trace, events)[allocations]
    owned = zip(ownership.of_buffers(events.track[allocations], events.ts_ns[allocations]), operators, strict=True)
    for index, (owner, operator) in enumerate(owned):
        numbers = owners.rows[owner]
        rows.setdefault((numbers.group, numbers.phase, int(operator)), []).append(index)
    held_bytes = {key: int((sizes[indices] * live[indices]).sum()) for key, indices in rows.items()}
    for key in sorted(rows, key=lambda key: (-held_bytes[key], -int(sizes[rows[key]].sum()))):
        group, phase, operator = key
        place, file, line, function = line_cells(owners.groups[group])
        yield Holder(
            where=place,
            file=file,
            line=line,
            function=function,
            operator=trace.names[operator] if operator >= 0 else None,
            phase=PHASES[phase],
            peak_bytes=held_bytes[key],
            tensors=int(live[rows[key]].sum()),
            allocated_bytes=float(sizes[rows[key]].sum()) / steps,
            allocations=len(rows[key]) / steps,
        )


def _operators(trace: Trace, events: MemoryEvents) -> Ints:
    """For each event, the innermost operator on its thread that does more than allocate memory, by name; −1 for none.

    Where compiled code allocates a buffer, the operator that fills it: the next one in the same region.
    """
    regions, fetches = trace.labels.fits(COMPILED_REGION), trace.labels.fits(_FETCHES)
    operators = (trace.roles.kind == OPERATOR) & ~trace.roles.annotation
    names = np.full(len(events), -1, np.int64)
    for track in distinct(events.track[events.track >= 0]).tolist():
        rows, mask = on_thread(trace, track, operators), events.track == track
        codes = trace.name_codes[rows]
        for candidates in (rows, rows[~fetches[codes]]):  # the second, if there is one
            spans = Spans.of(trace, candidates)
            if len(spans):
                inner = spans.innermost.at(events.ts_ns[mask])
                names[mask] = np.where(inner >= 0, trace.name_codes[spans.rows[inner]], names[mask])
        buffers = np.flatnonzero(mask & (names >= 0) & regions[names])
        if not len(buffers):
            continue
        region_spans, kernels = Spans.of(trace, rows[regions[codes]]), rows[~(regions | fetches)[codes]]
        region = region_spans.innermost.at(events.ts_ns[buffers])
        following = np.searchsorted(trace.ts_ns[kernels], events.ts_ns[buffers])
        is_filled = (region >= 0) & (following < len(kernels))
        buffers, region, following = buffers[is_filled], region[is_filled], following[is_filled]
        in_region = trace.ts_ns[kernels[following]] < region_spans.ends[region]
        names[buffers[in_region]] = trace.name_codes[kernels[following[in_region]]]
    return names


class _Summary(msgspec.Struct, frozen=True, kw_only=True):
    schema: str = SCHEMA
    use: MemoryUse


def write_summary(run: Path) -> None:
    """Write the memory use of the run's first variant, even if nothing is known. Raises TracekitError."""
    profiles = open_subject([run]).profiles
    use = (known_use(profiles[0]) if profiles else None) or MemoryUse()
    use = replace(use, devices=[replace(device, curve=[]) for device in use.devices])
    with replacing(run.parent / MEMORY) as part:
        part.write_bytes(msgspec.json.encode(_Summary(use=use)))


def read_summary(folder: Path) -> MemoryUse | None:
    """The memory use in the file; None if there is no file, or another version wrote it."""
    try:
        summary = msgspec.json.decode((folder / MEMORY).read_bytes(), type=_Summary)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return summary.use if summary.schema == SCHEMA else None


def known_use(profile: Profile) -> MemoryUse | None:
    """The variant's memory use; None if no recording was made with `profile_memory`, or it cannot be read."""
    trace, path = profile.trace, profile.detail_path
    if path is None and not (trace.meta.get("profile_memory") and len(trace.ts_ns) <= MOST_EVENTS):
        return None

    def name() -> str:
        """It holds everything that the result depends on, wherever it is stored."""
        recordings = [file for file in (trace.path, path) if file is not None]
        states = [file_state(file) for recording in recordings for file in (recording, lines_path(recording))]
        causes = states, sorted(profile.ownership.mine), profile.graphs, trace.infers_steps
        return result_name("memory", __name__, causes=causes)

    def use() -> MemoryUse | None:
        try:
            recording = profile.recording
        except TracekitError:
            return None
        has_memory = recording.trace.meta.get("profile_memory")
        return memory_use(recording.trace, recording.ownership) if has_memory else None

    return kept_with_recording(profile.ownership, name, MemoryUse, use)
