"""Lets the processes of all variants take turns, block by block of steps: what drifts is then in all of them alike.

In each round every variant has a live process of its own, which imports, loads, compiles and warms up while nothing is
timed. Then only one of them runs at a time: it takes steps for about a quarter of a second, or one step, and waits at
the end of its last step while the others take theirs, in an order that is shuffled anew each time. The passes of a
round are a pair. The next round has new processes, because those of the same code differ for as long as they live.

A live process is told what to do by a pipe with a name in its scratch folder, `turns`: the length of its turn, ns, or
0, which ends it. To another one, `waiting`, it writes whenever it waits: how long a step took in its last turn, ns. Its
results are files, as those of every pass: `so_far.json` is replaced after each turn, `result.json` is written when it
ends. It dies with the capture.

Where this is not possible, a NoTurnsError says why, and whole passes take turns instead.
"""

import math
import random
import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tracekit.capture.job import PassResult
from tracekit.capture.live import LivePass, NoTurnsError, live_pass
from tracekit.capture.options import Options
from tracekit.capture.passes import finished, live_job, load_average
from tracekit.capture.preparation import Prepared
from tracekit.capture.variants import PlannedVariant

TURN_NS = 250_000_000
# Of each process: processes differ more than turns do, unless other work on the machine disturbs these.
LEAST_TURNS, MOST_TURNS = 6, 24
_ENOUGH = 0.01  # as the standard error of the logarithm of a pair's ratio: pairs differ by several times as much


class InterruptedTurnsError(Exception):
    """Ctrl-C in a round of turns: what every process has measured so far, and which signal it was."""

    def __init__(self, so_far: dict[str, PassResult], signal: str) -> None:
        super().__init__(signal)
        self.so_far = so_far


@dataclass(frozen=True)
class Turns:
    """The rounds of one capture."""

    prepared: Prepared
    folder: Path
    caches: dict[str, Path]  # of each variant, with what its first pass compiled
    options: Options

    def take(self, number: int, variants: Sequence[PlannedVariant]) -> dict[str, PassResult]:
        """The result of each variant's process in that round.

        Raises NoTurnsError; and, once each process has had a turn, an InterruptedTurnsError in place of a
        KeyboardInterrupt.
        """
        load, began_ns = load_average(), time.time_ns()
        jobs = {
            planned.name: live_job(number, planned, self.prepared, self.folder, self.options) for planned in variants
        }

        def as_passes() -> dict[str, PassResult]:
            taken = {name: each.result() for name, each in live.items()}
            for name, result in taken.items():
                if result.no_turns:
                    raise NoTurnsError(f"{name}: {result.no_turns}")
            return {
                name: finished(job, taken[name], log, began=began_ns, load=load, options=self.options)
                for name, (job, log) in jobs.items()
            }

        with ExitStack() as stack:
            live = {
                name: stack.enter_context(live_pass(job, self.caches[name], log, self.options.timeout))
                for name, (job, log) in jobs.items()
            }
            try:
                self._take_turns(number, [*live.values()])
            except KeyboardInterrupt as interrupt:
                so_far = as_passes()
                if all(each.measured for each in so_far.values()):
                    raise InterruptedTurnsError(so_far, str(interrupt)) from None
                raise
            return as_passes()

    def _take_turns(self, number: int, live: list[LivePass]) -> None:
        order = random.Random(f"{self.prepared.run.seed} {number}")
        for each in live:
            each.wait()
        logs: list[list[float]] = []  # of the step times, for each time that all had a turn
        while not _suffice(logs):
            for each in order.sample(live, len(live)):
                each.take_turn(TURN_NS)
            logs.append([math.log(max(1, each.step_ns)) for each in live])
        for each in live:
            each.end()


def _suffice(logs: list[list[float]]) -> bool:
    """Whether more turns would hardly tell more about these processes."""
    if not LEAST_TURNS <= len(logs) < MOST_TURNS:
        return len(logs) >= MOST_TURNS
    ratios = ([log - turn[0] for turn, log in zip(logs, side, strict=True)] for side in [*zip(*logs, strict=True)][1:])
    return all(statistics.stdev(side) / math.sqrt(len(side)) <= _ENOUGH for side in ratios)


def why_not(prepared: Prepared, options: Options) -> str:
    """Why the variants cannot take turns step by step; empty if they may."""
    if prepared.is_script:
        return "a script is not stopped"
    if prepared.run.device != "cpu":
        return "processes would share the memory of the GPU"
    return "--in-place: all of them would write to the same files" if options.in_place else ""
