"""Lets the processes of all variants take turns, block by block of steps: what drifts is then in all of them alike.

In each round every variant has a live process of its own, which imports, loads, compiles and warms up while nothing is
timed. Then only one of them runs at a time: it takes steps for about a quarter of a second, or one step, and waits at
the end of its last step while the others take theirs, in an order that is shuffled anew each time. The passes of a
round are a pair. The next round has new processes, because those of the same code differ for as long as they live.

A process that has imported everything, loaded its data and set up has taken most of its time. So it is forked for each
of a few rounds, if it has one thread and touched no device, before any step: its forks compile, warm up and allocate by
themselves. Where steps take several threads, it is forked once it has imported everything, because setting up may start
a pool of them. Forks share where libraries lie in memory, so every few rounds a new process is started.

A live process is told what to do by a pipe with a name in its scratch folder, `turns`: the length of its turn, ns, or
0, upon which it takes a short trace, while the others still wait, and ends; to one that can be forked, any other number
means to do so. To another pipe, `waiting`, it writes whenever it waits: how long a step took in its last turn, ns; one
that can be forked writes -1, less the status of the fork that has ended. Results are files, as those of every pass:
`so_far.json` is replaced after each turn, `result.json` is written when a pass ends. All of them die with the capture.

On a GPU, the work of a turn has ended when its process waits, and all processes share the memory: they take turns only
where the peaks of all, as their first passes measured them, leave a fifth of it free. None is forked, because a device
that was touched, if only to count the devices, does not survive that.

Where this is not possible, a NoTurnsError says why, and whole passes take turns instead.

Does a program decide anything by the clock, such as when to stop? Judged by its source: such a program must not be
stopped, because time passes while it waits.
"""

import ast
import math
import random
import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tracekit.capture.child.free_memory import free_on_host
from tracekit.capture.job import Job, PassResult
from tracekit.capture.live import LiveProcess, NoTurnsError, live_process
from tracekit.capture.options import Options
from tracekit.capture.passes import finished, live_job, load_average
from tracekit.capture.preparation import Prepared, statements
from tracekit.capture.variants import PlannedVariant
from tracekit.run import Run
from tracekit.units import size

TURN_NS = 250_000_000
_MOST_OF_MEMORY = 0.8  # that is free; two peaks at once are not measured, but added
FORKS = 5  # of one process: at least two processes of each variant stand behind six pairs
# Of each process: processes differ more than turns do, unless other work on the machine disturbs these. Another pair
# takes as long as a few turns of both, and tells more than these do once they are known this well.
LEAST_TURNS, MOST_TURNS = 4, 12
_ENOUGH = 0.025  # as the standard error of the logarithm of a pair's ratio


class InterruptedTurnsError(Exception):
    """Ctrl-C in a round of turns: what every process has measured so far, and which signal it was."""

    def __init__(self, so_far: dict[str, PassResult], signal: str) -> None:
        super().__init__(signal)
        self.so_far = so_far


class Turns:
    """The rounds of one capture. `caches` is a folder of each variant, with what its first pass compiled."""

    def __init__(self, prepared: Prepared, folder: Path, caches: dict[str, Path], options: Options) -> None:
        self._prepared, self._folder, self._caches, self._options = prepared, folder, caches, options
        self._processes: dict[str, _Process] = {}

    def close(self) -> None:
        """End all processes."""
        for name in [*self._processes]:
            self._processes.pop(name).stack.close()

    def starts(self, number: int) -> bool:
        """Whether that round starts new processes, as far as is known now."""
        return all((number - process.since) % FORKS == 0 for process in self._processes.values())

    def take(self, number: int, variants: Sequence[PlannedVariant], ends: float = math.inf) -> dict[str, PassResult]:
        """The result of each variant in that round. After `ends` (monotonic s), none takes more turns than it must.

        Raises NoTurnsError; and, once each variant has had a turn, an InterruptedTurnsError in place of a
        KeyboardInterrupt.
        """
        load, began_ns = load_average(), time.time_ns()
        for planned in variants:
            if planned.name not in self._processes:
                self._processes[planned.name] = self._started(number, planned)
        processes = {planned.name: self._processes[planned.name] for planned in variants}
        try:
            self._take_turns(number, [process.live for process in processes.values()], ends)
        except KeyboardInterrupt as interrupt:
            so_far = self._results(number, processes, began_ns, load)
            if all(result.turns for result in so_far.values()):
                raise InterruptedTurnsError(so_far, str(interrupt)) from None
            raise
        results = self._results(number, processes, began_ns, load)
        for name, result in results.items():
            if result.no_turns or (not result.turns and (result.outcome == "ok" or number == 1)):
                why = result.no_turns or result.error or "it ended before its first turn"
                raise NoTurnsError(f"in {name}, {why}")
        for name, process in processes.items():
            if not process.live.can_fork or number + 1 - process.since >= FORKS:
                self._processes.pop(name).stack.close()
        return results

    def _started(self, number: int, planned: PlannedVariant) -> "_Process":
        job, log = live_job(number, planned, self._prepared, self._folder, self._options)
        with ExitStack() as stack:
            live = stack.enter_context(live_process(job, self._caches[planned.name], log, self._options.timeout))
            return _Process(job, live, number, stack.pop_all())

    def _results(
        self, number: int, processes: dict[str, "_Process"], began_ns: int, load: float | None
    ) -> dict[str, PassResult]:
        results = {}
        for name, process in processes.items():
            result = process.live.result()
            job, parent = replace(process.job, round=number), process.since if process.live.can_fork else None
            results[name] = finished(job, result, began=began_ns, load=load, options=self._options, parent=parent)
        return results

    def _take_turns(self, number: int, live: list[LiveProcess], ends: float) -> None:
        order = random.Random(f"{self._prepared.run.seed} {number}")
        for process in live:
            process.wait_until_ready()
        for process in live:
            process.fork()
        for process in live:
            process.wait_until_ready()
        logs: list[list[float]] = []  # of the step times, for each time that all had a turn
        while not _suffice(logs) and (len(logs) < LEAST_TURNS or time.monotonic() < ends):
            for process in order.sample(live, len(live)):
                process.take_turn(TURN_NS)
            logs.append([math.log(max(1, process.step_ns)) for process in live])
        for process in order.sample(live, len(live)):
            process.end()


class _Process(Struct, frozen=True):
    """The process of a variant, the round in which it was started, and what is to be done when it is wanted no more."""

    job: Job
    live: LiveProcess
    since: int
    stack: ExitStack


def _suffice(logs: list[list[float]]) -> bool:
    """Whether more turns would hardly tell more about these processes."""
    if not LEAST_TURNS <= len(logs) < MOST_TURNS:
        return len(logs) >= MOST_TURNS
    ratios = ([log - turn[0] for turn, log in zip(logs, side, strict=True)] for side in [*zip(*logs, strict=True)][1:])
    return all(statistics.stdev(side) / math.sqrt(len(side)) <= _ENOUGH for side in ratios)


def why_not(run: Run, prepared: Prepared, options: Options) -> str:
    """Why the variants cannot take turns step by step, given what their first passes needed; empty if they may."""
    if options.ranks > 1:
        return "ranks wait for each other"
    if prepared.is_script and not options.module:
        line = line_that_reads_it(statements(prepared.run.script))
        if line is not None:
            return f"{Path(prepared.run.script).name}:{line} decides by the clock, which goes on while it waits"
    memories = [variant.memory for variant in run.variants if variant.outcome == "ok"]
    needed, free = sum(memory.host_peak_rss_bytes or 0 for memory in memories), free_on_host()
    if free is not None and needed > _MOST_OF_MEMORY * free:
        return f"together they need {size(needed)} of memory, and {size(free)} is free"
    if run.device != "cpu":
        totals = [memory.device_total_bytes for memory in memories if memory.device_total_bytes]
        needed = sum(memory.device_peak_bytes or 0 for memory in memories)
        if len(totals) < len(memories) or needed > _MOST_OF_MEMORY * min(totals, default=0):
            memory = f"{size(needed)} of the {size(min(totals))}" if totals else "more than is known"
            return f"together they need {memory} of memory that the GPU has"
    return "--in-place: all of them would write to the same files" if options.in_place else ""


_CLOCKS = {"time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "now", "utcnow"}


def line_that_reads_it(statements: Sequence[ast.stmt]) -> int | None:
    """The first line that compares a time of the clock, or a duration by it; None if there is none.

    Durations that are only printed or logged are none of its business: what a function returns is not followed.
    """
    module = ast.Module([*statements], [])
    times: set[str] = set()
    while True:
        names = {
            target.id
            for node in ast.walk(module)
            if isinstance(node, ast.Assign) and _is_time(node.value, times)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        if names <= times:
            break
        times |= names
    compared = (
        node.lineno
        for node in ast.walk(module)
        if isinstance(node, ast.Compare) and any(_is_time(operand, times) for operand in (node.left, *node.comparators))
    )
    return min(compared, default=None)


def _is_time(node: ast.expr, times: set[str]) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[]):
            return name in _CLOCKS
        case ast.BinOp(left=left, right=right):
            return _is_time(left, times) or _is_time(right, times)
        case ast.Name(id=name):
            return name in times
    return False
