"""A machine that runs programs: host threads, a launch queue, streams, loader workers, several ranks.

Everything that happens is worked out in the order of causes. The GPU takes its work in order of submission, stream by
stream, so when an activity runs is known as soon as it is submitted; only communication waits for the other ranks. Any
resource may be `free`: it then costs no time, which tells what it bounds.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass, field

from tests.world.program import (
    Activity,
    Args,
    Busy,
    Call,
    Fetch,
    Handover,
    Join,
    Nodes,
    Overhead,
    Span,
    Submit,
    Sync,
)

MAIN, AUTOGRAD, TOOL = 100, 101, -1
Meeting = Generator[int, int, None]  # yields when a rank arrives at a collective; is sent when all have


@dataclass(frozen=True)
class Recorder:
    """What recording an event costs its thread, ns, half of it at
    either end: of calls within the event, of all others outside of it."""

    operator: int = 0  # and annotation
    frame: int = 0
    call: int = 0


@dataclass(frozen=True)
class Hardware:
    """How fast the machine is; times in ns."""

    queue: int = 1024  # submissions that may be waiting for the GPU; another one blocks its call
    latency: int = 2_500  # from the end of a launch call to the earliest start of its work
    gap: int = 900  # between two activities of a stream
    wake: int = 4_000  # from the end of the GPU's work to the return of the call that waits for it
    handover: int = 12_000  # from one thread to another
    recorder: Recorder = Recorder()
    foreign: tuple[tuple[int, int], ...] = ()  # when another process has the GPU; work begins before or after it


@dataclass(frozen=True, slots=True)
class Event:
    """An event as it happened; `track` is a thread, or a stream of the GPU."""

    cat: str
    name: str
    track: int
    start: int
    end: int
    correlation: int
    args: Args
    frames: tuple[str, ...] = ()


@dataclass
class Recording:
    """What happened on one rank. A step is done when its host and all work that it submitted are."""

    events: list[Event] = field(default_factory=list)
    begun: list[int] = field(default_factory=list)  # when the host began each step
    done: list[int] = field(default_factory=list)
    used: set[str] = field(default_factory=set)  # the resources that took time

    def step_ns(self, first: int = 0) -> float:
        """The mean length of the steps from this one on."""
        begun = max([self.begun[first], *self.done[:first]])
        return (max(self.done) - begun) / (len(self.begun) - first)

    def seen_ns(self) -> float:
        """The time from the GPU's first work to the end of all."""
        return max(self.done) - min(each.start for each in self.events if each.cat in ("kernel", "gpu_memcpy"))


def run(
    ranks: Sequence[Sequence[Nodes]], hardware: Sequence[Hardware], free: Collection[str] = (), start: int = 1_000_000
) -> list[Recording]:
    """Run the steps of every rank; collectives, which all ranks call in the same order, end together."""
    made = [_Rank(machine, frozenset(free), start) for machine in hardware]
    running = [rank.run(steps) for rank, steps in zip(made, ranks, strict=True)]
    arrived = [next(rank, None) for rank in running]
    while any(moment is not None for moment in arrived):
        last = max(moment for moment in arrived if moment is not None)
        arrived = [_resumed(rank, last) for rank in running]
    return [rank.recording for rank in made]


def _resumed(rank: Meeting, moment: int) -> int | None:
    try:
        return rank.send(moment)
    except StopIteration:
        return None


class _Rank:
    """One process, its threads and its GPU."""

    def __init__(self, hardware: Hardware, free: frozenset[str], start: int) -> None:
        self._machine, self._free, self._now = hardware, free, start
        self._origin = start
        self._ends: dict[int, int] = {}  # of each stream: when it will have done what it was given
        self._starts: list[int] = []  # of all submissions
        self._correlation = 1000
        self._frames: list[str] = []
        self._submitted = start  # the end of all work of the step
        self._batches: list[int] = []  # when each was taken by the loop
        self._workers: list[int] = []
        self.recording = Recording()

    def run(self, steps: Sequence[Nodes]) -> Meeting:
        for nodes in steps:
            self.recording.begun.append(self._now)
            yield from self._do(nodes, MAIN)
            self.recording.done.append(max(self._now, self._submitted))

    def _do(self, nodes: Nodes, thread: int) -> Meeting:
        for node in nodes:
            match node:
                case Busy(ns, of):
                    self._now += self._cost(ns, of)
                case Span():
                    yield from self._span(node, thread)
                case Submit():
                    yield from self._submit(node, thread)
                case Sync(call, stream, of):
                    begun = self._now
                    self._now += 1_000
                    if of not in self._free:
                        ends = [end for row, end in self._ends.items() if stream in (None, row)]
                        self._now = max([self._now, *(end + self._machine.wake for end in ends if end > self._now)])
                        self.recording.used.add(of)
                    self._now += self._machine.recorder.call
                    self._record("cuda_runtime", call, thread, begun)
                case Join(stream, other):
                    self._now += self._cost(1_000, "dispatch")
                    self._ends[stream] = max(self._ends.get(stream, 0), self._ends.get(other, 0))
                case Call(name, ns, of):
                    begun = self._now
                    self._now += self._machine.recorder.call + self._cost(ns, of)
                    self._record("cuda_runtime", name, thread, begun)
                case Handover(body):
                    self._now += self._cost(self._machine.handover, "dispatch")
                    frames, self._frames = self._frames, []
                    yield from self._do(body, AUTOGRAD)
                    self._frames = frames
                    self._now += self._cost(self._machine.handover, "dispatch")
                case Fetch():
                    self._fetch(node)
                case Overhead(name, ns, of):
                    begun = self._now
                    self._now += self._cost(ns, of)
                    if self._now > begun:
                        self.recording.events.append(Event("overhead", name, TOOL, begun, self._now, 0, {}))

    def _cost(self, ns: int, of: str) -> int:
        if of in self._free:
            return 0
        self.recording.used.add(of)
        return ns

    def _record(
        self, cat: str, name: str, thread: int, begun: int, args: Args | None = None, correlation: int = 0
    ) -> None:
        if correlation == 0 and cat == "cuda_runtime":
            self._correlation += 1
            correlation = self._correlation
        frames = tuple(self._frames) if cat == "cpu_op" else ()
        self.recording.events.append(Event(cat, name, thread, begun, self._now, correlation, args or {}, frames))

    def _span(self, node: Span, thread: int) -> Meeting:
        recorder = self._machine.recorder
        ns = recorder.frame if node.cat == "python_function" else recorder.operator
        self._now += ns // 2
        begun = self._now
        if node.cat == "python_function":
            self._frames.append(node.name)
        yield from self._do(node.body, thread)
        if node.cat == "python_function":
            self._frames.pop()
        self._record(node.cat, node.name, thread, begun, node.args)
        self._now += ns - ns // 2

    def _submit(self, node: Submit, thread: int) -> Meeting:
        begun = self._now
        if len(self._starts) >= self._machine.queue:
            self._now = max(self._now, self._starts[-self._machine.queue])
        recording = self._machine.recorder.call
        self._now += recording // 2 + self._cost(node.ns, "launch")
        self._correlation += 1
        correlation = self._correlation
        ready = self._now + self._cost(self._machine.latency, "launch")
        for k, activity in enumerate(node.work):
            free_from = self._ends.get(node.stream)
            if free_from is not None:
                ready = max(ready, free_from + self._cost(self._machine.gap, "gpu"))
            ready = self._ours(ready)
            if activity.of == "comm":
                end = (yield ready) + self._cost(activity.ns, "comm")
                if "comm" in self._free:
                    end = ready
            else:
                end = ready + self._cost(activity.ns, activity.of)
            if k == 0:
                self._starts.append(ready)
            self._ends[node.stream] = end
            self._submitted = max(self._submitted, end)
            args = {"correlation": correlation, **activity.args}
            self.recording.events.append(Event(activity.cat, activity.name, node.stream, ready, end, correlation, args))
        if node.waits and "copy" not in self._free:
            self._now = max(self._now, self._ends[node.stream] + self._machine.wake)
        self._now += recording - recording // 2
        self._record(node.cat, node.call, thread, begun, correlation=correlation)

    def _ours(self, moment: int) -> int:
        """The next moment at which no other process has the GPU."""
        if "foreign" not in self._free:
            for start, end in self._machine.foreign:
                if start <= moment - self._origin < end:
                    self.recording.used.add("foreign")
                    return end + self._origin
        return moment

    def _fetch(self, node: Fetch) -> None:
        self._now += self._cost(25_000, "data")
        if "data" in self._free:
            return
        if not self._workers:
            # They have been at work for a while: each delivers a batch in its turn.
            turn = node.ns // node.workers
            self._workers = [self._origin - node.ns + turn * (k + 1) for k in range(node.workers)]
        number = len(self._batches)
        worker = number % node.workers
        slot = number - node.workers * node.ahead
        asked = self._batches[slot] if slot >= 0 else self._workers[worker]
        self._workers[worker] = max(self._workers[worker], asked) + node.ns
        self._now = max(self._now, self._workers[worker])
        self._batches.append(self._now)


def kernel(name: str, ns: int, **args: object) -> Activity:
    """A kernel that fills the GPU, unless `args` say otherwise."""
    return Activity(
        name, ns, args={"est. achieved occupancy %": 60, "blocks per SM": 8.0, "warps per SM": 64.0, **args}
    )
