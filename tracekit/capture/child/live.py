"""Stage `live`: a process whose step time is quoted, which takes its steps in turns with those of other variants.

It must cost what the program costs as Python runs it. What a process has imported and allocated decides where its heap
ends, which decides how much of it is returned to the system and faulted in again in each step: a few kilobytes of ours
can change a step by a fifth. So until its last turn, this process imports only what its steps need, of the standard
library only what torch imports as well, and keeps nothing: each turn is a line of a file. What remains of the job, the
short trace and the result, comes after the last turn. (`tests/capture/test_lean.py` counts what is imported.)

It is told what to do by a pipe with a name, `turns`, and says in another one, `waiting`, that it waits for that.
"""

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

from tracekit.capture.child.clocks import RunQueue, Yardsticks, stopwatch
from tracekit.capture.child.step_clock import EndedError, StepClock, Steps, run_steps
from tracekit.capture.child.stopping import why_not_stopped
from tracekit.capture.device import is_gpu, show_only

TURNS, WAITING = "turns", "waiting"  # in the scratch folder: the pipes
LINES = "turns.jsonl"  # in the scratch folder: a line for each turn
MESSAGE_BYTES = 21  # each is a number of ns
_QUIET_STEPS, _QUIET_STEPS_OF_A_VARIANT = 10, 5  # after the last compilation, at least
_MOST_WARMUP_STEPS, _RAMP_NS = 100, 500_000_000  # an idle GPU raises its clocks within that
_LONG_NS = 1_000_000_000  # so long a warm-up without a compilation suffices, however few its steps
_LEAST_STEPS, _MOST_STEPS = 3, 100  # of a turn: a median needs some, and all their durations are kept
_MOST_TURN_NS, _MOST_PERIOD_NS = 2_000_000_000, 4_000_000_000  # fewer steps where they take longer than that
_MOST_WORK = 0.05  # of the time in which it waits; an idle process with a pool of threads takes less than a thousandth
_SPARED_NS = 20_000_000  # of that work: what waiting itself takes


def main(folder: str) -> None:
    """Read `job.json` in that folder, take turns, and write `result.json`."""
    with open(os.path.join(folder, "job.json")) as file:
        job = SimpleNamespace(**json.load(file))
    job.requested = SimpleNamespace(**job.requested)
    stopwatch.start(job.began_ns or time.time_ns())
    stopwatch.enter("import")
    queue = RunQueue()
    turns = Turns(job, queue, Yardsticks(queue))
    left, error = _train(job, turns)
    from tracekit.capture.child import live_end  # nothing of it before this

    live_end.write_result(folder, turns, left, error)


def _train(job: Any, turns: "Turns") -> tuple[Any, BaseException | None]:
    """Train until the turns are over; returns the steps of a script, and what the program raised, if anything."""
    from tracekit.capture.child import recipe

    try:
        if not job.is_script:
            module = recipe.load(job.program)
            stopwatch.enter("set up")
            recipe.seed_all(job.seed)
            feed = recipe.RecipeStep(module, recipe.make_context(module, job, []), False, job.workload)
            recipe.seed_all(job.seed)
            run_steps(turns.take(feed.graphs), feed)
            return None, None
        from tracekit.capture.child.script_steps import EnoughError, ScriptSteps, run_script

        job.device = show_only(job.device)
        recipe.seed_all(job.seed)
        steps = ScriptSteps(job, turns.take)
    except Exception as error:
        return None, error
    raised: BaseException | None = None
    try:
        run_script(job, steps)
    except EnoughError as end:
        raised = end if end.args else None
    except (Exception, SystemExit) as error:
        raised = error
    if steps.result is None and steps.taken:
        with suppress(EndedError):
            steps.end()
    return steps, raised


class TurnPipes:
    """The end of a step, at which this process waits for its next turn."""

    def __init__(self, scratch: str) -> None:
        self._turns = os.open(os.path.join(scratch, TURNS), os.O_RDONLY)
        self._waiting = os.open(os.path.join(scratch, WAITING), os.O_WRONLY)
        self._waited_ns = self._worked_ns = 0
        self.wants_trace = False  # after the last turn; not if the capture is gone

    def next_turn_ns(self) -> int:
        """Say that this process waits for its next turn, wait, and return how long that is to be; 0 if there is none
        any more."""
        stopwatch.enter("wait")
        began_ns, worked_ns = time.perf_counter_ns(), time.process_time_ns()
        os.write(self._waiting, b"%20d\n" % 1)
        answer = os.read(self._turns, MESSAGE_BYTES)
        self._waited_ns += time.perf_counter_ns() - began_ns
        self._worked_ns += time.process_time_ns() - worked_ns
        turn_ns = int(answer or -1)
        self.wants_trace = turn_ns == 0
        stopwatch.enter("steps")
        return max(turn_ns, 0)

    @property
    def why_not(self) -> str:
        """Why this process cannot be stopped at its boundaries; empty if it can."""
        if why := why_not_stopped():
            return why
        if self._worked_ns <= _SPARED_NS + _MOST_WORK * self._waited_ns:
            return ""
        return f"it worked for {self._worked_ns / self._waited_ns:.0%} of the time in which it was to wait"


class Compilations:
    """How many there were. The compiler's log would tell more, but writing it is work that a plain run does not do."""

    def __init__(self) -> None:
        self.count = 0

    def listen(self) -> None:
        """Count from now on."""
        from torch._dynamo.callback import callback_handler

        from tracekit.capture.child.replaced import out_of_dynamos_sight

        callback_handler.register_start_callback(out_of_dynamos_sight(self._begins))

    def _begins(self, *_: object) -> None:
        self.count += 1


class Turns:
    """The steps of this process, and what it says about each turn of them."""

    def __init__(self, job: Any, queue: RunQueue, yardsticks: Yardsticks) -> None:
        self.no_turns = ""  # why it cannot take turns
        self.trace: str | None = None  # the name of the short one
        self._job, self._queue, self._yardsticks = job, queue, yardsticks
        import resource  # not on Windows

        self._used: Callable[[], Any] = lambda: resource.getrusage(resource.RUSAGE_SELF)
        self._pipes = TurnPipes(job.scratch)
        self._compilations = Compilations()
        self._file = os.open(os.path.join(job.scratch, LINES), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        # Made here where it takes no device, to be there before the program.
        self._clock = None if is_gpu(job.device) else StepClock(job.device, _MOST_STEPS + 1, queue.now_ns)

    def take(self, graphs: Any) -> Steps[bool]:
        """Warm up, then take blocks of steps, each when it is told to, and a short trace at the end."""
        warmup = yield from self._warm_up()
        clock = self._clock or StepClock(self._job.device, _MOST_STEPS + 1, self._queue.now_ns)
        clock.clear()
        clock.step_ended()
        yield
        clock.step_ended()
        (step_ns,) = clock.steps_ns()
        settled, self.no_turns, has_ended = self._compilations.count, self._pipes.why_not, False
        while not self.no_turns and not has_ended and (turn_ns := self._pipes.next_turn_ns()):
            count, yards_before = _steps_in_turn(turn_ns, step_ns, self._job.period), self._yardsticks.ns()
            clock.clear()
            started_ns, before = time.time_ns(), self._counters()
            clock.step_ended()
            try:
                for _ in range(count):
                    yield
                    clock.step_ended()
            except EndedError:  # the script's last step was in this turn
                has_ended = True
            steps_ns = clock.steps_ns()  # on a GPU, all of them have ended now
            if not steps_ns:
                break
            after, yards_after = self._counters(), self._yardsticks.ns()
            step_ns = sum(steps_ns) // len(steps_ns)
            turn = {
                "started_ns": started_ns,
                "steps": len(steps_ns),
                **{name: after[name] - ns for name, ns in before.items()},
                "yardsticks_ns": [sum(pair) // 2 for pair in zip(yards_before, yards_after, strict=True)],
                "steps_ns": steps_ns,
                "graphs": graphs.take(len(steps_ns)),
                "warmup_steps": warmup,
                "compiles": self._compilations.count,
                "compiles_timed": self._compilations.count - settled,
            }
            os.write(self._file, json.dumps(turn).encode() + b"\n")
            if not has_ended:
                self.no_turns = self._pipes.why_not
        if self._pipes.wants_trace and not has_ended:
            from tracekit.capture.child.live_end import short_trace

            self.trace = yield from short_trace(self._job.scratch, self._job.device)
        return True

    def _warm_up(self) -> Steps[int]:
        """Take steps until nothing compiles any more; returns how many it took."""
        stopwatch.enter("warm up")
        job, compilations = self._job, self._compilations
        if job.requested.compile:
            compilations.listen()
        most_steps = _MOST_WARMUP_STEPS if job.available is None else max(1, job.available // _LEAST_STEPS)
        least_ns = _RAMP_NS if is_gpu(job.device) and not job.is_script else 0
        steps = quiet = 0
        began_ns = quiet_since_ns = time.perf_counter_ns()
        now_ns = began_ns
        while now_ns - began_ns < least_ns or (
            steps < most_steps
            and quiet < _QUIET_STEPS
            and (quiet < _QUIET_STEPS_OF_A_VARIANT or now_ns - quiet_since_ns < _LONG_NS)
        ):
            before = compilations.count
            yield
            steps += 1
            now_ns = time.perf_counter_ns()
            quiet += 1
            if compilations.count > before:
                quiet, quiet_since_ns = 0, now_ns
        return steps

    def _counters(self) -> dict[str, int]:
        """What the system counts for this process so far."""
        used = self._used()
        is_known = self._queue.is_known and not is_gpu(self._job.device)
        return {
            "processor_ns": time.process_time_ns(),
            "thread_ns": time.thread_time_ns(),
            **({"queued_ns": self._queue.waited_ns()} if is_known else {}),
            "minor_faults": used.ru_minflt,
            "voluntary_switches": used.ru_nvcsw,
            "involuntary_switches": used.ru_nivcsw,
        }


def _steps_in_turn(turn_ns: int, step_ns: int, period: int) -> int:
    """As many steps as fill the turn, and some at least unless they are long; whole periods, where steps have one."""
    steps = max(1, min(_MOST_STEPS, max(round(turn_ns / step_ns), _LEAST_STEPS), _MOST_TURN_NS // step_ns))
    if period > _MOST_STEPS or period * step_ns > _MOST_PERIOD_NS:
        return steps
    return min(max(1, round(steps / period)), _MOST_STEPS // period) * period
