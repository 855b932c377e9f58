"""Writes what happened as Kineto of several torch versions writes it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.world.machine import MAIN, TOOL, Event, Recording

_HOST = ("cpu_op", "user_annotation", "python_function", "cuda_runtime", "cuda_driver")
_DEVICE = {
    "id": 0,
    "name": "NVIDIA A100-SXM4-40GB",
    "totalGlobalMem": 42505273344,
    "computeMajor": 8,
    "computeMinor": 0,
    "maxThreadsPerBlock": 1024,
    "maxThreadsPerMultiprocessor": 2048,
    "regsPerBlock": 65536,
    "warpSize": 32,
    "sharedMemPerBlock": 49152,
    "numSms": 108,
    "regsPerMultiprocessor": 65536,
}


@dataclass(frozen=True)
class Dialect:
    """What differs between the versions."""

    nanoseconds: bool = True  # otherwise whole µs since 1970
    base_first: bool = True  # where `baseTimeNanoseconds` stands
    categories: tuple[tuple[str, str], ...] = ()  # the older names
    frames: bool = True  # Python frames are events of their own; earlier, operators carry a call stack
    hip: bool = False
    text_streams: bool = False
    external: str = "External id"


_OLD = (("cuda_runtime", "Runtime"), ("kernel", "Kernel"), ("gpu_memcpy", "Memcpy"), ("gpu_memset", "Memset"))
DIALECTS = {
    "1.8": Dialect(
        False,
        categories=(*_OLD, ("cpu_op", "Operator"), ("user_annotation", "Operator")),
        frames=False,
        text_streams=True,
        external="external id",
    ),
    "1.11": Dialect(False, categories=_OLD, frames=False),
    "2.1": Dialect(False),
    "2.4": Dialect(base_first=False),
    "2.8": Dialect(),
    "2.8 on ROCm": Dialect(hip=True),
}
_BASE_NS = 1_790_857_026_000_000_000
_EPOCH_NS = 1_646_348_629_000_000_000


@dataclass(frozen=True)
class Switches:
    """What was recorded."""

    stacks: bool = True
    shapes: bool = True
    marks: bool = True  # ProfilerStep#N
    gpu: bool = True
    clock_ns: int = 0  # by which the clock of each rank is ahead of that of the rank before


def write(
    path: Path, recording: Recording, dialect: Dialect, switches: Switches, rank: int = 0, ranks: int = 1
) -> Path:
    """Write the recording of one rank; its clock differs from that of the others."""
    header: dict[str, Any] = {"schemaVersion": 1, "deviceProperties": [_DEVICE]}
    if ranks > 1:
        header["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": ranks, "pg_count": 1}
    base = {"displayTimeUnit": "ms", "baseTimeNanoseconds": _BASE_NS} if dialect.nanoseconds else {}
    ahead = rank * switches.clock_ns
    events = [_event(each, dialect, switches, k, ahead) for k, each in enumerate(_chosen(recording, dialect, switches))]
    written = {"traceEvents": events}
    parts = (base, written) if dialect.base_first else (written, base)
    path.write_text(json.dumps({**header, **parts[0], **parts[1], "traceName": path.name}))
    return path


def _chosen(recording: Recording, dialect: Dialect, switches: Switches) -> list[Event]:
    def recorded(each: Event) -> bool:
        if each.cat == "python_function":
            return dialect.frames and (switches.stacks or each.name == "Python GC")
        if each.name.startswith("ProfilerStep#"):
            return switches.marks
        return switches.gpu or each.cat in _HOST

    return [each for each in recording.events if recorded(each)]


def _event(each: Event, dialect: Dialect, switches: Switches, number: int, ahead: int) -> dict[str, Any]:
    gpu = each.cat not in _HOST and each.track != TOOL
    args: dict[str, Any] = {k: v for k, v in each.args.items() if switches.shapes or not k.startswith("Input")}
    if each.cat in ("cpu_op", "user_annotation"):
        args |= {"External id": number + 1}
        if switches.stacks and not dialect.frames and each.frames:
            args["Call stack"] = ";".join(reversed(each.frames))
    elif each.correlation:
        args["correlation"] = each.correlation
    track: object = each.track
    if gpu:
        args |= {"device": 0, "context": 1, "stream": each.track, dialect.external: number + 1}
        track = f"stream {each.track}" if dialect.text_streams else each.track
    name = each.name.replace("cuda", "hip", 1) if dialect.hip and each.cat == "cuda_runtime" else each.name
    return {
        "ph": "X",
        "cat": dict(dialect.categories).get(each.cat, each.cat),
        "name": name,
        "pid": 0 if gpu else TOOL if each.track == TOOL else MAIN,
        "tid": 0 if each.track == TOOL else track,
        **_time(each.start + ahead, each.end + ahead, dialect),
        "args": args,
    }


def _time(start: int, end: int, dialect: Dialect) -> dict[str, float | int]:
    if not dialect.nanoseconds:
        start, end = ((ns + _EPOCH_NS) // 1000 for ns in (start, end))
        return {"ts": start, "dur": end - start}
    return {"ts": round(start / 1000, 3), "dur": round((end - start) / 1000, 3)}
