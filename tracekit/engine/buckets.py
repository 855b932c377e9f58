"""The buckets of wall time and of host time: key, label, colour, explanation. Each has one entry; `WALL` and `HOST` are
in the order in which every face shows them."""

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracekit.base.intervals import Bools, Ints
from tracekit.base.pages import Page, paragraph
from tracekit.trace.roles import KERNEL, Roles

# What bounds a step that spends most of its time in a bucket. Every sentence about that is made of these, so that no
# two contradict each other.
Bound = Literal[
    "gpu", "communication", "copies", "gaps", "host", "syncs", "compiling", "data", "code loading", "profiler", "cpu",
    "unrecorded",
]  # fmt: skip
WALL = (
    "gpu_compute", "gpu_comm", "gpu_copy", "gpu_gap", "kernel_launch", "dispatch", "python", "unrecorded",
    "guards", "sync_stall", "compile", "dataload", "alloc", "module_load", "profiler", "cpu_compute",
)  # fmt: skip
HOST = (
    "dispatch", "python", "unrecorded", "guards", "kernel_launch", "sync", "compile", "dataload", "alloc",
    "module_load", "profiler", "cpu_compute",
)  # fmt: skip
ON_THE_GPU = ("gpu_compute", "gpu_comm", "gpu_copy")  # what a busy GPU does; of several at once, the first counts
MAY_WAIT = ("sync", "kernel_launch", "alloc")  # where the host may wait for the GPU: for its work, room in its queue


class Bucket(Struct, frozen=True):
    """Where time can go. `noun` is its name in a sentence; `colour` is a hex triplet readable on dark and light;
    `pattern`, a character that no other has, replaces it without colours; `bound` bounds a step that mostly goes there.

    Its page says what `belongs` to it, what is `excluded`, and the `precedence` of the rules, as docs/attribution.md
    defines them. In a bucket that `refills`, the host refills a queue that a sync drained; one that `can_be_delayed`
    waits while the profiler works or GPU code is loaded.
    """

    key: str
    label: str
    noun: str
    colour: str
    pattern: str
    bound: Bound
    meaning: str
    belongs: str
    excluded: str
    precedence: str
    refills: bool = False
    can_be_delayed: bool = False

    @property
    def page(self) -> Page:
        """What the bucket means, as every face shows it."""
        views = [name for name, keys in (("wall", WALL), ("host", HOST)) if self.key in keys]
        return Page(
            self.key,
            "bucket",
            self.meaning,
            (
                paragraph("What belongs to it", self.belongs),
                paragraph("What does not", self.excluded),
                paragraph("Which rule comes first", self.precedence),
                paragraph("Where it is shown", f"As “{self.label}”, in the {' and the '.join(views)} view."),
            ),
        )


_ALL = (
    Bucket("gpu_compute", "GPU compute", "GPU compute", "#3a9d5d", "█", "gpu",
        "a kernel that is not communication runs",
        belongs="A kernel that does not communicate runs, on any stream.",
        excluded="Copies and communication beside a kernel: they are hidden, and cost nothing then.",
        precedence="""First of all: whatever else the GPU or the host does, a running kernel counts. Several at
            once count once."""),
    Bucket("gpu_comm", "GPU communication", "communication", "#1f7a8c", "▓", "communication",
        "only communication kernels run",
        belongs="Kernels of collectives run (NCCL, RCCL and others, by their names), and no other kernel does.",
        excluded="""Communication that a kernel of another kind overlaps. Waiting for late ranks is in it: a
            collective's kernel runs from when its own rank arrives. On a CPU, collectives are the host's time.""",
        precedence="After `gpu_compute`, before `gpu_copy`."),
    Bucket("gpu_copy", "GPU copies", "copies", "#5fb3b3", "▒", "copies",
        "only copies and memsets run",
        belongs="Only copies and memsets run on the GPU.",
        excluded="""Copies beside kernels or communication; a call that waits for a copy, when the copy is over
            (`sync_stall`).""",
        precedence="After `gpu_compute` and `gpu_comm`."),
    Bucket("gpu_gap", "GPU gaps", "gaps on the GPU", "#9bc53d", "░", "gaps",
        "idle although work was queued",
        belongs="""The GPU idles although the work that ends the gap had been launched: before the gap began, or
            more than 30 µs ago.""",
        excluded="The first 30 µs after a launch returned in the gap: work is on its way then (`kernel_launch`).",
        precedence="Only while the GPU idles; before the state of the host, which no longer matters."),
    Bucket("kernel_launch", "kernel launch", "launches", "#f2a03d", "/", "host",
        "the host is submitting work, or submitted work is on its way to the GPU", can_be_delayed=True,
        belongs="""A call submits work (`cudaLaunchKernel`, `cudaGraphLaunch`, asynchronous copies and memsets),
            and the GPU idles; in the wall view also the 30 µs after it.""",
        excluded="""Launches beside a busy GPU, in the wall view. An asynchronous copy that blocks until it is done
            is a sync call.""",
        precedence="""In the wall view, the call that ends the gap decides, whatever encloses it. In the host view,
            the innermost event does, after `compile`."""),
    Bucket("dispatch", "dispatch", "dispatch", "#e4572e", "=", "host",
        "operators, autograd and compiled wrappers choose what to run", refills=True, can_be_delayed=True,
        belongs="""Operators, autograd or compiled wrappers run on the host, or calls of the runtime that neither
            launch, wait, nor allocate.""",
        excluded="""Python frames between operators (`python`). In a trace without a GPU, operators compute:
            `cpu_compute`.""",
        precedence="""After `compile`, `sync`, `kernel_launch`, `alloc`, `dataload` and `guards`. After a sync,
            what refills the queue is `sync_stall` for as long as the sync had waited."""),
    Bucket("python", "Python", "Python", "#4b7bec", "~", "host",
        "Python between operators", refills=True,
        belongs="The innermost event is a Python frame, or nothing was recorded between operators.",
        excluded="""Frames inside compiled code (`dispatch`), and Python that works for the data loader
            (`dataload`). Silence where nothing of the host was recorded at all is `unrecorded`.""",
        precedence="""Last of the host's states. Without Python stacks it is inferred from silence, and every
            report says so."""),
    Bucket("guards", "guards", "guards", "#8854d0", "?", "host",
        "Dynamo checks whether compiled code still fits", refills=True,
        belongs="Dynamo looks up compiled code and evaluates its guards (`TorchDynamo Cache Lookup`).",
        excluded="""Entering the compiled code afterwards, which is `dispatch`; compiling anew where a guard fails,
            which is `compile`.""",
        precedence="After `compile` and `dataload`; the innermost event decides."),
    Bucket("sync", "sync", "waiting in syncs", "#c0392b", "!", "syncs",
        "the host waits for the GPU",
        belongs="""Host view only: a call waits until the GPU has caught up (`…Synchronize`, synchronous copies,
            asynchronous ones that blocked).""",
        excluded="Waits that are no call of the runtime, such as those for a batch or a lock.",
        precedence="After `compile`; the innermost event decides."),
    Bucket("sync_stall", "sync stall", "sync stalls", "#c0392b", "¡", "syncs",
        "the GPU idles because the host waited for it",
        belongs="""Wall view only: the GPU idles because the host waits in a sync, or has not yet refilled the queue
            that a sync drained.""",
        excluded="""The part of a sync during which the GPU works: it costs nothing. Refilling for longer than the
            sync had waited counts as what the host does then.""",
        precedence="""Only while the GPU idles. Refilling takes over `python`, `unrecorded`, `dispatch`, `alloc`
            and `guards`, but no launch and no loading."""),
    Bucket("compile", "compile", "compilation", "#d6336c", "#", "compiling",
        "something is being compiled, recompiled or recorded",
        belongs="Dynamo, AOTAutograd, Inductor, the autotuner or the recorder of CUDA graphs is at work.",
        excluded="Guards that hold (`guards`), and loading of code by CUDA (`module_load`).",
        precedence="""First of the host's states: whatever happens inside of it counts as compiling. Means leave
            such steps out."""),
    Bucket("dataload", "data loading", "data loading", "#a0722a", "%", "data",
        "the loop waits for its next batch",
        belongs="""The main thread is inside `enumerate(DataLoader)…`, which PyTorch writes around each request for
            a batch.""",
        excluded="""Loading in other processes beside a busy GPU; loops that do not use PyTorch's DataLoader. Calls
            inside it that launch, wait or allocate keep their own state.""",
        precedence="After `compile`, `sync`, `kernel_launch` and `alloc`, before all else of the host."),
    Bucket("alloc", "allocator", "allocation", "#7f8c8d", "+", "host",
        "device memory is allocated or freed", refills=True, can_be_delayed=True,
        belongs="""A call allocates or frees memory of the device or pinned memory (`…Malloc…`, `…Free…`,
            `…HostAlloc`, `cuMem…`).""",
        excluded="PyTorch's caching allocator, which makes no call while its cache serves: that is `dispatch`.",
        precedence="After `compile`; the innermost event decides. After a sync, it may count as refilling."),
    Bucket("module_load", "module load", "loading GPU code", "#b8a04a", "&", "code loading",
        "CUDA loads code at its first use",
        belongs="""CUDA loads code of a kernel at its first use, as an event of the category `overhead` says, while
            the host dispatches, launches or allocates.""",
        excluded="Starting a library, whose calls are `dispatch` or `alloc`.",
        precedence="It takes the place of `dispatch`, `kernel_launch` and `alloc` at such moments."),
    Bucket("profiler", "profiler", "the profiler", "#aab2bd", "^", "profiler",
        "the profiler itself delays the host",
        belongs="""The profiler itself works, by an event of the category `overhead`, while the host dispatches,
            launches or allocates.""",
        excluded="What recording adds to each event, which no event shows.",
        precedence="""It takes the place of `dispatch`, `kernel_launch` and `alloc` at such moments, after
            `module_load`."""),
    Bucket("cpu_compute", "CPU compute", "CPU compute", "#3a9d5d", "■", "cpu",
        "operators compute on the CPU",
        belongs="In a trace without a GPU: operators compute on the CPU.",
        excluded="""Any operator in a trace with a GPU, even one that computes on the CPU: that is `dispatch`, and
            the finding `cpu_compute` tells of it.""",
        precedence="Where a GPU is in the trace, `dispatch` has its place."),
    Bucket("unrecorded", "not recorded", "unrecorded time", "#a89f91", "-", "unrecorded",
        "nothing of what the host did was recorded", refills=True,
        belongs="""Nothing of the host was recorded at the time: its process has neither operators nor Python
            frames, or its recording had not begun or had ended.""",
        excluded="Silence between two operators: that is `python`, by inference.",
        precedence="Last of the host's states, with `python`."),
)  # fmt: skip
BUCKETS = {bucket.key: bucket for bucket in _ALL}

BOUNDS: dict[Bound, tuple[str, ...]] = {
    bound: tuple(bucket.key for bucket in _ALL if bucket.bound == bound) for bound in get_args(Bound)
}
SLOW_HOST = BOUNDS["host"]  # what a slow host does while the GPU waits
# Of that, what submitting less work saves. Time in the allocator has another cause and cure: the rule `allocator`.
SUBMITTING = tuple(key for key in SLOW_HOST if key != "alloc")
CODES = {bucket.key: code for code, bucket in enumerate(_ALL)}
KEYS = tuple(BUCKETS)
REFILLS = [CODES[bucket.key] for bucket in _ALL if bucket.refills]
DELAYED = [CODES[bucket.key] for bucket in _ALL if bucket.can_be_delayed]


def by_bound(parts: Mapping[str, float]) -> dict[Bound, float]:
    """The time of the buckets by what bounds a step that is spent in them."""
    return {bound: sum(parts.get(key, 0.0) for key in keys) for bound, keys in BOUNDS.items()}


def of_activities(roles: Roles) -> NDArray[np.int8]:
    """The bucket that each of some GPU activities makes, as a code."""
    codes = np.full(len(roles.kind), CODES["gpu_copy"], np.int8)
    codes[roles.kind == KERNEL] = CODES["gpu_compute"]
    codes[roles.communication] = CODES["gpu_comm"]
    return codes


def among(states: Ints | NDArray[np.int8], codes: Sequence[int]) -> Bools:
    """Which states are among these. (This uses a table of all codes, because numpy's `isin` first looks for the
    range.)"""
    has_code = np.zeros(256, bool)
    has_code[list(codes)] = True
    is_among: Bools = has_code[states]
    return is_among
