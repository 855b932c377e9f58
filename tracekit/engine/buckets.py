"""The buckets of wall time and of host time: key, label, colour, explanation. Each has one entry; `WALL` and `HOST` are
in the order in which every face shows them."""

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracekit.base.intervals import Bools, Ints
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

    In a bucket that `refills`, the host refills a queue that a sync drained; one that `can_be_delayed` waits while the
    profiler works or GPU code is loaded.
    """

    key: str
    label: str
    noun: str
    colour: str
    pattern: str
    bound: Bound
    meaning: str
    refills: bool = False
    can_be_delayed: bool = False


_ALL = (
    Bucket("gpu_compute", "GPU compute", "GPU compute", "#3a9d5d", "█", "gpu",
        "a kernel that is not communication runs"),
    Bucket("gpu_comm", "GPU communication", "communication", "#1f7a8c", "▓", "communication",
        "only communication kernels run"),
    Bucket("gpu_copy", "GPU copies", "copies", "#5fb3b3", "▒", "copies",
        "only copies and memsets run"),
    Bucket("gpu_gap", "GPU gaps", "gaps on the GPU", "#9bc53d", "░", "gaps",
        "idle although work was queued"),
    Bucket("kernel_launch", "kernel launch", "launches", "#f2a03d", "/", "host",
        "the host is submitting work, or submitted work is on its way to the GPU", can_be_delayed=True),
    Bucket("dispatch", "dispatch", "dispatch", "#e4572e", "=", "host",
        "operators, autograd and compiled wrappers choose what to run", refills=True, can_be_delayed=True),
    Bucket("python", "Python", "Python", "#4b7bec", "~", "host",
        "Python between operators", refills=True),
    Bucket("guards", "guards", "guards", "#8854d0", "?", "host",
        "Dynamo checks whether compiled code still fits", refills=True),
    Bucket("sync", "sync", "waiting in syncs", "#c0392b", "!", "syncs",
        "the host waits for the GPU"),
    Bucket("sync_stall", "sync stall", "sync stalls", "#c0392b", "¡", "syncs",
        "the GPU idles because the host waited for it"),
    Bucket("compile", "compile", "compilation", "#d6336c", "#", "compiling",
        "something is being compiled, recompiled or recorded"),
    Bucket("dataload", "data loading", "data loading", "#a0722a", "%", "data",
        "the loop waits for its next batch"),
    Bucket("alloc", "allocator", "allocation", "#7f8c8d", "+", "host",
        "device memory is allocated or freed", refills=True, can_be_delayed=True),
    Bucket("module_load", "module load", "loading GPU code", "#b8a04a", "&", "code loading",
        "CUDA loads code at its first use"),
    Bucket("profiler", "profiler", "the profiler", "#aab2bd", "^", "profiler",
        "the profiler itself delays the host"),
    Bucket("cpu_compute", "CPU compute", "CPU compute", "#3a9d5d", "■", "cpu",
        "operators compute on the CPU"),
    Bucket("unrecorded", "not recorded", "unrecorded time", "#a89f91", "-", "unrecorded",
        "nothing of what the host did was recorded", refills=True),
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
