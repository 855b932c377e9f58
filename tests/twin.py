"""The brute-force twin of the attribution: the contract written down a second time, pointwise and slowly.

Time is cut at every moment at which anything can change, and the rules are asked of each piece. Nothing here
is clever, so that it can be read next to the contract; the § in the comments are its sections. It shares no
code with the package: where the two differ, one of them is wrong.
"""

from __future__ import annotations

import gzip
import json
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

WALL = [
    *("gpu_compute", "gpu_comm", "gpu_copy", "gpu_gap", "kernel_launch", "dispatch", "python", "guards"),
    *("sync_stall", "compile", "dataload", "alloc", "module_load", "profiler", "cpu_compute"),
]
HOST = [
    *("dispatch", "python", "guards", "kernel_launch", "sync", "compile", "dataload", "alloc"),
    *("module_load", "profiler", "cpu_compute"),
]

LATE_NS = 30_000  # §6: a launch that is this long over and whose work does not run waits for the GPU

# §2, cat: the names of today, and what older writers called them.
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

KIND_ORDER = {"runtime": 2, "op": 1, "python": 0, "annotation": 0}  # §4, equal intervals


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
        """A helper's Python frame does not count, nor an annotation that is no compile span (§5)."""
        return self.kind in ("runtime", "op") or (self.kind == "annotation" and self.compile)


@dataclass(slots=True)
class Step:
    """A step: issued over [s, e), its work begins at `begin` and is done at `done` (§7)."""

    number: int
    s: int
    e: int
    begin: int = 0
    done: int = 0


@dataclass(slots=True)
class Piece:
    """A time in which nothing changes."""

    start: int
    end: int
    main: str  # §4: the main thread's state
    helper: str | None  # §5: the state that a helper thread gives
    helper_event: bool  # §5: an event that counts covers this time on some helper thread
    overhead: str | None  # §5: the state that tool overhead makes of dispatch, kernel_launch and alloc
    main_sync: Event | None  # the innermost event of the main thread, if that is a sync call
    helper_sync: Event | None  # the same of the helper thread that gives the state
    busy: str | None  # §6: the bucket of a busy GPU
    host: str = ""
    host_sync: Event | None = None  # Y of §6: the sync call that gives the host state


# ------------------------------------------------------------------------------------------------ reading


def load_events(path: str | Path) -> list[dict[str, Any]]:
    """The events of a file, with the decimal text of every time kept."""
    data = Path(path).read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    top = json.loads(data.decode("utf-8", errors="replace"), parse_float=Decimal, parse_int=int, strict=False)
    events = top if isinstance(top, list) else top.get("traceEvents", [])
    return [event for event in events if isinstance(event, dict)]


def nanoseconds(value: object) -> int | None:
    """Microseconds as they are written, in whole nanoseconds, half to even (§1)."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or not Decimal(value).is_finite():
        return None
    return round(Fraction(value) * 1000)  # a Fraction is exact, and Python rounds it half to even


def correlation_of(raw: dict[str, Any]) -> Decimal | None:
    """`args.correlation`, as a number also where it is written as text; 0 and −1 link nothing (§2)."""
    args = raw.get("args")
    value = args.get("correlation") if isinstance(args, dict) else None
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]+", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    return None if value in (0, -1) else Decimal(value)


def text(value: object) -> str:
    """A pid or tid as text."""
    return "" if value is None else str(value)


def classify(raw: dict[str, Any]) -> Event | None:
    """What an event is by itself (§2); None where it plays no role."""
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
    for end in (found.start() for found in re.finditer(r"\.py\(", frame)):
        folders = re.split(r"[/\\]", frame[:end])
        folder, stem = folders[-2:] if len(folders) > 1 else ("", "")
        if len(folder) == 2 and stem[:3] == f"c{folder}" and len(stem) >= 23 and set(stem) <= BASE32:
            return True
    return False


# ------------------------------------------------------------------------------------------- §3 threads


def find_main_thread(hosts: list[Event]) -> tuple[str, str] | None:
    """The main thread; of equals the one whose (pid, tid) comes first as text."""

    def most(events: list[Event]) -> tuple[str, str] | None:
        counts = Counter(event.thread for event in events)
        return min(counts, key=lambda thread: (-counts[thread], thread)) if counts else None

    steps = [e for e in hosts if e.kind == "annotation" and STEP.fullmatch(e.name)]
    if steps:
        return most(steps)

    evaluations = defaultdict(list)
    for event in hosts:
        if event.name.startswith(EVALUATE):
            evaluations[event.thread].append(event)

    def starts_outside(event: Event) -> bool:
        return not any(v.start <= event.start < v.end for v in evaluations[event.thread])

    return (
        most([e for e in hosts if e.launch and starts_outside(e)])
        or most([e for e in hosts if e.kind == "op" and starts_outside(e)])
        or most(hosts)
    )


def find_helpers(hosts: list[Event], main: tuple[str, str]) -> list[tuple[str, str]]:
    """The helper threads, in order of thread id: as numbers, textual ids after them."""
    found = {
        e.thread
        for e in hosts
        if e.thread[0] == main[0] and e.thread != main and (e.launch or e.name.startswith(EVALUATE))
    }

    def order(thread: tuple[str, str]) -> tuple[bool, int, str]:
        number = re.fullmatch(r"-?[0-9]+", thread[1])
        return (number is None, int(thread[1]) if number else 0, thread[1])

    return sorted(found, key=order)


# ---------------------------------------------------------------------------------- §4 one thread at t


def state_of(live: set[Event], o: str) -> tuple[str, Event | None]:
    """The state of a thread of which the events in `live` cover t, and the sync call that gives it."""
    innermost = None
    inner = [e for e in live if e.kind != "annotation"]
    if inner:
        innermost = max(inner, key=lambda e: (e.start, -e.end, KIND_ORDER[e.kind], e.name, e.sync))
    if any(e.compile for e in live):  # 1
        return "compile", None
    if innermost is not None:  # 2
        if innermost.sync:
            return "sync", innermost
        if innermost.launch:
            return "kernel_launch", None
        if innermost.alloc:
            return "alloc", None
    if any(e.dataload for e in live):  # 3
        return "dataload", None
    if innermost is None:  # 4
        return "python", None
    if innermost.name == "TorchDynamo Cache Lookup":  # 5
        return "guards", None
    if innermost.kind == "runtime":  # 6
        return "dispatch", None
    if innermost.kind == "python":  # 7
        if innermost.name.startswith("<built-in method run_backward"):
            return "engine", None
        if any(e.compiled_code for e in live):
            return o, None
        return "python", None
    return o, None  # 8


# ------------------------------------------------------------------------------------- cutting time up


def cut_into_pieces(
    window: tuple[int, int],
    bounds: list[int],
    main: list[Event],
    helpers: list[list[Event]],
    gpu: list[Event],
    overhead: list[Event],
    o: str,
) -> list[Piece]:
    """The window, cut wherever an event starts or ends and at `bounds`; what is live in each piece, asked."""
    rows = [main, *helpers, gpu, overhead]
    gpu_row, overhead_row = len(rows) - 2, len(rows) - 1
    changes: dict[int, list[tuple[int, bool, Event]]] = defaultdict(list)
    for row, events in enumerate(rows):
        for event in events:
            if event.lasts:
                changes[event.start].append((row, True, event))
                changes[event.end].append((row, False, event))
    times = sorted({*changes, *bounds, *window})

    live: list[set[Event]] = [set() for _ in rows]
    states: list[tuple[str, Event | None]] = [("python", None) for _ in rows]
    counts = [False for _ in rows]
    busy = tool = None
    pieces = []
    for time, following in zip(times, [*times[1:], None], strict=True):
        changed = set()
        for row, starts, event in changes.get(time, ()):
            (live[row].add if starts else live[row].remove)(event)
            changed.add(row)
        for row in changed:  # what has not changed is as it was
            if row == gpu_row:  # §6: communication and copies count only where they are exposed
                running = {e.bucket for e in live[row]}
                busy = next((b for b in ("gpu_compute", "gpu_comm", "gpu_copy") if b in running), None)
            elif row == overhead_row:
                names = {e.name for e in live[row]}
                tool = ("module_load" if names & LOADS_CODE else "profiler") if names else None
            else:
                states[row] = state_of(live[row], o)
                counts[row] = any(e.counts_on_helper for e in live[row])
        if following is None or not window[0] <= time < window[1]:
            continue
        given, given_sync = None, None
        for row in range(1, gpu_row):  # §5: the first helper thread that has one
            if counts[row] and states[row][0] not in ("python", "engine"):
                given, given_sync = states[row]
                break
        pieces.append(
            Piece(
                time,
                following,
                states[0][0],
                given,
                any(counts[1:gpu_row]),
                tool,
                states[0][1],
                given_sync,
                busy,
            )
        )
    return pieces


# ---------------------------------------------------------------------------------------- §5 host view


def fill_host_view(pieces: list[Piece], o: str) -> None:
    """The host state of every piece."""
    for stretch in group(pieces, lambda p: p.main in ("python", "engine")):
        helped = [p for p in stretch if p.helper_event]
        first, last = (helped[0].start, helped[-1].end) if helped else (0, 0)
        for p in stretch:
            if p.helper is not None:
                p.host, p.host_sync = p.helper, p.helper_sync
            elif first <= p.start < last or p.main == "engine":
                p.host = o
            else:
                p.host = "python"
    for p in pieces:
        if p.main not in ("python", "engine"):
            p.host, p.host_sync = p.main, p.main_sync
        if p.overhead is not None and p.host in ("dispatch", "kernel_launch", "alloc"):
            p.host = p.overhead


def group(pieces: list[Piece], wanted: Any) -> list[list[Piece]]:
    """The maximal runs of neighbours that are wanted (the pieces have no holes between them)."""
    runs: list[list[Piece]] = []
    running = False
    for p in pieces:
        if wanted(p):
            if running:
                runs[-1].append(p)
            else:
                runs.append([p])
        running = wanted(p)
    return runs


# ---------------------------------------------------------------------------------------- §6 wall view


def wall_pieces(pieces: list[Piece], gpu: list[Event], launch_of: dict[Event, Event]) -> list[tuple[int, int, str]]:
    """The wall view of the window, as (start, end, bucket)."""
    if not gpu:
        return [(p.start, p.end, "sync_stall" if p.host == "sync" else p.host) for p in pieces]
    out = [(p.start, p.end, p.busy) for p in pieces if p.busy is not None]
    starting = defaultdict(list)
    for activity in gpu:
        if activity.lasts:
            starting[activity.start].append(activity)
    for gap in group(pieces, lambda p: p.busy is None):
        a, b = gap[0].start, gap[-1].end
        enders = starting[b]
        known = [launch_of[activity] for activity in enders if activity in launch_of]
        launch = min(known, key=call_order) if known else None  # L
        y = gap[0].host_sync  # Y
        refilled = y.end + (a - y.start) if y is not None and enders else a
        cuts = {refilled}
        if launch is not None:
            cuts |= {launch.start, launch.end, launch.end + LATE_NS}
        for p in gap:
            times = sorted({p.start, p.end, *(c for c in cuts if p.start < c < p.end)})
            for t, end in pairwise(times):
                out.append((t, end, idle_bucket(t, a, launch, refilled, p.host)))
    return sorted(out)


def idle_bucket(t: int, a: int, launch: Event | None, refilled: int, host: str) -> str:
    """Why the GPU idles at t, in a gap that began at a."""
    if launch is not None:
        if t >= launch.end:  # 1
            return "gpu_gap" if launch.end <= a or t >= launch.end + LATE_NS else "kernel_launch"
        if launch.start <= t and not launch.sync:  # 2
            return host if host in ("module_load", "profiler") else "kernel_launch"
    if host == "sync":  # 3
        return "sync_stall"
    if t < refilled and host in ("python", "dispatch", "alloc", "guards"):
        return "sync_stall"
    return host


def call_order(call: Event) -> tuple[int, int, bool]:
    """First the call that starts first, then ends first; of calls that are alike in that, a sync call."""
    return (call.start, call.end, not call.sync)


# -------------------------------------------------------------------------------------------- §7 steps


def find_steps(
    hosts: list[Event], main: tuple[str, str] | None, gpu: list[Event], launch_of: dict[Event, Event]
) -> list[Step]:
    """The steps in order, each with its begin and its end."""
    steps = []
    for event in hosts:
        number = STEP.fullmatch(event.name)
        if event.thread == main and event.kind == "annotation" and number:
            steps.append(Step(int(number[1]), event.start, event.end))
    bare = not steps
    if bare:  # the whole trace is step 0; zero-length events bound nothing
        lasting = [e for e in [*hosts, *gpu] if e.lasts]
        if not lasting:
            return []
        steps = [Step(0, min(e.start for e in lasting), max(e.end for e in lasting))]
    steps.sort(key=lambda step: (step.s, step.e, step.number))

    first = steps[0].s
    backlog = []
    if not bare:
        numbers = [e.correlation for e in hosts if e.kind == "runtime" and e.correlation is not None]
        for activity in gpu:
            call = launch_of.get(activity)
            if call is not None:
                queued_before = call.start < first
            else:
                queued_before = activity.correlation is not None and all(
                    activity.correlation < number for number in numbers
                )
            if queued_before and activity.lasts:
                backlog.append(activity.end)
    done = max(backlog, default=first)  # F_0

    for i, step in enumerate(steps):
        start, end = step_time(steps, i)
        work = [a.end for a, call in launch_of.items() if a.lasts and start <= call.start < end]
        step.begin = max(step.s, done)
        step.done = done = max(step.e, done, *work)
    return steps


def step_time(steps: list[Step], i: int) -> tuple[int, int]:
    """[S_i, S_(i+1)), for the last step [S_i, E_i)."""
    return steps[i].s, steps[i + 1].s if i + 1 < len(steps) else steps[i].e


# ----------------------------------------------------------------------------------------- the document


def document(events: list[dict[str, Any]]) -> dict[str, Any]:
    """What §9 says of one variant, from the events of its file."""
    known = [event for event in map(classify, events) if event is not None]
    gpu = [e for e in known if e.kind == "gpu"]
    overhead = [e for e in known if e.kind == "overhead"]
    all_hosts = [e for e in known if e.kind in ("runtime", "op", "annotation", "python")]
    main = find_main_thread(all_hosts)
    # §2: only host events of the main thread's process take part.
    hosts = [e for e in all_hosts if main is not None and e.thread[0] == main[0]]
    helpers = find_helpers(hosts, main) if main is not None else []

    launch_of = link(hosts, gpu)
    steps = find_steps(hosts, main, gpu, launch_of)

    o = "dispatch" if gpu else "cpu_compute"  # §4
    by_thread = defaultdict(list)
    for event in hosts:
        by_thread[event.thread].append(event)
    driving = [by_thread[thread] for thread in [main, *helpers]] if main is not None else [[]]

    cannot: dict[str, str] = {}
    if not hosts:
        cannot = dict.fromkeys(("wall", "host"), "the file holds no host event")
    elif not any(e.lasts for e in [*hosts, *gpu]):
        cannot = dict.fromkeys(("wall", "host"), "nothing in the file lasts")
    elif (reason := no_wall_view(known, steps, gpu, launch_of)) is not None:
        cannot = {"wall": reason}

    host: list[tuple[int, int, str]] = []
    wall: list[tuple[int, int, str]] = []
    if "host" not in cannot:
        window = (steps[0].s, steps[-1].done)
        bounds = [t for step in steps for t in (step.s, step.e, step.begin, step.done)]
        pieces = cut_into_pieces(window, bounds, driving[0], driving[1:], gpu, overhead, o)
        fill_host_view(pieces, o)
        host = [(p.start, p.end, p.host) for p in pieces]
        wall = wall_pieces(pieces, gpu, launch_of) if "wall" not in cannot else []

    compiles = [e for row in driving for e in row if e.compile and e.lasts]
    host_starts, wall_starts = [p[0] for p in host], [p[0] for p in wall]
    rows = []
    for i, step in enumerate(steps):
        unknown = bool(gpu) and not step_is_known(hosts, step_time(steps, i), launch_of)
        rows.append(
            {
                "step": step.number,
                "start_ns": step.begin,
                "wall_ns": step.done - step.begin,
                "host_start_ns": step.s,
                "host_ns": step.e - step.s,
                "steady": not any(
                    max(c.start, start) < min(c.end, end)
                    for c in compiles
                    for start, end in ((step.s, step.e), (step.begin, step.done))
                ),
                "wall": None if "wall" in cannot or unknown else add_up(wall, wall_starts, step.begin, step.done, WALL),
                "host": None if "host" in cannot else add_up(host, host_starts, step.s, step.e, HOST),
            }
        )
    return {
        "device": "gpu" if gpu else "cpu",
        "cannot_answer": cannot,
        "steps": rows,
        "main_thread": main,
        "helpers": helpers,
    }


def link(hosts: list[Event], gpu: list[Event]) -> dict[Event, Event]:
    """The launch of every GPU activity that is linked (§2); marks the blocking copies on the way."""
    calls, copies = defaultdict(list), defaultdict(list)
    for event in hosts:
        if event.kind == "runtime" and event.correlation is not None:
            calls[event.correlation].append(event)
    for activity in gpu:
        if activity.cat == "gpu_memcpy" and activity.correlation is not None:
            copies[activity.correlation].append(activity)
    for correlation, linked in copies.items():
        last = max(copy.end for copy in linked)
        for call in calls[correlation]:
            if COPY_ASYNC.fullmatch(SUFFIXES.sub("", call.name)) and last <= call.end:
                call.sync = True
    return {a: min(calls[a.correlation], key=call_order) for a in gpu if calls.get(a.correlation)}


def no_wall_view(known: list[Event], steps: list[Step], gpu: list[Event], launch_of: dict[Event, Event]) -> str | None:
    """Why no wall view of the trace can be given, if that is so (§6, last part)."""
    launching = {e.thread[0] for e in known if e.launch}
    if not gpu and launching:
        return "launch calls, and no GPU activity"
    if not gpu and any(e.kind == "other_device" for e in known):
        return "another kind of device"
    if len(launching) > 1:
        return "several processes make launch calls"
    if gpu and not any(
        step_time(steps, i)[0] <= call.start < step_time(steps, i)[1]
        for call in launch_of.values()
        for i in range(len(steps))
    ):
        return "the launch of no GPU activity is in a step"
    return None


def step_is_known(hosts: list[Event], time: tuple[int, int], launch_of: dict[Event, Event]) -> bool:
    """False where launch calls start in the step's time and the launch of no GPU activity does (§6)."""
    submits = any(e.launch and time[0] <= e.start < time[1] for e in hosts)
    return not submits or any(time[0] <= call.start < time[1] for call in launch_of.values())


def add_up(
    pieces: list[tuple[int, int, str]], starts: list[int], begin: int, end: int, buckets: list[str]
) -> dict[str, int]:
    """The time in each bucket between two moments at which the pieces are cut."""
    total = dict.fromkeys(buckets, 0)
    for start, stop, bucket in pieces[bisect_left(starts, begin) : bisect_left(starts, end)]:
        total[bucket] += stop - start
    return total
