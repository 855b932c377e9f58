"""The measured tasks, each of which runs in a separate process and prints its result as JSON.

python -m tests.benchmarks.tasks TASK FILE [WORKERS]
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def ceiling(path: str) -> dict[str, Any]:
    """Decompress, cut and parse, and discard the result: no reader in Python can be faster."""
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
    """Read the file into columns on disk, started as the command line is."""
    from tracekit.cli.start_up import import_numpy, refuse_pandas

    refuse_pandas()
    import_numpy()
    from tracekit.trace import Trace

    return {"events": len(Trace.load(path, workers=int(workers)).events)}


def attribution(path: str) -> dict[str, Any]:
    """Attribute a trace whose columns are cached; the best of three."""
    from tracekit.engine import attribute
    from tracekit.trace import Trace

    events = len(Trace.load(path).events)
    times = []
    for _ in range(3):
        trace = Trace.load(path)
        assert len(trace.events) == events
        began, used = time.perf_counter(), time.process_time()
        attribute(trace)
        times.append((time.process_time() - used, time.perf_counter() - began))
    return {
        "events": events,
        "attribute_seconds": min(seconds for _, seconds in times),
        "attribute_cpu": min(cpu for cpu, _ in times),
    }


def hta(path: str) -> dict[str, Any]:
    """Load the same file with HTA."""
    from hta.trace_analysis import TraceAnalysis

    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / Path(path).name
        target.symlink_to(Path(path).absolute())
        TraceAnalysis(trace_files={0: str(target)}, trace_dir=folder)
    return {}


TASKS: dict[str, Callable[..., dict[str, Any]]] = {task.__name__: task for task in (ceiling, read, attribution, hta)}


def main(task: str, *arguments: str) -> None:
    """Run one task and print its result."""
    print(json.dumps(TASKS[task](*arguments)))


if __name__ == "__main__":
    main(*sys.argv[1:])
