"""How much memory does a step take above what was held before, in which phase, and what holds it at the peak? And the
peak of each variant, as a table for programs.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from msgspec.structs import asdict

from tracekit.base.units import count, percent, ratio, size
from tracekit.profile import Profile
from tracekit.profile.memory_use import DeviceUse, Holder, MemoryUse, known_use
from tracekit.profile.run_facts import records_graphs
from tracekit.report.blocks import Block, Line, Mark, Sentences, Series, Table
from tracekit.report.model import Report
from tracekit.report.section import Contents, of_run
from tracekit.trace.schema import column

_REAL, _INTEGER, _TEXT = pa.float64(), pa.int64(), pa.string()
_VARIANT = column("variant", _TEXT, "name of the variant", role="name")
_DEVICE = column("device", _TEXT, "cpu, cuda:0 …")
DEVICE = (
    _DEVICE,
    column("peak_bytes", _INTEGER, "held at the peak above what was held when the recording began", "B"),
    column("peak_phase", _TEXT, "phase of the peak; null where no stacks show phases"),
    column("before_bytes", _INTEGER, "held when the recording began; null on a CPU, where it is not counted", "B"),
    column("allocated_bytes", _REAL, "allocated per step, including what is released again", "B"),
    column("allocations", _REAL, "allocations per step"),
    column("churn", _REAL, "allocated per step, as a multiple of the part of it that is held at the peak", "×"),
    column("reserved_bytes", _INTEGER, "most that the allocator reserves; null where it reserves nothing", "B"),
    column("idle_bytes", _INTEGER, "part of reserved_bytes that is not allocated when most is reserved", "B"),
    column("fragmentation", _REAL, "idle share of the reserved memory", "share"),
)
HOLDER = (
    _DEVICE,
    column(
        "where",
        _TEXT,
        "your line that allocates; for a backward operator, the line of its forward operator",
        role="place",
    ),
    column("operator", _TEXT, "operator that allocates", role="name"),
    column("phase", _TEXT, "phase of these allocations"),
    column("peak_bytes", _INTEGER, "memory held at the peak", "B"),
    column("share", _REAL, "share of what was allocated since the recording began and is held at the peak", "share"),
    column("tensors", _INTEGER, "allocations held at the peak"),
    column("allocated_bytes", _REAL, "allocated per step", "B"),
    column("allocations", _REAL, "allocations per step", role="detail"),
    column("file", _TEXT, "your file", role="source"),
    column("line", _INTEGER, "line number in the file", role="source"),
    column("function", _TEXT, "your function", role="source"),
)
_CELLS = 60  # of the curve
_MAJORITY = 0.5  # of what is held
DEVICES = pa.schema([_VARIANT, *DEVICE])
PHASES = pa.schema(
    [
        _VARIANT,
        _DEVICE,
        column(
            "phase",
            _TEXT,
            "data, graph building, forward, backward (inner, double), optimizer, eval, saving or other",
            role="name",
        ),
        column(
            "peak_bytes", _INTEGER, "most memory held in the phase, above what was held when the recording began", "B"
        ),
        column("allocated_bytes", _REAL, "allocated in the phase, per step", "B"),
        column("allocations", _REAL, "allocations per step"),
    ]
)
HOLDERS = pa.schema([_VARIANT, *HOLDER])
CURVE = pa.schema(
    [
        _VARIANT,
        _DEVICE,
        column("step", _INTEGER, "the N of ProfilerStep#N of the step with the peak", role="identity"),
        column("at_ns", _INTEGER, "time since the step was issued, in the recording with stacks", "ns"),
        column(
            "level_bytes", _INTEGER, "memory held after the event, above what was held when the recording began", "B"
        ),
        column("phase", _TEXT, "phase of the main thread"),
    ]
)
_VariantUse = tuple[str, MemoryUse, DeviceUse]
MEMORY = pa.schema(
    [
        _VARIANT,
        column(
            "what",
            _TEXT,
            "allocated or reserved on the GPU; resident on the host; above start: more than before the first step",
        ),
        column("peak_bytes", _INTEGER, "memory at the peak of the unprofiled pass", "B"),
        column("with_graphs", pa.bool_(), "whether CUDA graphs hold memory that the allocator counts as free"),
    ]
)


def main_device(use: MemoryUse) -> DeviceUse:
    """The GPU with the highest peak; without a GPU, the device with the highest peak."""
    return max(use.devices, key=lambda device: (not device.device.startswith("cpu"), device.peak_bytes))


def peak_phase(use: MemoryUse, device: DeviceUse) -> str | None:
    """The phase in which the peak lies; None if no stacks show phases."""
    return device.phases[0].phase if use.owned and device.phases else None


def main_holder(device: DeviceUse) -> Holder | None:
    """What holds the most at the peak; None if that is unknown, or nothing is held."""
    first = device.holders[0] if device.addressed and device.holders else None
    return first if first is not None and first.peak_bytes else None


def held_by(holder: Holder, device: DeviceUse) -> str:
    """`aten::mm at net.py:12 forward, 3.91 KiB (97.6 %)`."""
    share = percent(share_held(holder, device))
    line = f" at {holder.where}" if holder.where else ""
    return f"{holder.operator or 'no operator'}{line}, {size(holder.peak_bytes)} ({share})"


def share_held(holder: Holder, device: DeviceUse) -> float:
    """Of what was allocated since the recording began and is held at the peak."""
    return holder.peak_bytes / _held_bytes(device)


def churn(device: DeviceUse) -> float | None:
    """What a step allocates, as a multiple of the part of it that is held at the peak; None if none of it is."""
    held_bytes = sum(holder.peak_bytes for holder in device.holders)
    return device.allocated_bytes / held_bytes if held_bytes else None


def device_facts(use: MemoryUse, device: DeviceUse) -> dict[str, Any]:
    """A row of `DEVICE`."""
    idle, reserved = device.idle_bytes, device.reserved_bytes
    return {
        **asdict(device),
        "peak_phase": peak_phase(use, device),
        "churn": churn(device),
        "fragmentation": idle / reserved if reserved and idle is not None else None,
    }


def holder_facts(use: MemoryUse, device: DeviceUse) -> Iterator[dict[str, Any]]:
    """Rows of `HOLDER`, what holds the most at the peak first."""
    held_bytes = _held_bytes(device)
    unknown = {} if device.addressed else {"peak_bytes": None, "share": None, "tensors": None}
    for holder in device.holders:
        row = {"device": device.device, **asdict(holder), "share": holder.peak_bytes / held_bytes, **unknown}
        yield row if use.owned else {**row, "phase": None}


def _held_bytes(device: DeviceUse) -> int:
    """What was allocated since the recording began and is held at the peak."""
    return max(sum(holder.peak_bytes for holder in device.holders), 1)


@of_run("memory_use", "Memory of a step", rank=38)
def memory_use(report: Report) -> Contents | None:
    """For each variant a sentence; its devices, phases, and what holds its memory as tables; the curve of a step."""
    uses = [(profile, use) for profile in report.profiles if (use := known_use(profile)) is not None and use.devices]
    if not uses:
        return None
    variant_uses = [(profile.name, use, device) for profile, use in uses for device in use.devices]
    main = [(profile, use, main_device(use)) for profile, use in uses]
    sentences = Sentences(tuple(_sentence(*main_use) for main_use in main))
    curves = Series("memory", tuple(_line(profile.name, device) for profile, _, device in main))
    phases = (
        {"variant": name, "device": device.device, **asdict(phase)}
        for name, use, device in variant_uses
        for phase in (device.phases if use.owned else ())
    )
    devices = ({"variant": name, **device_facts(use, device)} for name, use, device in variant_uses)
    holders = ({"variant": name, **row} for name, use, device in variant_uses for row in holder_facts(use, device))
    blocks: tuple[Block, ...] = (
        sentences,
        curves,
        Table.of("memory_holders", holders, HOLDERS),
        Table.of("memory_phases", phases, PHASES, detail=True),
        Table.of("memory_devices", devices, DEVICES, layout="records", detail=True),
    )
    return Contents(blocks, tables={"memory_curve": lambda: pa.Table.from_pylist([*_curve_rows(variant_uses)], CURVE)})


def _sentence(profile: Profile, use: MemoryUse, device: DeviceUse) -> str:
    peak = f"{profile.name}: memory peaks at {size(device.peak_bytes)} above the start of the recording"
    if device.before_bytes:
        peak += f" ({size(device.before_bytes + device.peak_bytes)} in all)"
    phase = f", in the {at_peak} phase" if (at_peak := peak_phase(use, device)) not in (None, "other") else ""
    holder = main_holder(device)
    holder_clause = ""
    if holder is not None:
        part = "most" if share_held(holder, device) > _MAJORITY else "the largest part"
        holder_clause = f"; {part} of what was allocated since then is held by {held_by(holder, device)}"
    missing = "" if device.addressed else "; what holds the memory is unknown, because the trace records no addresses"
    allocated = f" A step allocates {size(device.allocated_bytes)} in {count(round(device.allocations))} allocations"
    factor = churn(device)
    times = f", {ratio(factor)} what it holds at the peak" if factor is not None else ""
    text = f"{peak}{phase}{holder_clause}{missing}.{allocated}{times}."
    if not device.reserved_bytes or device.idle_bytes is None:
        return text
    text += f" The allocator reserves {size(device.reserved_bytes)},"
    if records_graphs(profile.variant) or profile.trace.census.any(lambda roles: roles.graph_launch):
        return f"{text} including the memory of CUDA graphs."
    return f"{text} of which {percent(device.idle_bytes / device.reserved_bytes)} is unused."


def _line(name: str, device: DeviceUse) -> Line:
    """The highest level in each of equal parts of the step with the peak."""
    last = max(device.curve[-1].at_ns, 1)
    cells: list[int | None] = [None] * _CELLS
    level, points = device.curve[0].bytes, iter(device.curve)
    point = next(points, None)
    for cell in range(_CELLS):
        top = level
        while point is not None and point.at_ns * _CELLS < (cell + 1) * (last + 1):
            level, point = point.bytes, next(points, None)
            top = max(top, level)
        cells[cell] = top
    span = f"step {device.step} on {device.device}"
    marks: list[Mark] = ["" for _ in cells]
    return Line(name, tuple(range(_CELLS)), tuple(cells), tuple(marks), "B", span)


def _curve_rows(variant_uses: list[_VariantUse]) -> Iterator[dict[str, Any]]:
    for name, use, device in variant_uses:
        for point in device.curve:
            yield {
                "variant": name,
                "device": device.device,
                "step": device.step,
                "at_ns": point.at_ns,
                "level_bytes": point.bytes,
                "phase": point.phase if use.owned else None,
            }


@of_run("memory", "Memory", rank=91, stage="end")
def memory(report: Report) -> Contents | None:
    """A row for each peak that was measured; people read them among the facts of the run."""
    rows = []
    for member in report.members:
        measured = member.variant.memory if member.variant is not None else None
        if measured is None:
            continue
        peaks = {
            "allocated": measured.peak_allocated_bytes,
            "reserved": measured.peak_reserved_bytes,
            "resident": measured.host_peak_rss_bytes,
            "above start": measured.above_start_bytes,
        }
        graphs = records_graphs(member.variant)
        rows += [
            {"variant": member.name, "what": kind, "peak_bytes": peak, "with_graphs": graphs}
            for kind, peak in peaks.items()
            if peak is not None
        ]
    if not rows:
        return None
    return Contents((), tables={"memory": lambda: pa.Table.from_pylist(rows, schema=MEMORY)})
