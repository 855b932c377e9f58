"""Small traces as the profiler writes them, for property tests: lists of event dicts.

Times come from a coarse grid of few positions, so that events touch, coincide and nest by chance; a
nanosecond or a fraction of one is added here and there, and 30 µs is a frequent distance, since the contract
turns on it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

MAIN = (100, 100)
AUTOGRAD = (100, 9)
SECOND = (100, 10)  # before 9 as text, after it as a number
THIRD = (100, "worker")
OTHER = (200, 200)
THREADS = [MAIN, MAIN, MAIN, MAIN, AUTOGRAD, AUTOGRAD, SECOND, THIRD]

OPERATORS = [
    "aten::mm",
    "aten::add",
    "autograd::engine::evaluate_function: MmBackward0",
    "autograd::engine::evaluate_function: CompiledFunctionBackward",
    "TorchDynamo Cache Lookup",
    "Torch-Compiled Region: 0/0",
    "## Call CompiledFxGraph abc ##",
    "CompiledFunction",
    "Optimizer.step#Adam.step",
    "Optimizer.zero_grad#Adam.zero_grad",
    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
    "dynamo",
    "entire_frame_compile",
    "compile_inner (dynamo_timed)",
    "CachingAutotuner.benchmark_all_configs",
    "CachingAutotuner.coordinate_descent_tuning",
    "nccl:all_reduce",
]
ANNOTATIONS = [
    "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
    "Optimizer.step#SGD.step",
    "my region",
    "backward._backward_impl (dynamo_timed)",
    "entire_backward_compile",
    "CUDAGraphNode.record",
    "CUDAGraphTreeManager.record_function",
    "CUDAGraphTreeManager.record_function (2)",  # is none
    "## Call CompiledFxGraph def ##",
    "TorchDynamo Cache Lookup",
    "autograd::engine::evaluate_function: annotated",
]
FRAMES = [
    "train.py(10): step",
    "torch/nn/modules/module.py(1): _call_impl",
    "<built-in method run_backward of torch._C._EngineBase object at 0x7f>",
    "/tmp/torchinductor_me/ab/cabc.py(30): call",
    "/tmp/pass/inductor/7r/c7r2lb574illqeptjflwv2zdklurlcr3z.py(107): call",
    "w7/cw7vj52l34hrj32sjriah5qg.py(2): call",
    "w8/cw8vj52l34hrj32sjriah5qg.py(2): call",  # these are not as Inductor names its files
    "w7/cw6vj52l34hrj32sjriah5qg.py(2): call",
    "ab/cabc.py(30): call",
    "<built-in method mm of type object at 0x7f>",
    "TorchDynamo Cache Lookup",
    "dynamo",
]
LAUNCHES = [
    "cudaLaunchKernel",
    "cudaLaunchKernel",
    "cudaLaunchKernelExC_v11060",
    "cuLaunchKernel",
    "cuLaunchKernelEx_ptsz",
    "cudaLaunchCooperativeKernel",
    "cudaGraphLaunch_v10000",
    "cudaMemcpyAsync",
    "cudaMemcpyAsync_ptsz_v7000",
    "cudaMemcpyPeerAsync",
    "cuMemcpyHtoDAsync_v2",
    "cudaMemsetAsync",
    "cudaMemset",
    "hipLaunchKernel",
    "hipExtModuleLaunchKernel",
    "hipModuleLaunchKernel",
    "hipLaunchByPtr",
    "hipMemcpyAsync",
]
COPIES = ["cudaMemcpyAsync", "cudaMemcpyAsync_v3020", "hipMemcpy2DAsync", "cuMemcpyDtoHAsync_v2_ptsz"]
SYNCS = [
    "cudaStreamSynchronize",
    "cudaStreamSynchronize_v3020",
    "cudaDeviceSynchronize",
    "cudaEventSynchronize",
    "cudaMemcpy",
    "cudaMemcpy2DToArray_v3020_ptds",
    "hipMemcpyWithStream",
    "hipMemcpyDtoH",
    "cuCtxSynchronize",
    "cuMemcpyDtoH_v2",
]
ALLOCATIONS = ["cudaMalloc", "cudaFree_v3020", "hipMallocAsync", "cudaHostAlloc", "cuMemMap", "cuMemAlloc_v2"]
# Names that are nearly something, and must not be taken for it.
OTHERS = [
    "cudaStreamIsCapturing",
    "cudaEventRecord",
    "cudaStreamWaitEvent",
    "cudaEventQuery",
    "cudaMallocPitch",
    "cudaMemcpyAsyncOr",
    "hipMemcpyDtoHOr",
    "cuGraphInstantiate",
    "cudaDeviceSynchronize_v",
    "xcudaLaunchKernel",
    "unknown",
]
KERNELS = [
    "gemm",
    "void at::native::add",
    "ncclDevKernel_AllReduce",
    "NCCLKernel",
    "rcclKernel",
    "oneccl_reduce",
    "my_nccl",
    "mscclpp_kernel",
    "void deep_ep::intranode::dispatch<8>",
    "NVSHMEM_barrier",
    "void vllm::cross_device_reduce_2stage<half>",
    "multimem_all_gather",
    "deep::internode",  # holds it
    "multimem_all",
    "Memcpy",
]
OVERHEAD = [
    "Lazy Function Loading",
    "Runtime Triggered Module Loading",
    "Buffer Flush",
    "Activity Buffer Request",
]
OLD = {
    "cpu_op": "Operator",
    "cuda_runtime": "Runtime",
    "kernel": "Kernel",
    "gpu_memcpy": "Memcpy",
    "gpu_memset": "Memset",
}
DELAYS = [0, 0, 1, 5_000, 10_000, 29_999, 30_000, 30_001, 45_000]


@dataclass(frozen=True)
class Clock:
    """How a trace writes its times: what is added to each, how coarse the grid, how fine the digits."""

    base: Decimal  # µs
    grid: int  # ns
    fine: bool  # nanoseconds beside the grid
    below: bool  # and digits below the nanosecond

    def write(self, ns: int, below: Decimal = Decimal(0), *, base: bool = True) -> int | Decimal:
        """A time or a length as it stands in the file, in µs."""
        value = max((Decimal(ns) + below) / 1000, Decimal(0)) + (self.base if base else 0)
        if self.fine and not below:
            return value.quantize(Decimal("0.001"))  # as Kineto writes it
        return value if self.fine or value != value.to_integral_value() else int(value)


@st.composite
def clocks(draw: st.DrawFn) -> Clock:
    base = draw(st.sampled_from(["0", "0", "0", "1623212756351000", "1790857026000123.456"]))
    fine = draw(st.booleans())
    return Clock(
        Decimal(base),
        draw(st.sampled_from([10_000, 10_000, 5_000, 1_000])),
        fine,
        fine and draw(st.booleans()),
    )


@st.composite
def moments(draw: st.DrawFn, clock: Clock) -> int:
    """A moment in ns, most often on the grid."""
    ns = draw(st.integers(0, 20)) * clock.grid
    if clock.fine:
        ns += draw(st.sampled_from([0, 0, 0, 0, 1, 2, 999, 30_000, 30_001]))
    return ns


@st.composite
def spans(draw: st.DrawFn, clock: Clock) -> tuple[int, int]:
    """Start and end in ns; zero-length now and then."""
    start, other = draw(moments(clock)), draw(moments(clock))
    return min(start, other), max(start, other)


@st.composite
def events(
    draw: st.DrawFn,
    clock: Clock,
    cat: str | None,
    name: str,
    thread: tuple[Any, Any],
    span: tuple[int, int],
    correlation: int | None = None,
) -> dict[str, Any]:
    """One "X" event as a dict."""
    start, end = span
    below = st.just(Decimal(0))
    if clock.below:
        below = st.sampled_from([Decimal(x) for x in ("0", "0", "0.5", "0.49", "0.51", "0.25", "-0.5")])
    event: dict[str, Any] = {"ph": "X"}
    if cat is not None:
        event["cat"] = cat
    event |= {"name": name, "pid": thread[0], "tid": thread[1]}
    event["ts"] = clock.write(start, draw(below))
    length = clock.write(end - start, draw(below), base=False)
    if end == start and length <= 0:
        # What is not there, or negative, lasts no time.
        odd = draw(st.sampled_from(["zero", "zero", "missing", "negative"]))
        if odd != "missing":
            event["dur"] = -5 if odd == "negative" else 0
    else:
        event["dur"] = length
    if correlation is not None:
        event["args"] = {"correlation": correlation, "External id": 1}
    elif draw(st.booleans()):
        event["args"] = {"Ev Idx": 3}
    return event


@st.composite
def step_annotations(draw: st.DrawFn, clock: Clock) -> list[dict[str, Any]]:
    """`ProfilerStep#N`: none, a sequence (adjacent, or with time between), or whatever."""
    kind = draw(st.sampled_from(["none", "sequence", "sequence", "sequence", "any"]))
    annotations = []
    if kind == "sequence":
        cuts = sorted(draw(st.lists(moments(clock), min_size=2, max_size=5)))
        if draw(st.integers(0, 2)):  # most steps are about all there is
            cuts[0], cuts[-1] = min(cuts[0], clock.grid), max(cuts[-1], 20 * clock.grid)
        first = draw(st.integers(0, 9))
        for i, (start, end) in enumerate(pairwise(cuts)):
            rest = draw(st.sampled_from([0, 0, 0, clock.grid]))
            annotations.append((first + i, MAIN, (start, max(start, end - rest))))
    elif kind == "any":
        for _ in range(draw(st.integers(1, 3))):
            thread = draw(st.sampled_from([MAIN, MAIN, MAIN, AUTOGRAD, OTHER]))
            annotations.append((draw(st.integers(0, 3)), thread, draw(spans(clock))))
    cat = draw(st.sampled_from(["user_annotation", "user_annotation", "cpu_op", "Operator"]))
    written = [draw(events(clock, cat, f"ProfilerStep#{n}", thread, span)) for n, thread, span in annotations]
    if draw(st.integers(0, 9)) == 0:  # neither is a step
        cat, name = draw(st.sampled_from([("gpu_user_annotation", "ProfilerStep#7"), (cat, "ProfilerStep#a")]))
        written.append(draw(events(clock, cat, name, MAIN, draw(spans(clock)))))
    return written


@st.composite
def host_events(draw: st.DrawFn, clock: Clock, foreign: bool) -> dict[str, Any]:
    """Any event of a host thread that submits nothing."""
    thread = OTHER if foreign and draw(st.integers(0, 4)) == 0 else draw(st.sampled_from(THREADS))
    cat, names = draw(
        st.sampled_from(
            [
                ("cpu_op", OPERATORS),
                ("cpu_op", OPERATORS),
                ("user_annotation", ANNOTATIONS),
                ("python_function", FRAMES),
                ("python_function", FRAMES),
                ("cuda_runtime", SYNCS),
                ("cuda_runtime", SYNCS),
                ("cuda_runtime", ALLOCATIONS),
                ("cuda_runtime", OTHERS),
                ("cuda_driver", ALLOCATIONS),
                ("cpu_op", ["cudaLaunchKernel", "cudaStreamSynchronize"]),  # an operator of that name
            ]
        )
    )
    correlation = draw(st.sampled_from([None, 0, -1, 4, 5, 6])) if cat.startswith("cuda") else None
    return draw(events(clock, cat, draw(st.sampled_from(names)), thread, draw(spans(clock)), correlation))


@st.composite
def activities(draw: st.DrawFn, clock: Clock, span: tuple[int, int], correlation: int | None) -> dict[str, Any]:
    """A GPU activity."""
    cat = draw(st.sampled_from(["kernel", "kernel", "kernel", "gpu_memcpy", "gpu_memset"]))
    name = draw(st.sampled_from(KERNELS))
    row = draw(st.sampled_from([(0, 7), (0, 7), (0, 20), (1, 7), (0, "stream 7")]))
    return draw(events(clock, cat, name, row, span, correlation))


@st.composite
def submissions(draw: st.DrawFn, clock: Clock, correlation: int, *, foreign: bool) -> list[dict[str, Any]]:
    """A launch call, the work it submits, and now and then more calls of the same correlation."""
    thread = OTHER if foreign else draw(st.sampled_from([MAIN, MAIN, MAIN, AUTOGRAD, SECOND, THIRD]))
    copy = draw(st.integers(0, 3)) == 0
    cat = draw(st.sampled_from(["cuda_runtime", "cuda_runtime", "cuda_driver", "hip_runtime", "xpu_runtime"]))
    name = draw(st.sampled_from(COPIES if copy else LAUNCHES))
    start, end = draw(spans(clock))
    if draw(st.booleans()):  # a short call is the usual one
        end = start + draw(st.sampled_from([0, clock.grid, clock.grid]))
    made = [draw(events(clock, cat, name, thread, (start, end), correlation))]
    if draw(st.integers(0, 5)) == 0:
        more = draw(st.sampled_from([*LAUNCHES, *OTHERS, *SYNCS]))
        span = draw(st.sampled_from([(start, end), draw(spans(clock))]))
        made.append(draw(events(clock, "cuda_runtime", more, thread, span, correlation)))
    at = end
    for _ in range(draw(st.sampled_from([0, 1, 1, 1, 1, 2, 3]))):
        at = draw(st.sampled_from([at, end, start])) + draw(st.sampled_from(DELAYS))
        length = draw(st.integers(0, 6)) * clock.grid
        activity = draw(activities(clock, (at, at + length), correlation))
        if copy and draw(st.booleans()):
            activity |= {"cat": "gpu_memcpy", "name": "Memcpy DtoH (Device -> Pageable)"}
        made.append(activity)
        at += length
    return made


@st.composite
def backwards(draw: st.DrawFn, clock: Clock, correlation: int) -> list[dict[str, Any]]:
    """The main thread waits for the autograd engine, or is silent, while a helper runs the nodes."""
    thread = draw(st.sampled_from([AUTOGRAD, AUTOGRAD, SECOND, THIRD]))
    made = []
    if draw(st.booleans()):
        made.append(draw(events(clock, "python_function", FRAMES[2], MAIN, draw(spans(clock)))))
    for _ in range(draw(st.integers(1, 3))):
        name = "autograd::engine::evaluate_function: AddmmBackward0"
        start, end = draw(spans(clock))
        made.append(draw(events(clock, "cpu_op", name, thread, (start, end))))
        if draw(st.booleans()):
            at = draw(st.sampled_from([start, (start + end) // 2]))
            call = (at, at + clock.grid)
            made.append(draw(events(clock, "cuda_driver", "cuLaunchKernel", thread, call, correlation)))
            length = draw(st.integers(0, 6)) * clock.grid
            at += draw(st.sampled_from([clock.grid, *DELAYS]))
            made.append(draw(activities(clock, (at, at + length), correlation)))
    return made


@st.composite
def refills(draw: st.DrawFn, clock: Clock, correlation: int) -> list[dict[str, Any]]:
    """A sync that drains the queue, some host work, and the launch of what ends the gap."""
    thread = draw(st.sampled_from([MAIN, MAIN, MAIN, AUTOGRAD]))
    grid, cells = clock.grid, st.integers(0, 3)
    start = draw(st.integers(0, 8)) * grid
    wait = start + draw(cells) * grid
    drained = wait + draw(cells) * grid
    back = drained + draw(cells) * grid
    again = back + draw(cells) * grid
    late = draw(st.sampled_from(DELAYS))
    name = draw(st.sampled_from(SYNCS))
    return [
        draw(events(clock, "cuda_runtime", "cudaLaunchKernel", MAIN, (start, start + grid), correlation)),
        draw(activities(clock, (start, drained), correlation)),
        draw(events(clock, "cuda_runtime", name, thread, (wait, back), None)),
        draw(events(clock, "cpu_op", draw(st.sampled_from(OPERATORS[:6])), thread, (back, again))),
        draw(events(clock, "cuda_runtime", "cudaLaunchKernel", thread, (again, again + grid), correlation + 1)),
        draw(activities(clock, (again + late, again + late + 3 * grid), correlation + 1)),
    ]


@st.composite
def noise(draw: st.DrawFn, clock: Clock) -> dict[str, Any]:
    """What takes no part: other phases, other categories, "X" without a `ts`."""
    event = draw(
        events(
            clock,
            draw(
                st.sampled_from(
                    ["kernel", "cuda_sync", "gpu_user_annotation", "Trace", "User", "cpu_instant_event", None]
                )
            ),
            draw(st.sampled_from(["gemm", "ProfilerStep#1", "cudaLaunchKernel", "PyTorch Profiler (0)"])),
            draw(st.sampled_from([MAIN, (0, 7), ("Spans", "PyTorch Profiler"), ("", "")])),
            draw(spans(clock)),
            draw(st.sampled_from([None, 4, 5])),
        )
    )
    if event.get("cat") == "kernel" or draw(st.booleans()):
        event["ph"] = draw(st.sampled_from(["i", "M", "s", "f", "B", "C", "X"]))
        if event["ph"] == "X":
            del event["ts"]
        else:
            event.pop("dur", None)
    return event


@st.composite
def kineto_traces(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A trace as Kineto writes it, any schema since 2021."""
    clock = draw(clocks())
    foreign = draw(st.integers(0, 4)) == 0  # other processes in the file
    found = draw(step_annotations(clock))
    found += draw(st.lists(host_events(clock, foreign), max_size=12))
    work: list[dict[str, Any]] = []
    if draw(st.integers(0, 2)) == 0:
        work += draw(backwards(clock, 40))
    if draw(st.integers(0, 2)) == 0:
        work += draw(refills(clock, 50))
    for i in range(draw(st.sampled_from([0, 1, 2, 3, 4, 5, 6]))):
        other_launches = foreign and draw(st.integers(0, 9)) == 0
        # Correlations grow with time in real traces, but nothing may depend on it.
        correlation = draw(st.sampled_from([4 + i, 4 + i, 4 + i, 4 + i, 4 + i, 4, 0, -1]))
        work += draw(submissions(clock, correlation, foreign=other_launches))
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):  # work of calls before the profile, or of none
        correlation = draw(st.sampled_from([1, 2, 3, 4, 99, 0, -1, None]))
        work.append(draw(activities(clock, draw(spans(clock)), correlation)))
    gpu = draw(st.sampled_from(["yes"] * 12 + ["calls only", "neither", "neither", "rows only"]))
    on_gpu = ("kernel", "gpu_memcpy", "gpu_memset")
    if gpu == "neither":
        work = []
    elif gpu == "calls only":
        work = [e for e in work if e["cat"] not in on_gpu]
    elif gpu == "rows only":
        found, work = [], [e for e in work if e["cat"] in on_gpu]
    found += work
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        name = draw(st.sampled_from(OVERHEAD))
        found.append(draw(events(clock, "overhead", name, (-1, 0), draw(spans(clock)))))
    if draw(st.integers(0, 19)) == 0:
        cat = draw(st.sampled_from(["hpu_op", "mtia_ccp_events"]))
        found.append(draw(events(clock, cat, "hpu", (0, 7), draw(spans(clock)))))
    found += draw(st.lists(noise(clock), max_size=3))

    spelling = draw(st.sampled_from(["new"] * 6 + ["old", "upper"]))
    for event in found:
        if spelling == "old":
            event["cat"] = OLD.get(event.get("cat", ""), event.get("cat"))
        elif spelling == "upper" and "cat" in event:
            event["cat"] = event["cat"].upper()
        if event.get("cat", "") is None:
            del event["cat"]
    if draw(st.integers(0, 9)) == 0:  # ids are compared as text
        for event in found:
            event["tid"] = str(event["tid"])
    return draw(st.permutations(found))


@st.composite
def old_traces(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A trace of 2019: no categories, the pid says what a row is."""
    clock = draw(clocks())
    found = []
    for _ in range(draw(st.integers(1, 8))):
        pid = draw(st.sampled_from(["CPU functions", "CPU functions", "CUDA functions", "other"]))
        name = draw(st.sampled_from([*OPERATORS, *KERNELS, "ProfilerStep#1"]))
        tid = draw(st.sampled_from([0, 1, "stream 7"]))
        found.append(draw(events(clock, None, name, (pid, tid), draw(spans(clock)))))
    return found


def traces() -> st.SearchStrategy[list[dict[str, Any]]]:
    """Small traces of every kind, their events in any order."""
    return st.one_of(*[kineto_traces()] * 9, old_traces())


def as_json(events: list[dict[str, Any]], *, bare: bool = False) -> bytes:
    """The file: every decimal as it is, a line per event; `bare` is a list at top level (2019)."""

    def write(value: object) -> str:
        if isinstance(value, Decimal):
            return format(value, "f")
        if isinstance(value, dict):
            return "{" + ", ".join(f"{json.dumps(k)}: {write(v)}" for k, v in value.items()) + "}"
        if isinstance(value, list | tuple):
            return "[" + ", ".join(map(write, value)) + "]"
        return json.dumps(value)

    rows = "[\n" + ",\n".join(map(write, events)) + "\n]"
    return (rows if bare else '{"schemaVersion": 1,\n"traceEvents": ' + rows + "}\n").encode()
