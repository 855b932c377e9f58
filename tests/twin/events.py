"""Which events count (§1, §2): the events of a file and their roles, and which call submitted what."""

from __future__ import annotations

import gzip
import json
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

# §2, cat: today's names, and those that older writers used.
ALIASES = {
    "operator": "cpu_op",
    "runtime": "cuda_runtime",
    "memcpy": "gpu_memcpy",
    "memset": "gpu_memset",
    "user": "gpu_user_annotation",
}
GPU_CATS = {"kernel", "gpu_memcpy", "gpu_memset"}
OTHER_DEVICE_CATS = {"mtia_ccp_events", "hpu_op"}
RUNTIME_CATS = {
    "cuda_runtime",
    "cuda_driver",
    "xpu_runtime",
    "xpu_driver",
    "hip_runtime",
    "privateuse1_runtime",
}

# §2, names. "…" in the contract is any text.
SUFFIXES = re.compile(r"(_v[0-9]+|_ptsz|_ptds)+$")
LAUNCH = re.compile(
    r"(cuda|hip|cu)(LaunchKernel.*|LaunchCooperativeKernel.*|GraphLaunch|Memcpy.*Async|Memset.*)"
    r"|hip(ExtLaunchKernel|ExtModuleLaunchKernel|ModuleLaunchKernel|LaunchByPtr)",
    re.DOTALL,
)
COPY_ASYNC = re.compile(r"(cuda|hip|cu)Memcpy.*Async", re.DOTALL)
SYNC = re.compile(
    r"(cuda|hip)((Stream|Device|Event)Synchronize|Memcpy(2D|3D)?((To|From)(Symbol|Array))?|MemcpyPeer)"
    r"|hipMemcpy(HtoD|DtoH|DtoD|WithStream)"
    r"|cu(Stream|Ctx|Event)Synchronize"
    r"|cuMemcpy(HtoD|DtoH|DtoD|2D|3D|Peer)?"
)
ALLOC = re.compile(
    r"(cuda|hip)(Malloc|MallocAsync|Free|FreeAsync|MallocManaged|MallocHost|FreeHost|HostAlloc|HostRegister"
    r"|HostUnregister|MallocFromPoolAsync)"
    r"|cuMem(Alloc|Free|Create|Map|Unmap|Release|SetAccess|Address).*",
    re.DOTALL,
)
STEP = re.compile(r"ProfilerStep#(\d+)")
ANNOTATION_PREFIXES = ("ProfilerStep#", "enumerate(DataLoader)", "Optimizer.")
COMPILE_NAMES = {
    "dynamo",
    "entire_frame_compile",
    "entire_backward_compile",
    "CachingAutotuner.benchmark_all_configs",
    "CachingAutotuner.coordinate_descent_tuning",
    "CUDAGraphNode.record",
    "CUDAGraphTreeManager.record_function",
    "cudagraphify.get_container",
}
COMMUNICATION_STARTS = ("nccl", "rccl", "oneccl", "mscclpp")
COMMUNICATION_HOLDS = (
    *("ep::internode", "ep::intranode", "nvshmem"),
    *("multimem_all_reduce", "multimem_all_gather", "multimem_reduce_scatter"),
    *("one_shot_all_reduce", "two_shot_all_reduce", "cross_device_reduce", "quickreduce"),
)
BASE32 = set("abcdefghijklmnopqrstuvwxyz234567")  # what Inductor names its files with
LOADS_CODE = {"Lazy Function Loading", "Runtime Triggered Module Loading"}
EVALUATE = "autograd::engine::evaluate_function"


@dataclass(slots=True, eq=False)
class Event:
    """One "X" event that plays a role in §2."""

    kind: str  # runtime, op, annotation, python, gpu, overhead
    cat: str
    name: str
    thread: tuple[str, str]
    start: int
    end: int
    correlation: Decimal | None
    row: tuple[Any, ...] = ()  # as written (§2)
    nests: bool = False  # has no cat: a file of 2019
    launch: bool = False
    sync: bool = False
    alloc: bool = False
    compile: bool = False
    dataload: bool = False
    compiled_code: bool = False
    bucket: str = ""  # of a GPU activity: the bucket of §6 while it runs

    @property
    def lasts(self) -> bool:
        """Zero-length events cover nothing and bound nothing (§1)."""
        return self.end > self.start

    @property
    def counts_on_helper(self) -> bool:
        """On a helper, Python frames do not count, nor do annotations that are no compile spans (§5)."""
        return self.kind in ("runtime", "op") or (self.kind == "annotation" and self.compile)


def load_events(path: str | Path) -> list[dict[str, Any]]:
    """The events of a file, with the decimal text of every time preserved."""
    data = Path(path).read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    top = json.loads(data.decode("utf-8", errors="replace"), parse_float=Decimal, parse_int=int, strict=False)
    events = top if isinstance(top, list) else top.get("traceEvents", [])
    return [event for event in events if isinstance(event, dict)]


def nanoseconds(value: object) -> int | None:
    """Microseconds as they are written, in quotes or not, rounded half to even to whole nanoseconds (§1)."""
    if isinstance(value, str) and re.fullmatch(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", value):
        value = Decimal(value)
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or not Decimal(value).is_finite():
        return None
    return round(Fraction(value) * 1000)  # a Fraction is exact, and Python rounds it half to even


def correlation_of(raw: dict[str, Any]) -> Decimal | None:
    """`args.correlation` as a number, even if it is written as text; 0 and −1 link nothing (§2)."""
    args = raw.get("args")
    value = args.get("correlation") if isinstance(args, dict) else None
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]+", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    return None if value in (0, -1) else Decimal(value)


def row_of(raw: dict[str, Any]) -> tuple[Any, ...]:
    """`pid`, `tid` and `args.context` as written: 7 is not "7", and absent equals absent (§2)."""
    args = raw.get("args")
    return raw.get("pid"), raw.get("tid"), args.get("context") if isinstance(args, dict) else None


def text(value: object) -> str:
    """A pid or tid as text."""
    return "" if value is None else str(value)


def classify(raw: dict[str, Any]) -> Event | None:
    """What an event is by itself (§2); None if it plays no role."""
    if raw.get("ph") != "X":
        return None
    start = nanoseconds(raw.get("ts"))
    if start is None:
        return None
    length = max(nanoseconds(raw.get("dur")) or 0, 0)
    name = text(raw.get("name"))
    cat = raw.get("cat")
    if cat is None:  # files of 2019
        cat = {"CPU functions": "cpu_op", "CUDA functions": "kernel"}.get(text(raw.get("pid")), "")
    cat = str(cat).lower()
    cat = ALIASES.get(cat, cat)
    event = Event(
        "",
        cat,
        name,
        (text(raw.get("pid")), text(raw.get("tid"))),
        start,
        start + length,
        correlation_of(raw),
        row_of(raw),
        raw.get("cat") is None,
    )

    if cat in GPU_CATS:
        event.kind = "gpu"
        if cat != "kernel":
            event.bucket = "gpu_copy"
        elif communicates(name.lower()):
            event.bucket = "gpu_comm"
        else:
            event.bucket = "gpu_compute"
    elif cat in RUNTIME_CATS:
        event.kind = "runtime"
        call = SUFFIXES.sub("", name)
        event.launch = LAUNCH.fullmatch(call) is not None
        event.sync = SYNC.fullmatch(call) is not None  # blocking copies are added once links are known
        event.alloc = ALLOC.fullmatch(call) is not None
    elif cat == "user_annotation" or (cat == "cpu_op" and name.startswith(ANNOTATION_PREFIXES)):
        event.kind = "annotation"
    elif cat == "cpu_op":
        event.kind = "op"
    elif cat == "python_function":
        event.kind = "python"
    elif cat == "overhead":
        event.kind = "overhead"
    elif cat in OTHER_DEVICE_CATS:
        event.kind = "other_device"
    else:
        return None

    if cat in ("cpu_op", "user_annotation"):
        event.compile = name in COMPILE_NAMES or name.endswith(" (dynamo_timed)")
    event.dataload = event.kind == "annotation" and name.startswith("enumerate(DataLoader)")
    event.compiled_code = name.startswith(("## Call CompiledFxGraph", "CompiledFunction")) or (
        event.kind == "python" and ("torchinductor" in name or is_generated(name))
    )
    return event


def communicates(kernel: str) -> bool:
    """Whether a kernel talks to other GPUs, as its name in lower case has it (§2)."""
    return kernel.startswith(COMMUNICATION_STARTS) or any(part in kernel for part in COMMUNICATION_HOLDS)


def is_generated(frame: str) -> bool:
    """Whether a frame's file is named as Inductor names what it generates (§4.7)."""
    for end in (match.start() for match in re.finditer(r"\.py\(", frame)):
        folders = re.split(r"[/\\]", frame[:end])
        folder, stem = folders[-2:] if len(folders) > 1 else ("", "")
        if len(folder) == 2 and stem[:3] == f"c{folder}" and len(stem) >= 23 and set(stem) <= BASE32:
            return True
    return False


def calls_by_id(hosts: list[Event]) -> dict[Decimal, list[Event]]:
    """The runtime calls that carry each id, the first to start (then to end) in front."""
    calls = defaultdict(list)
    for event in hosts:
        if event.kind == "runtime" and event.correlation is not None:
            calls[event.correlation].append(event)
    return {correlation: sorted(those, key=call_order) for correlation, those in calls.items()}


def is_early(activity: Event, calls: dict[Decimal, list[Event]]) -> bool:
    """Whether it starts before its call does (§2)."""
    those = calls.get(activity.correlation) if activity.correlation is not None else None
    return those is not None and activity.start < those[0].start


def believable(gpu: list[Event], calls: dict[Decimal, list[Event]]) -> list[Event]:
    """The activities that have a part in anything, none of which outlasts a whole later one of its stream (§2)."""
    cut = {}
    by_start = sorted(gpu, key=lambda e: e.start)
    starts = [e.start for e in by_start]
    for e in gpu:
        for f in by_start[bisect_right(starts, e.start) : bisect_left(starts, e.end)]:  # no other begins within it
            same = e.correlation is not None and e.correlation == f.correlation
            if f.row != e.row or e.nests or (same and not is_early(e, calls)):
                continue
            if e.start < f.start < f.end <= e.end:
                cut[e] = min(cut.get(e, f.start), f.start)
    for e, end in cut.items():  # all were compared as written
        e.end = end
    return [e for e in gpu if not (is_early(e, calls) and calls[e.correlation][0].start - e.start > 1_000_000)]


def has_two_clocks(gpu: list[Event], calls: dict[Decimal, list[Event]]) -> bool:
    """Whether most activities that share an id with calls lie before the first of these, or long after it (§6)."""
    sharing = [e for e in gpu if e.correlation in calls]
    astray = [e for e in sharing if is_early(e, calls) or e.start - calls[e.correlation][0].end > 60_000_000_000]
    return 2 * len(astray) > len(sharing)


def link(gpu: list[Event], calls: dict[Decimal, list[Event]]) -> dict[Event, Event]:
    """The launch of every GPU activity that is linked (§2); marks the blocking copies on the way."""
    copies = defaultdict(list)
    linked = [e for e in gpu if e.correlation in calls and not is_early(e, calls)]
    for activity in linked:
        leaves_alone = activity.name.startswith(("Memcpy DtoD", "Memcpy PtoP", "CopyDeviceToDevice", "CopyPeerToPeer"))
        if activity.name.startswith("Memcpy ") and not activity.name.startswith("Memcpy HtoH"):
            leaves_alone |= "Pinned" in activity.name
        if activity.cat == "gpu_memcpy" and not leaves_alone:
            copies[activity.correlation].append(activity)
    for correlation, those in copies.items():
        last = max(copy.end for copy in those)
        for call in calls[correlation]:
            if COPY_ASYNC.fullmatch(SUFFIXES.sub("", call.name)) and last <= call.end:
                call.sync = True
    return {a: min(calls[a.correlation], key=call_order) for a in linked}


def call_order(call: Event) -> tuple[int, int, bool]:
    """First the call that starts first, then the one that ends first; if both are equal, a sync call."""
    return (call.start, call.end, not call.sync)
