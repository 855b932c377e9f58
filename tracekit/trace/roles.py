"""What each event is: a kernel, a launch call, a sync call, a compile span, … known by category and name alone; and
how many of these each track holds, which answers most questions about a whole trace.

The names below are the definition; a role is one entry. GPU time is never taken from a stream number or a name.
"""

import re
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracekit.base.intervals import Bools, Ints, Rows
from tracekit.vocabulary import event_names
from tracekit.vocabulary.code_owner import INDUCTOR_FILE

if TYPE_CHECKING:
    from tracekit.trace.model import Trace

KERNEL, COPY, SET, RUNTIME, OPERATOR, USER, PYTHON, OVERHEAD, OTHER_DEVICE, OTHER = range(10)
_KINDS = {
    **dict(zip(event_names.GPU_CATEGORIES, (KERNEL, COPY, SET), strict=True)),
    **dict.fromkeys(event_names.RUNTIME_CATEGORIES, RUNTIME),
    "cpu_op": OPERATOR,
    "user_annotation": USER,
    "python_function": PYTHON,
    "overhead": OVERHEAD,
    "mtia_ccp_events": OTHER_DEVICE,
    "hpu_op": OTHER_DEVICE,
}

_SUFFIX = re.compile(f"{event_names.CALL_SUFFIX}+$")

LAUNCH = re.compile(rf"{event_names.KERNEL_LAUNCH}|(?:cuda|hip|cu)(?:Memcpy.*Async|Memset.*)", re.DOTALL)
GRAPH_LAUNCH = re.compile(r"(?:cuda|hip|cu)GraphLaunch")
ASYNC_COPY = re.compile(r"(?:cuda|hip|cu)Memcpy.*Async", re.DOTALL)
# Copies that leave the host alone, even if one had ended when a host that was interrupted returned from its call.
NEVER_BLOCKS = re.compile(r"(?:Memcpy (?:DtoD|PtoP|(?!HtoH).*Pinned)|CopyDeviceToDevice|CopyPeerToPeer).*", re.DOTALL)
SYNC = re.compile(
    r"(?:cuda|hip)(?:(?:Stream|Device|Event)Synchronize|Memcpy(?:2D|3D)?(?:(?:To|From)(?:Symbol|Array))?|MemcpyPeer)"
    r"|hipMemcpy(?:HtoD|DtoH|DtoD|WithStream)"
    r"|cu(?:Stream|Ctx|Event)Synchronize|cuMemcpy(?:HtoD|DtoH|DtoD|2D|3D|Peer)?"
)
DEVICE_SYNC = re.compile(r"(?:cuda|hip)DeviceSynchronize|cuCtxSynchronize")  # for all that the GPU has to do
FREE = re.compile(r"(?:cuda|hip)Free(?:Host)?")
ALLOC = re.compile(
    r"(?:cuda|hip)(?:Malloc(?:Async|Managed|Host|FromPoolAsync)?|Free(?:Async|Host)?|Host(?:Alloc|Register|Unregister))"
    r"|cuMem(?:Alloc|Free|Create|Map|Unmap|Release|SetAccess|Address).*",
    re.DOTALL,
)
ANNOTATION = re.compile(r"(?:ProfilerStep#|enumerate\(DataLoader\)|Optimizer\.).*", re.DOTALL)
STEP = re.compile(r"ProfilerStep#(\d{1,18})")  # a longer number does not count steps, and fits no column
OWN_WAIT = re.compile(re.escape(event_names.OWN_WAIT))
OPTIMIZER_STEP = re.compile(r"Optimizer\.step#.*", re.DOTALL)
DATALOAD = re.compile(r"enumerate\(DataLoader\).*", re.DOTALL)
COMPILE = re.compile("|".join(map(re.escape, event_names.COMPILE_SPANS)) + r"|.* \(dynamo_timed\)", re.DOTALL)
GUARDS = re.compile(r"TorchDynamo Cache Lookup")
COMPILED_CODE = re.compile(r"(?:## Call CompiledFxGraph|CompiledFunction).*", re.DOTALL)
COMPILED_REGION = re.compile(rf"Torch-Compiled Region.*|{COMPILED_CODE.pattern}", re.DOTALL)  # or what calls it
INDUCTOR_FRAME = re.compile(rf".*torchinductor.*|{INDUCTOR_FILE}\(.*", re.DOTALL)
BACKWARD_FRAME = re.compile(r"<built-in method run_backward.*", re.DOTALL)
BACKWARD_NODE = re.compile(r"autograd::engine::evaluate_function.*", re.DOTALL)
COMMUNICATION = re.compile(
    r"(?:nccl|rccl|oneccl|mscclpp).*"
    r"|.*(?:ep::internode|ep::intranode"  # DeepEP
    r"|nvshmem|multimem_all_reduce|multimem_all_gather|multimem_reduce_scatter"
    r"|one_shot_all_reduce|two_shot_all_reduce|cross_device_reduce|quickreduce).*",
    re.DOTALL | re.IGNORECASE,
)
MODULE_LOAD = re.compile(r"Lazy Function Loading|Runtime Triggered Module Loading")
_CELLS = 1 << 20  # up to this many counters are cheaper than sorting


class Roles(Struct, frozen=True, dict=True):
    """Whether some events, or some kinds of event, have a role; every array has one entry for each of them."""

    kind: NDArray[np.int8]
    _matches: Callable[[re.Pattern[str]], Bools]

    def named(self, pattern: re.Pattern[str], runtime: bool = False) -> Bools:
        """The events whose whole name matches; version suffixes of runtime calls are ignored."""
        if runtime:
            return self._matches(event_names.call(pattern.pattern, pattern.flags))
        return self._matches(pattern)

    @cached_property
    def gpu(self) -> Bools:
        """GPU activity: kernels, copies, sets."""
        mask: Bools = self.kind <= SET
        return mask

    @cached_property
    def communication(self) -> Bools:
        """Kernels that talk to other GPUs."""
        mask: Bools = (self.kind == KERNEL) & self.named(COMMUNICATION)
        return mask

    @cached_property
    def runtime(self) -> Bools:
        """Calls of the runtime or the driver."""
        mask: Bools = self.kind == RUNTIME
        return mask

    @cached_property
    def annotation(self) -> Bools:
        """Spans that a program or a library named, which do no work themselves."""
        mask: Bools = (self.kind == USER) | ((self.kind == OPERATOR) & self.named(ANNOTATION))
        return mask

    @cached_property
    def operator(self) -> Bools:
        """Operators, without the annotations that older versions of the profiler record as such."""
        mask: Bools = (self.kind == OPERATOR) & ~self.annotation
        return mask

    @cached_property
    def host(self) -> Bools:
        """Everything that happens on a host thread."""
        mask: Bools = (self.kind >= RUNTIME) & (self.kind <= PYTHON)
        return mask

    @cached_property
    def launch(self) -> Bools:
        """Runtime calls that submit work."""
        return self.runtime & self.named(LAUNCH, runtime=True)

    @cached_property
    def graph_launch(self) -> Bools:
        """Runtime calls that replay a CUDA graph."""
        return self.runtime & self.named(GRAPH_LAUNCH, runtime=True)

    @cached_property
    def sync_by_name(self) -> Bools:
        """Runtime calls that always block; copies that turn out to block are added in `links`."""
        return self.runtime & self.named(SYNC, runtime=True)

    @cached_property
    def frees(self) -> Bools:
        """Runtime calls that free memory, for which they wait until the GPU has done all of its work."""
        return self.runtime & self.named(FREE, runtime=True)

    @cached_property
    def alloc(self) -> Bools:
        """Runtime calls of the allocator."""
        return self.runtime & self.named(ALLOC, runtime=True)

    @cached_property
    def step(self) -> Bools:
        """`ProfilerStep#N` annotations."""
        return self.annotation & self.named(STEP)

    @cached_property
    def own_wait(self) -> Bools:
        """Spans around the capture's own syncs: their time is real, but the user's code is not to blame for it."""
        mask: Bools = (self.kind == USER) & self.named(OWN_WAIT)
        return mask

    @cached_property
    def compile_span(self) -> Bools:
        """Spans inside which something is compiled."""
        mask: Bools = ((self.kind == OPERATOR) | (self.kind == USER)) & self.named(COMPILE)
        return mask

    @cached_property
    def backward_node(self) -> Bools:
        """The autograd engine evaluating a node."""
        return self.host & self.named(BACKWARD_NODE)


class Labels:
    """The roles of categories and names, computed once for each name and then spread over its events."""

    def __init__(self, categories: list[str], names: list[str]) -> None:
        self.kinds = np.array([_KINDS.get(cat, OTHER) for cat in categories], np.int8)
        self.names = names
        self._known: dict[re.Pattern[str], Bools] = {}

    def fits(self, pattern: re.Pattern[str]) -> Bools:
        """For each name, whether the whole name matches."""
        if pattern not in self._known:
            self._known[pattern] = np.fromiter(map(bool, map(pattern.fullmatch, self.names)), bool, len(self.names))
        return self._known[pattern]

    def roles(self, categories: Ints | Rows, names: Ints | Rows) -> Roles:
        """The roles of events of these categories and names, given as numbers."""
        if not len(categories):
            return Roles(np.zeros(0, np.int8), lambda _: np.zeros(0, bool))
        return self.roles_of(self.kinds[categories], names)

    def roles_of(self, kinds: NDArray[np.int8], names: Ints | Rows) -> Roles:
        """The roles of events of these kinds, and of these names, given as numbers."""

        def named(pattern: re.Pattern[str]) -> Bools:
            fits = self.fits(pattern)
            return fits[names] if fits.any() else np.zeros(len(names), bool)  # most patterns fit no name of a trace

        return Roles(kinds, named)


Ask = Callable[[Roles], Bools]


class Census(Struct, frozen=True):
    """One entry for each category and name that events of a track have."""

    roles: Roles
    track: Ints
    counts: Ints

    def count(self, ask: Ask) -> int:
        """How many events have the role."""
        return int(self.counts[ask(self.roles)].sum())

    def any(self, ask: Ask) -> bool:
        """Whether an event has the role."""
        return bool(ask(self.roles).any())

    def by_track(self, ask: Ask, tracks: int) -> Ints:
        """How many events of each track have the role."""
        totals = np.zeros(tracks, np.int64)
        has_role = ask(self.roles)
        np.add.at(totals, self.track[has_role], self.counts[has_role])
        return totals


def take_census(trace: "Trace") -> Census:
    """Count the events of every track by category and name."""
    names, cats = max(len(trace.names), 1), max(len(trace.labels.kinds), 1)
    keys_by_part = (
        (part.track * np.int64(cats) + trace.cat_codes[part.selection].astype(np.int64)) * names + part.name_codes
        for part in trace.parts()
    )
    size = names * cats * max(len(trace.tracks), 1)
    if size <= _CELLS:
        cells = np.zeros(size, np.int64)
        for numbers in keys_by_part:
            cells += np.bincount(numbers, minlength=size)
        keys = np.flatnonzero(cells)
        counts = cells[keys]
    else:
        count_of: dict[int, int] = {}
        for numbers in keys_by_part:
            for key, count in zip(*(column.tolist() for column in np.unique(numbers, return_counts=True)), strict=True):
                count_of[key] = count_of.get(key, 0) + count
        keys, counts = np.array([*count_of], np.int64), np.array([*count_of.values()], np.int64)
    rest, name = np.divmod(keys, names)
    track, category = np.divmod(rest, cats)
    return Census(trace.labels.roles(category, name), track, counts)


@lru_cache(4096)  # a trace names few calls, and makes many
def bare(name: str) -> str:
    """A runtime call's name without version suffixes."""
    return _SUFFIX.sub("", name)
