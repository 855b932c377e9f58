"""How much memory does a step take above what was held before, in which phase, and what holds it at the peak?"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from tracekit.memory import MemoryUse, known_use
from tracekit.memory.use import DeviceUse, Holder
from tracekit.profile import Profile
from tracekit.report.blocks import Block, Line, Mark, Sentences, Series, Table
from tracekit.report.model import Report
from tracekit.report.registry import of_run
from tracekit.report.section import Contents
from tracekit.trace.schema import column
from tracekit.units import count, percent, ratio, size

_REAL, _WHOLE, _TEXT = pa.float64(), pa.int64(), pa.string()
_VARIANT = column("variant", _TEXT, "name of the variant", role="name")
_DEVICE = column("device", _TEXT, "cpu, cuda:0 …")
_CELLS = 60  # of the curve
DEVICES = pa.schema(
    [
        _VARIANT,
        _DEVICE,
        column("peak_bytes", _WHOLE, "held at the peak above what was held when the recording began", "B"),
        column("peak_phase", _TEXT, "phase of the peak; null where no stacks show phases"),
        column("before_bytes", _WHOLE, "held when the recording began; null on a CPU, where it is not counted", "B"),
        column("allocated_bytes", _REAL, "allocated per step, including what is released again", "B"),
        column("allocations", _REAL, "allocations per step"),
        column("churn", _REAL, "allocated per step, as a multiple of the part of it that is held at the peak", "×"),
        column("reserved_bytes", _WHOLE, "most that the allocator reserves; null where it reserves nothing", "B"),
        column("idle_bytes", _WHOLE, "of this, not allocated at the moment when most is reserved", "B"),
        column("fragmentation", _REAL, "idle share of the reserved memory", "share"),
    ]
)
PHASES = pa.schema(
    [
        _VARIANT,
        _DEVICE,
        column("phase", _TEXT, "data, forward, backward, optimizer, eval or other", role="name"),
        column(
            "peak_bytes", _WHOLE, "most memory held in the phase, above what was held when the recording began", "B"
        ),
        column("allocated_bytes", _REAL, "allocated in the phase, per step", "B"),
        column("allocations", _REAL, "allocations per step"),
    ]
)
HOLDERS = pa.schema(
    [
        _VARIANT,
        _DEVICE,
        column(
            "where",
            _TEXT,
            "your line that allocates; for a backward operator, the line of its forward operator",
            role="place",
        ),
        column("operator", _TEXT, "operator that allocates", role="name"),
        column("phase", _TEXT, "phase of these allocations"),
        column("peak_bytes", _WHOLE, "memory held at the peak", "B"),
        column(
            "share", _REAL, "share of what was allocated since the recording began and is held at the peak", "share"
        ),
        column("tensors", _WHOLE, "allocations held at the peak"),
        column("allocated_bytes", _REAL, "allocated per step", "B"),
        column("allocations", _REAL, "allocations per step", role="detail"),
        column("file", _TEXT, "your file", role="source"),
        column("line", _WHOLE, "line number in the file", role="source"),
        column("function", _TEXT, "your function", role="source"),
    ]
)
CURVE = pa.schema(
    [
        _VARIANT,
        _DEVICE,
        column("step", _WHOLE, "the N of ProfilerStep#N of the step with the peak", role="identity"),
        column("at_ns", _WHOLE, "time since the step was issued, in the recording with stacks", "ns"),
        column("level_bytes", _WHOLE, "memory held after the event, above what was held when the recording began", "B"),
        column("phase", _TEXT, "phase of the main thread"),
    ]
)
_Of = tuple[str, MemoryUse, DeviceUse]


@of_run("memory_use", "Memory of a step", rank=38)
def memory_use(report: Report) -> Contents | None:
    """For each variant a sentence; its devices, phases, and what holds its memory as tables; the curve of a step."""
    uses = [(profile, use) for profile in report.profiles if (use := known_use(profile)) is not None and use.devices]
    if not uses:
        return None
    every = [(profile.name, use, device) for profile, use in uses for device in use.devices]
    main = [(profile, use, _main(use)) for profile, use in uses]
    said = Sentences(tuple(_said(*each) for each in main))
    curves = Series("memory", tuple(_line(profile.name, device) for profile, _, device in main))
    devices = Table("memory_devices", _table(DEVICES, map(_device_row, every)), layout="records", detail=True)
    phases = Table("memory_phases", _table(PHASES, _phase_rows(every)), detail=True)
    holders = Table("memory_holders", _table(HOLDERS, _holder_rows(every)))
    blocks: tuple[Block, ...] = (said, curves, holders, phases, devices)
    return Contents(blocks, tables={"memory_curve": lambda: _table(CURVE, _curve_rows(every))})


def _main(use: MemoryUse) -> DeviceUse:
    """The GPU with the highest peak; without one, whatever has it."""
    return max(use.devices, key=lambda each: (not each.device.startswith("cpu"), each.peak_bytes))


def _said(profile: Profile, use: MemoryUse, device: DeviceUse) -> str:
    peak = f"{profile.name}: at the peak {size(device.peak_bytes)} above the start of the recording"
    phase = f", in {_peak_phase(use, device)}" if use.owned and device.phases else ""
    holder = device.holders[0] if device.addressed and device.holders and device.holders[0].peak_bytes else None
    held = f"; {_held(holder, device)}" if holder is not None else ""
    missing = "" if device.addressed else "; what holds it cannot be known, because the trace names no addresses"
    allocated = f" A step allocates {size(device.allocated_bytes)} in {count(round(device.allocations))} allocations"
    churn = _churn(device)
    times = f", {ratio(churn)} as much as it holds at the peak" if churn is not None else ""
    return f"{peak}{phase}{held}{missing}.{allocated}{times}.{_reserved(device)}"


def _held(holder: Holder, device: DeviceUse) -> str:
    share = percent(holder.peak_bytes / _held_bytes(device))
    by = holder.operator or "no operator"
    line = f" at {holder.where}" if holder.where else ""
    return f"most of what was allocated since then is held by {by}{line}, {size(holder.peak_bytes)} ({share})"


def _held_bytes(device: DeviceUse) -> int:
    """What was allocated since the recording began and is held at the peak."""
    return max(sum(each.peak_bytes for each in device.holders), 1)


def _churn(device: DeviceUse) -> float | None:
    held = sum(each.peak_bytes for each in device.holders)
    return device.allocated_bytes / held if held else None


def _reserved(device: DeviceUse) -> str:
    if not device.reserved_bytes or device.idle_bytes is None:
        return ""
    idle = percent(device.idle_bytes / device.reserved_bytes)
    return f" The allocator reserves {size(device.reserved_bytes)}, of which {idle} stays unused."


def _peak_phase(use: MemoryUse, device: DeviceUse) -> str | None:
    return device.phases[0].phase if use.owned and device.phases else None


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
    over = f"step {device.step} on {device.device}"
    marks: list[Mark] = ["" for _ in cells]
    return Line(name, tuple(range(_CELLS)), tuple(cells), tuple(marks), "B", over)


def _table(schema: pa.Schema, rows: Iterator[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([*rows], schema)


def _device_row(of: _Of) -> dict[str, Any]:
    name, use, device = of
    idle, reserved = device.idle_bytes, device.reserved_bytes
    return {
        "variant": name,
        "device": device.device,
        "peak_bytes": device.peak_bytes,
        "peak_phase": _peak_phase(use, device),
        "before_bytes": device.before_bytes,
        "allocated_bytes": device.allocated_bytes,
        "allocations": device.allocations,
        "churn": _churn(device),
        "reserved_bytes": reserved,
        "idle_bytes": idle,
        "fragmentation": idle / reserved if reserved and idle is not None else None,
    }


def _phase_rows(every: list[_Of]) -> Iterator[dict[str, Any]]:
    for name, use, device in every:
        for each in device.phases if use.owned else ():
            yield {
                "variant": name,
                "device": device.device,
                "phase": each.phase,
                "peak_bytes": each.peak_bytes,
                "allocated_bytes": each.allocated_bytes,
                "allocations": each.allocations,
            }


def _holder_rows(every: list[_Of]) -> Iterator[dict[str, Any]]:
    for name, use, device in every:
        held = _held_bytes(device)
        for each in device.holders:
            yield {
                "variant": name,
                "device": device.device,
                "where": each.where,
                "operator": each.operator,
                "phase": each.phase if use.owned else None,
                "peak_bytes": each.peak_bytes if device.addressed else None,
                "share": each.peak_bytes / held if device.addressed else None,
                "tensors": each.tensors if device.addressed else None,
                "allocated_bytes": each.allocated_bytes,
                "allocations": each.allocations,
                "file": each.file,
                "line": each.line,
                "function": each.function,
            }


def _curve_rows(every: list[_Of]) -> Iterator[dict[str, Any]]:
    for name, use, device in every:
        for point in device.curve:
            yield {
                "variant": name,
                "device": device.device,
                "step": device.step,
                "at_ns": point.at_ns,
                "level_bytes": point.bytes,
                "phase": point.phase if use.owned else None,
            }
