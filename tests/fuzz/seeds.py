"""What targets begin with: small traces that tests make, and large ones cut down to a few events of each kind. They are
read where they are, and those that are not here are left out.
"""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import small
from real import ROOT, TRACES

# What means something in a trace.
WORDS = (
    *("ProfilerStep#1", "ProfilerStep#-1", "kernel", "cpu_op", "cuda_runtime", "gpu_memcpy", "user_annotation", "ac2g"),
    *("python_function", "cudaLaunchKernel", "cudaGraphLaunch", "cudaDeviceSynchronize", "cudaEventSynchronize"),
    *("aten::mm", "nccl:all_reduce", "ncclDevKernel_AllReduce", "Memcpy HtoD (Pageable -> Device)", "thread_name"),
    *(
        "Torch-Compiled Region: 0/0",
        "## Call CompiledFxGraph f ##",
        "autograd::engine::evaluate_function: X",
        "[memory]",
    ),
    *("train.py(12): step", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "Optimizer.step#SGD.step"),
    *("correlation", "External id", "stream", "Python id", "Python parent id", "Sequence number", "Fwd thread id"),
    *("Collective name", "Process Group Name", "In msg nelems", "dtype", "Total Allocated", "Bytes", "Device Id"),
    *(
        "wait_on_stream",
        "Input Dims",
        "Input type",
        "grid",
        "block",
        "blocks per SM",
        "graph node id",
        "process_labels",
    ),
    *("distributedInfo", "deviceProperties", "baseTimeNanoseconds", "traceEvents", "ph", "ts", "dur", "args", "X", "s"),
)
_OF_A_KIND = 8  # events
_MOST_BYTES = 1 << 20  # of a file that is cut down


def traces() -> Iterator[dict[str, Any]]:
    """Traces as documents of JSON."""
    with TemporaryDirectory() as folder:
        yield json.loads(small.training(Path(folder, "trace.json")).read_bytes())
    for path in trace_files():
        packed = path.read_bytes()
        with suppress(ValueError):  # some are damaged
            document = json.loads(gzip.decompress(packed) if path.suffix == ".gz" else packed, strict=False)
            yield cut_down(document if isinstance(document, dict) else {"traceEvents": document})


def trace_files() -> list[Path]:
    """The files that traces are cut from: of the tests, of the samples, and real ones."""
    folders = (
        (ROOT / "tests" / "data", "*.json.gz"),
        (ROOT / "sample_traces", "**/*.json.gz"),
        (TRACES.parent / "cases", "*/*.json"),
        (TRACES, "*.json.gz"),
    )
    found = (path for folder, pattern in folders for path in sorted(folder.glob(pattern)))
    return [path for path in found if path.stat().st_size <= _MOST_BYTES and not path.name.endswith(".lines.json.gz")]


def cut_down(document: dict[str, Any]) -> dict[str, Any]:
    """The same trace with the first few events of each kind."""
    seen: Counter[Any] = Counter()

    def is_wanted(event: Any) -> bool:
        kind = (event.get("ph"), event.get("cat")) if isinstance(event, dict) else ()
        seen[kind] += 1
        return seen[kind] <= _OF_A_KIND

    return {**document, "traceEvents": [event for event in document["traceEvents"] if is_wanted(event)]}
