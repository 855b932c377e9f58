"""What is measured, each in a process of its own: prints seconds, CPU seconds, peak memory and what it found as JSON.

python -m tests.benchmarks.tasks TASK FILE [WORKERS]
"""

import json
import resource
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any


def ceiling(path: str) -> dict[str, Any]:
    """Decompress, cut and parse, into nothing: no reader in Python can be faster."""
    import simdjson
    from isal import isal_zlib

    unpack, parser, size = isal_zlib.decompressobj(31), simdjson.Parser(), 0
    rest = b""
    with open(path, "rb") as file:
        while packed := file.read(256 << 10):
            piece = unpack.decompress(packed)
            size += len(piece)
            rest += piece
            start = rest.find(b'{"ph"') if rest[:1] != b"," else 1
            end = rest.rfind(b'},\n{"ph"')
            if 0 <= start < end:
                parser.parse(b"[" + rest[start : end + 1] + b"]")
                rest = rest[end + 1 :]
    return {"bytes": size}


def read(path: str, workers: str = "2") -> dict[str, Any]:
    """Columns on disk, links and health included."""
    from tracekit.trace import Trace

    trace = Trace.load(path, workers=int(workers))
    found = {"bytes": trace.entry.told["bytes_read"] if trace.entry is not None else 0}
    found["read_peak"] = peak()
    _ = trace.links, trace.health
    return {**found, "events": len(trace.events)}


def attribution(path: str, workers: str = "2") -> dict[str, Any]:
    """From columns that are there to the attribution: the best of three, then once more to count what it allocates."""
    from tracekit.engine import attribute
    from tracekit.trace import Trace

    Trace.load(path, workers=int(workers))
    times, resident = [], 0
    for turn in range(4):
        trace = Trace.load(path)
        events = len(trace.events)
        if turn == 3:
            tracemalloc.start()
        before, began = _anonymous(), time.perf_counter()
        attribute(trace)
        times.append(time.perf_counter() - began)
        resident = resident or _anonymous() - before
    return {
        "events": events,
        "attribute_seconds": min(times[:3]),
        "bytes_an_event": tracemalloc.get_traced_memory()[1] / events,
        "resident_an_event": resident / events,
    }


def hta(path: str) -> dict[str, Any]:
    """HTA loads the same file."""
    from hta.trace_analysis import TraceAnalysis

    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / Path(path).name
        target.symlink_to(Path(path).absolute())
        TraceAnalysis(trace_files={0: str(target)}, trace_dir=folder)
    return {}


def peak() -> int:
    """The most memory this process had at any time, bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _anonymous() -> int:
    """The most memory so far that is no file's, bytes (Linux; elsewhere the peak)."""
    try:
        status = Path("/proc/self/status").read_text()
        fields = dict(line.split(":", 1) for line in status.splitlines())
        return (int(fields["VmHWM"].split()[0]) - int(fields["RssFile"].split()[0])) * 1024
    except (OSError, KeyError):
        return peak()


TASKS: dict[str, Callable[..., dict[str, Any]]] = {task.__name__: task for task in (ceiling, read, attribution, hta)}


def main(task: str, *arguments: str) -> None:
    """Run one task and say what it took."""
    began = time.perf_counter()
    found = TASKS[task](*arguments)
    seconds = time.perf_counter() - began
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(usage.ru_utime + usage.ru_stime for usage in used)
    memory = {"peak": used[0].ru_maxrss * 1024, "helper_peak": used[1].ru_maxrss * 1024}
    print(json.dumps({**found, "seconds": seconds, "cpu": cpu, **memory}))


if __name__ == "__main__":
    main(*sys.argv[1:])
