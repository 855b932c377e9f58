"""Names in traces that both readers and captures, which have no NumPy, must know: calls, categories, compile spans."""

import re
from typing import Literal

GPU_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset")
RUNTIME_CATEGORIES = ("cuda_runtime", "cuda_driver", "xpu_runtime", "xpu_driver", "hip_runtime", "privateuse1_runtime")

# An annotation around each wait that a capture adds to a training: the user's code is not to blame for its time.
OWN_WAIT = "tracekit.synchronize"

CALL_SUFFIX = r"(?:_v\d+|_ptsz|_ptds)"  # by which a runtime distinguishes versions of a call
KERNEL_LAUNCH = (  # calls that submit kernels and graphs
    r"(?:cuda|hip|cu)(?:LaunchKernel.*|LaunchCooperativeKernel.*|GraphLaunch)"
    r"|hip(?:ExtLaunchKernel|ExtModuleLaunchKernel|ModuleLaunchKernel|LaunchByPtr)"
)
SpanKind = Literal["frame", "backward", "cudagraph", "autotune"]
# In torch 2.6 the second of these spans encloses the first.
RECORDINGS = frozenset({"CUDAGraphNode.record", "CUDAGraphTreeManager.record_function"})
PREPARATION = "cudagraphify.get_container"  # of a graph for sizes that are new: it is recorded if they come again
COMPILE_SPANS: dict[str, SpanKind] = {  # as torch's own log and the profiler name them
    "dynamo": "frame",
    "entire_frame_compile": "frame",
    "entire_backward_compile": "backward",
    "CachingAutotuner.benchmark_all_configs": "autotune",
    "CachingAutotuner.coordinate_descent_tuning": "autotune",
    **dict.fromkeys(sorted(RECORDINGS), "cudagraph"),
    PREPARATION: "cudagraph",
}


def call(pattern: str, flags: int = re.DOTALL) -> re.Pattern[str]:
    """The pattern of a runtime call's name, for any version of the call."""
    return re.compile(f"(?:{pattern}){CALL_SUFFIX}*", flags)
