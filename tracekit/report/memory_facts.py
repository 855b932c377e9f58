"""The memory of one device: columns and words that the reports of a run and of a study share."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from tracekit.memory import MemoryUse
from tracekit.memory.use import DeviceUse, Holder
from tracekit.trace.schema import column
from tracekit.units import percent, size

_REAL, _INTEGER, _TEXT = pa.float64(), pa.int64(), pa.string()
DEVICE = (
    column("device", _TEXT, "cpu, cuda:0 …"),
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
    column("device", _TEXT, "cpu, cuda:0 …"),
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
        "device": device.device,
        "peak_bytes": device.peak_bytes,
        "peak_phase": peak_phase(use, device),
        "before_bytes": device.before_bytes,
        "allocated_bytes": device.allocated_bytes,
        "allocations": device.allocations,
        "churn": churn(device),
        "reserved_bytes": reserved,
        "idle_bytes": idle,
        "fragmentation": idle / reserved if reserved and idle is not None else None,
    }


def holder_facts(use: MemoryUse, device: DeviceUse) -> Iterator[dict[str, Any]]:
    """Rows of `HOLDER`, what holds the most at the peak first."""
    held_bytes = _held_bytes(device)
    for holder in device.holders:
        yield {
            "device": device.device,
            "where": holder.where,
            "operator": holder.operator,
            "phase": holder.phase if use.owned else None,
            "peak_bytes": holder.peak_bytes if device.addressed else None,
            "share": holder.peak_bytes / held_bytes if device.addressed else None,
            "tensors": holder.tensors if device.addressed else None,
            "allocated_bytes": holder.allocated_bytes,
            "allocations": holder.allocations,
            "file": holder.file,
            "line": holder.line,
            "function": holder.function,
        }


def _held_bytes(device: DeviceUse) -> int:
    """What was allocated since the recording began and is held at the peak."""
    return max(sum(holder.peak_bytes for holder in device.holders), 1)
