"""Lets the processes of all variants take turns, block by block of steps: what drifts is then in all of them alike.

In each round every variant has a live process of its own, which imports, loads, compiles and warms up while nothing is
timed. Then only one of them runs at a time: it takes steps for about a quarter of a second, but some at least unless
they are long, and waits at the end of the last one while the others take theirs, in an order that is reversed each
time. The passes of a round are a pair. The next round has other processes, because those of the same code differ for as
long as they live.

Most of the time of a process is over before its first step, so as many get ready at a time as there are cores. The
processes of some rounds live together as far as memory allows, and these rounds take turns, too: first each round its
first turns, then each its second ones. What disturbs a turn often lasts for seconds, so turns of a process that lie
further apart more often include one that nothing disturbed.

Each is started as Python starts the program, for a fork is none of the processes that the user will ever have: its heap
is another one (`child.live`).

A live process is told what to do by a pipe with a name in its scratch folder, `turns`: the length of its turn, ns; 0,
upon which it takes a short trace, while the others still wait, and ends; or -1, upon which it ends at once. To another
pipe, `waiting`, it writes whenever it waits. Results are files: each turn is a line of `turns.jsonl`, and `result.json`
is written when a pass ends. All of them die with the capture.

On a GPU, the work of a turn has ended when its process waits, and all processes share the memory: they take turns only
where the peaks of all, as their first passes measured them, leave a fifth of it free.

Where this is not possible, a NoTurnsError says why, and whole passes take turns instead.

Does a program decide anything by the clock, such as when to stop? Judged by its source: such a program must not be
stopped, because time passes while it waits.
"""

import ast
import math
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.units import size
from tracekit.capture.child.memory import free_on_host
from tracekit.capture.job import PassResult
from tracekit.capture.live import LivePass, NoTurnsError, live_pass
from tracekit.capture.options import Options, PlannedVariant
from tracekit.capture.passes import finished, live_job, load_average, usable_cores, with_headers
from tracekit.capture.preparation import Prepared, statements
from tracekit.run import Run

TURN_NS = 250_000_000
_MOST_OF_MEMORY = 0.8  # that is free; peaks of processes that live together are not measured, but added
AHEAD = 3  # rounds whose processes live together
TRACED_ROUNDS = 6  # later passes take no trace: more of them would hardly tell more about where the time goes
# Of each process. Other work often slows a turn as a whole, but seldom all of four, and a minute has time for twelve
# pairs or more. A variant that is measured alone takes the fewest, for more processes.
LEAST_TURNS, MOST_TURNS = 2, 4
LONG_S = 2.5  # a process whose turns have taken that long has shown enough
_LOOKED_EVERY_S = 0.01
_CLOCKS = {"time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "now", "utcnow"}


class InterruptedTurnsError(Exception):
    """Ctrl-C among turns: what every process has measured so far, by round and variant, and which signal it was."""

    def __init__(self, so_far: dict[int, dict[str, PassResult]], signal: str) -> None:
        super().__init__(signal)
        self.so_far = so_far


class Turns:
    """The rounds of one capture. `caches` is a folder of each variant, with what its first pass compiled."""

    def __init__(self, prepared: Prepared, folder: Path, caches: dict[str, Path], options: Options) -> None:
        self.prepared = prepared  # its period is only known once the first passes have ended
        self._folder, self._caches, self.options = folder, caches, options
        self.turns_s = self.ready_s = 0.0  # that a round took lately for its turns, and until its processes were ready

    def take(
        self, number: int, variants: Sequence[PlannedVariant], ends: float = math.inf, *, rounds: int, known: Run
    ) -> dict[int, dict[str, PassResult]]:
        """The results of that round and those after it, by round and variant: up to `rounds` of them, as far as their
        processes can live together. After `ends` (monotonic s), no process takes more turns than it must. `known` is
        the run so far, which shows how many steps a script has.

        Raises NoTurnsError; and, once each variant has had a turn, an InterruptedTurnsError in place of a
        KeyboardInterrupt.
        """
        load = load_average()
        with ExitStack() as stack:
            started = self._made_ready(number, variants, rounds, known, stack)
            began, began_ns = time.monotonic(), time.time_ns()
            in_order = {planned.name: place for place, planned in enumerate(self.prepared.variants)}
            live = {
                round_number: [process.live for process in sorted(of_round, key=lambda process: in_order[process.name])]
                for round_number, of_round in started.items()
            }
            try:
                self._take_turns(live, ends)
            except KeyboardInterrupt as interrupt:
                results = self._results(started, began_ns, load)
                so_far = {
                    round_number: of_round
                    for round_number, of_round in results.items()
                    if all(result.turns for result in of_round.values())
                }
                if so_far:
                    raise InterruptedTurnsError(so_far, str(interrupt)) from None
                raise
            results = self._results(started, began_ns, load)
            self.turns_s = (time.monotonic() - began) / len(started)
        for round_number, of_round in results.items():
            for name, result in of_round.items():
                if result.no_turns or (not result.turns and (result.outcome == "ok" or round_number == 1)):
                    why = result.no_turns or result.error or "it ended before its first turn"
                    raise NoTurnsError(f"in {name}, {why}")
        return results

    def _made_ready(
        self, number: int, variants: Sequence[PlannedVariant], rounds: int, known: Run, stack: ExitStack
    ) -> "dict[int, list[_Started]]":
        """The processes of that round and of some later ones, once all of them wait for their turns. They end with the
        `stack`."""
        began = time.monotonic()
        needed, free = sum(variant.memory.host_peak_rss_bytes or 0 for variant in known.variants), free_on_host()
        if known.device != "cpu":
            rounds = 1  # the memory of the device holds those of one: `why_not`
        elif needed and free is not None:
            rounds = min(rounds, int(_MOST_OF_MEMORY * free / needed))
        rounds = max(1, min(AHEAD, rounds))
        coming = [
            (coming_round, planned)
            for coming_round in range(number, number + rounds)
            for planned in variants[:: 1 if (coming_round - number) % 2 == 0 else -1]
        ]  # whose process comes first changes, so that nothing that depends on the order favours a variant
        coming.sort(key=lambda pair: not pair[1].requested.compile)  # those that compile take longest
        made: dict[int, list[_Started]] = {round_number: [] for round_number in range(number, number + rounds)}
        in_flight: list[LivePass] = []
        while coming or in_flight:
            while coming and len(in_flight) < (usable_cores() or 1):
                round_number, planned = coming.pop(0)
                started = self._started(round_number, planned, known)
                stack.push(started.stack)
                made[round_number].append(started)
                in_flight.append(started.live)
            in_flight = [live for live in in_flight if not live.is_ready(_LOOKED_EVERY_S)]
        self.ready_s = (time.monotonic() - began) / rounds
        return made

    def _started(self, number: int, planned: PlannedVariant, known: Run) -> "_Started":
        job, log = live_job(number, planned, self.prepared, self._folder, self.options)
        caches = self._caches[planned.name]
        # How many steps the first pass has shown there to be; None if it was stopped before the last.
        first = known.variant(planned.name)
        job = replace(
            with_headers(job, caches), caches=str(caches), available=first.ended if first is not None else None
        )
        folder = caches / f"round-{number}"
        folder.mkdir(exist_ok=True)
        with ExitStack() as stack:
            live = stack.enter_context(live_pass(job, folder, log, self.options.timeout))
            return _Started(planned.name, live, stack.pop_all())

    def _results(
        self, started: "dict[int, list[_Started]]", began_ns: int, load: float | None
    ) -> dict[int, dict[str, PassResult]]:
        """Both passes of a round began with its first turn."""
        rounds = {}
        for number, of_round in started.items():
            results = {process.name: process.live.result() for process in of_round}
            turns_ns = [turn.started_ns for result in results.values() for turn in result.turns]
            rounds[number] = {
                process.name: finished(
                    replace(process.live.job, round=number),
                    results[process.name],
                    began=min(turns_ns, default=began_ns),
                    load=load,
                    options=self.options,
                )
                for process in of_round
            }
        return rounds

    def _take_turns(self, rounds: dict[int, list[LivePass]], ends: float) -> None:
        orders = {}
        for number, live in rounds.items():
            first = number // 2 % len(live)  # each begins as often, and comes before each other one
            orders[number] = [*live[first:], *live[:first]][:: 1 if number % 2 else -1]
        count = sum(map(len, orders.values()))
        most = LEAST_TURNS if count == len(orders) else MOST_TURNS
        deadline = min(ends, time.monotonic() + LONG_S * count)
        for turn in range(most):
            if turn >= LEAST_TURNS and time.monotonic() >= deadline:
                break
            for order in orders.values():
                if turn >= LEAST_TURNS and not all(process.is_waiting for process in order):
                    continue
                for process in order:
                    process.take_turn(TURN_NS)
                order.reverse()  # what drifts steadily is then the same in both
        for number, order in orders.items():
            for process in order:
                process.end(traced=number <= TRACED_ROUNDS)


class _Started(Struct, frozen=True):
    """A pass that waits for its turn, and what is to be done when it is wanted no more."""

    name: str
    live: LivePass
    stack: ExitStack


def why_not(run: Run, prepared: Prepared, options: Options) -> str:
    """Why the variants cannot take turns step by step, given what their first passes needed; empty if they may."""
    if why := _why_never(prepared, options):
        return why
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
    return ""


def _why_never(prepared: Prepared, options: Options) -> str:
    """The same, as far as it is known before anything has run."""
    if options.ranks > 1:
        return "ranks wait for each other"
    if prepared.is_script and not options.module:
        line = line_that_reads_it(statements(prepared.run.script))
        if line is not None:
            return f"{Path(prepared.run.script).name}:{line} decides by the clock, which goes on while it waits"
    return "--in-place: all of them would write to the same files" if options.in_place else ""


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
