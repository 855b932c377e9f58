"""Writes what a trace holds as Nsight Systems would export it, so that one recording can be read in both formats.

What Kineto has and nsys has not is left out of both: Python frames, and flows between operators. The schema is that of
"SQLite Export Schema Reference" in the Nsight Systems documentation.
"""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

_TABLES = """
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE ThreadNames (nameId INTEGER, priority INTEGER, globalTid INTEGER);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, totalMemory INTEGER, smCount INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME
    (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL
    (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER,
     globalPid INTEGER, demangledName INTEGER, shortName INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY
    (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER,
     bytes INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET
    (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER,
     value INTEGER, bytes INTEGER, memKind INTEGER);
CREATE TABLE NVTX_EVENTS
    (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER, textId INTEGER, domainId INTEGER);
"""
_COPY = {"HtoD": 1, "DtoH": 2, "DtoD": 8}
_MEMORY = {"Pageable": 0, "Pinned": 1, "Device": 2}
_HOST = ("cpu_op", "user_annotation", "cuda_runtime", "cuda_driver")
_GPU = ("kernel", "gpu_memcpy", "gpu_memset")


def in_both(document: dict[str, Any], folder: Path) -> tuple[Path, Path]:
    """The trace as Kineto and as nsys would have written it, in files of that folder."""
    kept = [
        event
        for event in document["traceEvents"]
        if event.get("ph") == "M" or (event.get("ph") == "X" and event.get("cat") in (*_HOST, *_GPU))
    ]
    for event in kept:
        args = event.get("args", {})
        event["args"] = {
            key: value
            for key, value in args.items()
            if key in ("correlation", "stream", "device", "bytes", "name", "labels", "Sequence number")
        }
        if event.get("cat") == "cpu_op" and "seq" not in event:
            event["args"].pop("Fwd thread id", None)
    kineto, nsys = folder / "kineto.json", folder / "nsys.sqlite"
    header = {key: document[key] for key in ("schemaVersion", "deviceProperties", "baseTimeNanoseconds")}
    kineto.write_text(json.dumps({**header, "traceEvents": kept}))
    write(nsys, kept, header)
    return kineto, nsys


def write(path: Path, events: list[dict[str, Any]], header: dict[str, Any]) -> None:
    """The export."""
    texts: dict[str, int] = {}

    def text(value: str) -> int:
        return texts.setdefault(value, len(texts))

    rows: dict[str, list[tuple[Any, ...]]] = {"RUNTIME": [], "KERNEL": [], "MEMCPY": [], "MEMSET": []}
    ranges: list[tuple[Any, ...]] = []
    process = next(event["pid"] for event in events if event.get("cat") == "cuda_runtime")
    for event in (event for event in events if event["ph"] == "X"):
        start = _ns(event["ts"])
        end, args, name = start + _ns(event.get("dur", 0)), event["args"], event["name"]
        match event["cat"]:
            case "cuda_runtime" | "cuda_driver":
                suffix = "_v7000" if event["cat"] == "cuda_runtime" else ""
                row = start, end, 0, _thread(event), args.get("correlation", 0), text(name + suffix)
                rows["RUNTIME"].append(row)
            case "cpu_op":
                sequence = f", seq = {args['Sequence number']}" if "Sequence number" in args else ", op_id = 7"
                ranges.append((start, end, 59, f"{name}{sequence}", _thread(event), None, 0))
            case "user_annotation":
                named = re.sub(r"ProfilerStep#(\d+)", r"train step \1", name)
                ranges.append((start, end, 59, None, _thread(event), text(named), 0))
            case "kernel":
                common = start, end, args["device"], 1, args["stream"], args["correlation"], process << 24
                rows["KERNEL"].append((*common, text(name), text(name[:9])))
            case "gpu_memcpy" | "gpu_memset":
                common = start, end, args["device"], args["stream"], args["correlation"], process << 24
                if event["cat"] == "gpu_memset":
                    rows["MEMSET"].append((*common, 0, args.get("bytes"), 2))
                else:
                    kind, source, target = re.findall(r"Memcpy (\w+) \((\w+) -> (\w+)\)", name)[0]
                    rows["MEMCPY"].append((*common, args.get("bytes"), _COPY[kind], _MEMORY[source], _MEMORY[target]))
    ranges.append((5, None, 34, "a mark", process << 24 | process, None, 0))
    with closing(sqlite3.connect(path)) as database:
        database.executescript(_TABLES)
        for kind, values in rows.items():
            insert(database, f"CUPTI_ACTIVITY_KIND_{kind}", values)
        insert(database, "NVTX_EVENTS", ranges)
        named = [(event, event["args"]["name"]) for event in events if event["name"] == "thread_name"]
        names = [(text(str(name)), 0, _thread(event)) for event, name in named if isinstance(event["tid"], int)]
        insert(database, "ThreadNames", names)
        insert(database, "StringIds", [(number, value) for value, number in texts.items()])
        insert(database, "TARGET_INFO_SESSION_START_TIME", [(header["baseTimeNanoseconds"], "", "")])
        gpus = [(gpu["id"], gpu["name"], gpu["totalGlobalMem"], gpu["numSms"]) for gpu in header["deviceProperties"]]
        insert(database, "TARGET_INFO_GPU", gpus)
        database.commit()


def insert(database: sqlite3.Connection, table: str, rows: list[tuple[Any, ...]]) -> None:
    """Add rows to a table."""
    if rows:
        database.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)


def _ns(time: float | str) -> int:
    whole, _, rest = f"{time:.3f}".partition(".")
    return int(whole) * 1000 + int(rest)


def _thread(event: dict[str, Any]) -> int:
    return (0x1 << 48) | (int(event["pid"]) << 24) | int(event["tid"])
