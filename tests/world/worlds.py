"""A world: a script, its causes, a machine and a profiler; and what would change if a cause were gone."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from tests.world import kineto
from tests.world.causes import (
    Allocation,
    Cause,
    EmptyKernel,
    Garbage,
    HostComputing,
    ManySmallOperators,
    ModuleLoading,
    OptimizerLoop,
    PageableCopy,
    ReadBack,
    Recompiled,
    SharedGpu,
    SlowLoader,
    SlowPython,
    SmallModel,
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

    def run(self, removed: Cause | None = None, free: tuple[str, ...] = ()) -> Recording:
        """Run it, perhaps without one of its causes, or with resources that cost nothing."""
        steps = self._steps if removed is None else self._program(removed)
        shared = [each for each in self.causes if each is not removed and isinstance(each, SharedGpu)]
        windows = tuple(window for cause in shared for window in cause.windows(_LONGEST_NS))
        return run([steps], [replace(self.hardware, foreign=windows)], free)[0]

    @cached_property
    def _steps(self) -> list[Nodes]:
        return self._program(None)

    def _program(self, removed: Cause | None) -> list[Nodes]:
        script = removed.script(self.script) if removed is not None else self.script

        def at(site: Site) -> Nodes:
            put: Nodes = ()
            for cause in self.causes:
                put += cause.without(site, script) if cause is removed else cause.at(site, script)
            return put

        numbers = range(self.steps)
        return [(Span("user_annotation", f"ProfilerStep#{number}", script.step(number, at)),) for number in numbers]

    @cached_property
    def recording(self) -> Recording:
        """What happens in it."""
        return self.run()

    @cached_property
    def savings(self) -> dict[Cause, float]:
        """By how much a step is shorter without each cause, ns."""
        return {cause: self.recording.step_ns - self.run(removed=cause).step_ns for cause in self.causes}

    @cached_property
    def account(self) -> dict[str, float]:
        """By how much a step is shorter if a resource costs no time: the largest is what binds it."""
        step = self.recording.step_ns
        used = self.recording.used
        asked = {name: parts for name, parts in RESOURCES.items() if not used.isdisjoint(parts)}
        return {name: step - self.run(free=parts).step_ns for name, parts in asked.items()}

    @property
    def stacks(self) -> bool:
        """Whether the recording says which functions of Python run."""
        return self.switches.stacks and DIALECTS[self.dialect].frames

    @property
    def nanoseconds(self) -> bool:
        """Whether times are written to the nanosecond."""
        return DIALECTS[self.dialect].nanoseconds

    def write(self, path: Path) -> Path:
        """Write what the profiler records of it."""
        return kineto.write(path, self.recording, DIALECTS[self.dialect], self.switches)


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
    dialect = draw.choice(list(DIALECTS))
    switches = Switches(stacks=draw.random() < 0.5, shapes=draw.random() < 0.6)
    hardware = Hardware(
        latency=draw.randint(1_500, 4_000), gap=draw.randint(700, 1_600), wake=draw.randint(2_000, 9_000)
    )
    return World(script, steps=draw.randint(5, 7), hardware=hardware, dialect=dialect, switches=switches)


def world(seed: int) -> World:
    """A random world, with a mixture of up to three causes."""
    draw = random.Random(f"causes {seed}")
    made = healthy(seed)
    step = made.recording.step_ns

    def share(low: float, high: float) -> int:
        return int(step * draw.uniform(low, high))

    kinds = {
        "python": lambda: SlowPython(share(0.1, 1.2), draw.randint(1, 3)),
        "operators": lambda: ManySmallOperators(draw.randint(1_500, 4_000), draw.randint(60, 250)),
        "empty kernel": lambda: EmptyKernel(share(0.2, 1.5)),
        "read back": lambda: ReadBack(0, draw.randint(1, 16)),
        "pageable": lambda: PageableCopy(share(0.1, 1.0)),
        "loader": lambda: SlowLoader(int(step) + share(-0.4, 1.0), draw.choice([0, 0, 1, 2, 4])),
        "optimizer": lambda: OptimizerLoop(draw.randint(1_500, 4_000), draw.randint(30, 150)),
        "small model": lambda: SmallModel(0),
        "garbage": lambda: Garbage(share(0.3, 1.5)),
        "allocation": lambda: Allocation(share(0.1, 0.6), draw.randint(1, 3)),
        "recompiled": lambda: Recompiled(share(3, 30)),
        "loading": lambda: ModuleLoading(share(0.3, 2.0), draw.randint(1, 3)),
        "shared": lambda: SharedGpu(draw.randint(500_000, 3_000_000), draw.randint(2, 6)),
        "host computing": lambda: HostComputing(share(0.4, 1.5)),
    }
    chosen = draw.sample(list(kinds), draw.choice([0, 1, 1, 1, 2, 2, 3]))
    if "optimizer" in chosen and not made.script.backward:
        made = replace(made, script=replace(made.script, backward=True))
    if "small model" in chosen:
        small = replace(made.script, kernel_ns=draw.randint(4_000, 20_000), layers=draw.randint(8, 16))
        made = replace(made, script=small)
        step = made.recording.step_ns
    causes = [kinds[name]() for name in chosen]
    return replace(made, causes=tuple(causes))
