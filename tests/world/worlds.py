"""A world: a script, its causes, a machine and a profiler; and what would change if a cause were gone."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from tests.world import kineto
from tests.world.causes import (
    Allocation,
    BufferBroadcast,
    Cause,
    CopyBack,
    CountRows,
    EmptyKernel,
    FirstCall,
    Garbage,
    HostComputing,
    LateRank,
    ManySmallOperators,
    ModuleLoading,
    OptimizerLoop,
    PageableCopy,
    Preprocessing,
    ReadBack,
    Recompiled,
    SharedGpu,
    SlowLoader,
    SlowNetwork,
    SlowPython,
    SmallModel,
    Synchronize,
    ZeroLoop,
)
from tests.world.kineto import DIALECTS, Switches
from tests.world.machine import Hardware, Recording, run
from tests.world.program import Nodes, Span
from tests.world.training import Script, Site

RESOURCES = {  # what a step can be bound by, and the host time or the work that it is made of
    "gpu": ("gpu", "copy"),
    "host": ("python", "dispatch", "launch", "alloc", "cpu"),
    "sync": ("sync",),
    "data": ("data",),
    "copy": ("copy",),
    "comm": ("comm",),
    "compile": ("compile",),
    "start-up": ("start-up",),
    "foreign": ("foreign",),
}
_LONGEST_NS = 400_000_000  # of a recording


@dataclass(frozen=True)
class World:
    """Everything that decides what happens."""

    script: Script
    causes: tuple[Cause, ...] = ()
    steps: int = 6
    hardware: Hardware = field(default_factory=Hardware)
    dialect: str = "2.8"
    switches: Switches = field(default_factory=Switches)
    _runs: dict[tuple[Cause | None, tuple[str, ...]], list[Recording]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def run(self, removed: Cause | None = None, free: tuple[str, ...] = ()) -> Recording:
        """What happens on the first rank, perhaps without a cause, or with resources that cost nothing."""
        return self.ranks(removed, free)[0]

    def ranks(self, removed: Cause | None = None, free: tuple[str, ...] = ()) -> list[Recording]:
        """The same for all ranks, worked out once."""
        if (removed, free) not in self._runs:
            self._runs[removed, free] = self._ran(removed, free)
        return self._runs[removed, free]

    def _ran(self, removed: Cause | None, free: tuple[str, ...]) -> list[Recording]:
        ranks = self._programs if removed is None else self._without(removed)
        shared = [each for each in self.causes if each is not removed and isinstance(each, SharedGpu)]
        windows = tuple(window for cause in shared for window in cause.windows(_LONGEST_NS))
        return run(ranks, [replace(self.hardware, foreign=windows)] * len(ranks), free)

    @cached_property
    def _programs(self) -> list[list[Nodes]]:
        return self._without(None)

    def _without(self, removed: Cause | None) -> list[list[Nodes]]:
        script = removed.script(self.script) if removed is not None else self.script

        def at(site: Site) -> Nodes:
            put: Nodes = ()
            for cause in self.causes:
                put += cause.without(site, script) if cause is removed else cause.at(site, script)
            return put

        return [
            [(Span("user_annotation", f"ProfilerStep#{k}", script.step(k, rank, at)),) for k in range(self.steps)]
            for rank in range(script.ranks)
        ]

    @property
    def recording(self) -> Recording:
        """What happens in it."""
        return self.run()

    @cached_property
    def step_ns(self) -> float:
        """The mean length of a steady step. Without marks, nobody can tell when the first one began: it is counted from
        the GPU's first work."""
        return self._length(self.recording)

    def _length(self, recording: Recording) -> float:
        if any(cause.once for cause in self.causes):
            return recording.step_ns(1)
        return recording.step_ns() if self.switches.marks else recording.seen_ns() / self.steps

    @cached_property
    def savings(self) -> dict[Cause, float]:
        """By how much a steady step is shorter without each cause, ns."""
        return {cause: self.step_ns - self._length(self.run(removed=cause)) for cause in self.causes}

    @cached_property
    def start_up_ns(self) -> float:
        """By how much the first step is shorter without what happens only there."""
        saved = 0.0
        for cause in self.causes:
            without = self.run(removed=cause) if cause.once else self.recording
            saved += (self.recording.done[0] - self.recording.begun[0]) - (without.done[0] - without.begun[0])
        return saved

    @cached_property
    def account(self) -> dict[str, float]:
        """By how much a step is shorter if a resource costs no time: the largest is what binds it."""
        used = self.recording.used
        asked = {name: parts for name, parts in RESOURCES.items() if not used.isdisjoint(parts)}
        return {name: self.step_ns - self._length(self.run(free=parts)) for name, parts in asked.items()}

    @property
    def stacks(self) -> bool:
        """Whether the recording says which functions of Python run."""
        return self.switches.stacks and DIALECTS[self.dialect].frames

    @property
    def nanoseconds(self) -> bool:
        """Whether times are written to the nanosecond."""
        return DIALECTS[self.dialect].nanoseconds

    def write(self, folder: Path) -> Path:
        """Write what the profiler records of it into a new or empty folder: a file for each rank."""
        folder.mkdir(exist_ok=True)
        ranks = self.ranks()
        dialect = DIALECTS[self.dialect]
        for rank, recording in enumerate(ranks):
            kineto.write(folder / f"rank{rank}.json", recording, dialect, self.switches, rank, len(ranks))
        return folder if len(ranks) > 1 else folder / "rank0.json"


def healthy(seed: int) -> World:
    """A world in which nothing is wrong: the host is ahead, and the GPU is never out of work."""
    draw = random.Random(seed)
    script = Script(
        seed,
        layers=draw.randint(3, 6),
        kernel_ns=int(60_000 * 10 ** draw.random()),
        dispatch_ns=draw.randint(4_000, 14_000),
        backward=draw.random() < 0.8,
    )
    kind = draw.choice(["eager", "eager", "eager", "compiled", "graphed", "ranks", "prefetches"])
    dialect = draw.choice(list(DIALECTS))
    if kind == "compiled":
        script, dialect = replace(script, compiled=True), draw.choice(["2.8", "2.8", "2.8 on ROCm"])
    elif kind == "graphed":
        script = replace(script, graphed=True)
    elif kind == "prefetches":
        script = replace(script, prefetches=True)
    elif kind == "ranks":
        script = replace(script, ranks=2, reduce_ns=int(script.kernel_ns * draw.uniform(0.2, 0.5)), backward=True)
        script = replace(
            script, layers=script.layers + 6
        )  # the last reduction, which nothing overlaps, is a small part
    switches = Switches(
        stacks=draw.random() < 0.5,
        shapes=draw.random() < 0.6,
        marks=draw.random() < 0.85,
        clock_ns=draw.choice([0, 40_000, 3_000_000]),
    )
    hardware = Hardware(
        latency=draw.randint(1_500, 4_000), gap=draw.randint(700, 1_600), wake=draw.randint(2_000, 9_000)
    )
    return World(script, steps=draw.randint(5, 7), hardware=hardware, dialect=dialect, switches=switches)


def world(seed: int) -> World:
    """A random world, with a mixture of up to three causes."""
    draw = random.Random(f"causes {seed}")
    made = healthy(seed)
    number = draw.choice([0, 1, 1, 1, 2, 2, 3])
    if number and draw.random() < 0.04:
        return replace(made, switches=replace(made.switches, gpu=False))
    wanted = draw.sample(sorted({*_CAUSES} | ({*_OF_RANKS} if made.script.ranks > 1 else set())), number)
    if made.script.ranks > 1 and number:
        wanted[0] = draw.choice([*_OF_RANKS])
    chosen = dict.fromkeys(wanted)
    script = made.script
    if "optimizer" in chosen or "zeroed" in chosen:
        script = replace(script, backward=True)
    if "small model" in chosen:
        kernel_ns, layers = draw.randint(4_000, 20_000), draw.randint(8, 16)
        script = replace(script, kernel_ns=kernel_ns, layers=layers, graphed=False, ranks=1, compiled=False)
        chosen = {name: None for name in chosen if name not in _OF_RANKS}
    made = replace(made, script=script)
    step = int(made.step_ns)
    causes = tuple((_CAUSES | _OF_RANKS)[name](draw, step) for name in chosen)
    if "garbage" in chosen:  # older versions do not record it
        made = replace(made, dialect="2.8")
    for cause in causes:
        if isinstance(cause, SlowNetwork):
            script = replace(script, reduce_ns=int(script.kernel_ns * draw.uniform(3, 8)))
            causes = tuple(replace(each, ns=made.script.reduce_ns) if each is cause else each for each in causes)
    return replace(made, script=script, causes=causes)


Draw = random.Random
Make = Callable[[Draw, int], Cause]


def _share(draw: Draw, step: int, low: float, high: float) -> int:
    return int(step * draw.uniform(low, high))


_SMALL = (1_500, 4_000)  # kernels of so many ns
_CAUSES: dict[str, Make] = {
    "allocation": lambda draw, step: Allocation(_share(draw, step, 0.1, 0.6), draw.randint(1, 3)),
    "copied back": lambda draw, step: CopyBack(_share(draw, step, 0.05, 0.6)),
    "counted": lambda draw, step: CountRows(0, draw.randint(1, 16)),
    "empty kernel": lambda draw, step: EmptyKernel(_share(draw, step, 0.2, 1.5)),
    "first call": lambda draw, step: FirstCall(_share(draw, step, 1.0, 8.0)),
    "garbage": lambda draw, step: Garbage(_share(draw, step, 0.3, 1.5)),
    "host computing": lambda draw, step: HostComputing(_share(draw, step, 0.4, 1.5)),
    "loader": lambda draw, step: SlowLoader(step + _share(draw, step, -0.4, 1.0), draw.choice([0, 0, 1, 2, 4])),
    "loading": lambda draw, step: ModuleLoading(_share(draw, step, 0.3, 2.0), draw.randint(1, 3)),
    "operators": lambda draw, step: ManySmallOperators(draw.randint(*_SMALL), draw.randint(60, 250)),
    "optimizer": lambda draw, step: OptimizerLoop(draw.randint(*_SMALL), draw.randint(30, 150)),
    "pageable": lambda draw, step: PageableCopy(_share(draw, step, 0.1, 1.0)),
    "preprocessing": lambda draw, step: Preprocessing(_share(draw, step, 0.5, 2.0)),
    "python": lambda draw, step: SlowPython(_share(draw, step, 0.1, 1.2), draw.randint(1, 3)),
    "read back": lambda draw, step: ReadBack(0, draw.randint(1, 16)),
    "recompiled": lambda draw, step: Recompiled(_share(draw, step, 3, 30)),
    "shared": lambda draw, step: SharedGpu(draw.randint(500_000, 3_000_000), draw.randint(2, 6)),
    "small model": lambda draw, step: SmallModel(0),
    "synchronize": lambda draw, step: Synchronize(0, draw.randint(1, 12)),
    "zeroed": lambda draw, step: ZeroLoop(draw.randint(*_SMALL), draw.randint(60, 250)),
}
_OF_RANKS: dict[str, Make] = {
    "broadcast": lambda draw, step: BufferBroadcast(_share(draw, step, 0.05, 0.4)),
    "late": lambda draw, step: LateRank(_share(draw, step, 0.8, 2.0)),
    "network": lambda draw, step: SlowNetwork(0),
}
