"""The spans in which torch compiles, by the names that torch's own log and the profiler give them."""

from typing import Literal

SpanKind = Literal["frame", "backward", "cudagraph", "autotune"]

# In torch 2.6 the second of these spans encloses the first.
RECORDINGS = frozenset({"CUDAGraphNode.record", "CUDAGraphTreeManager.record_function"})
KINDS: dict[str, SpanKind] = {
    "dynamo": "frame",
    "entire_frame_compile": "frame",
    "entire_backward_compile": "backward",
    "CachingAutotuner.benchmark_all_configs": "autotune",
    "CachingAutotuner.coordinate_descent_tuning": "autotune",
    **dict.fromkeys(sorted(RECORDINGS), "cudagraph"),
    "cudagraphify.get_container": "cudagraph",
}
