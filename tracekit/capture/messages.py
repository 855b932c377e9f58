"""What a capture says on the terminal while it runs; a pass writes its progress to a file now and then, and the waiting
process reports it.
"""

import math
import shlex
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import msgspec

from tracekit.base.atomic import put
from tracekit.base.names import sanitize
from tracekit.base.units import duration, many, percent, ratio
from tracekit.capture.job import Stage
from tracekit.run import (
    Outcome,
    Run,
    Variant,
    divergence,
    gradient_tolerance,
    loss_tolerance,
    times_apart,
    was_busy,
)
from tracekit.run.contrast import (
    compared,
    compiling_cost,
    contrast,
    otherwise,
    processor_ns,
    queued,
    step_interval,
)
from tracekit.statistics.uncertainty import TOO_UNSURE, UNSEEN

_REASON_WIDTH = 100
_DOING: dict[Stage, str] = {
    "inspect": "preparing",
    "measure": "measuring, unprofiled",
    "live": "measuring in turns",
    "profile": "taking traces",
    "check": "checking its losses",
    "train": "training to the end",
}
_OUTCOMES: dict[Outcome, str] = {
    "oom": "out of memory",
    "timeout": "timed out",
    "crash": "crashed",
    "error": "failed",
    "skipped": "left out",
}
_FILE = "progress.json"
_WRITTEN_EVERY_NS = 1_000_000_000
_SAID_EVERY_S = 15  # also before the first report: most passes are over by then
_STALE_S = 10


def on_stderr(line: str) -> None:
    """Print one line on stderr, in which no name can control the terminal. stdout is for data."""
    with suppress(OSError):  # stderr is closed: the capture continues
        print(sanitize(line), file=sys.stderr, flush=True)


def beginning(run: Run) -> str:
    """`gcn_cora on cpu: eager, compiled`."""
    return f"{run.recipe} on {run.device}: {', '.join(run.planned)}"


def on_the_cpu(why: str) -> str:
    """Why `--device auto` chose the CPU."""
    return f"No GPU: {why}. Training on the CPU."


def doing(name: str, stage: Stage) -> str:
    """`compiled: taking traces …`."""
    return f"{name}: {_DOING[stage]} …"


def taking_again(window: str) -> str:
    """A trace is taken again, because the profiler lost kernels, as some do in later sessions of a process."""
    return f"  kernels are missing: taking the {window} trace again, in a separate process …"


def ending(variant: Variant, run: Run) -> str:
    """`compiled: 0.80 ms a step (± 0.05 ms), 2 compilations of 21.8 s; same losses and gradients as eager`."""
    if variant.outcome != "ok":
        return f"{variant.name}: {_OUTCOMES.get(variant.outcome, variant.outcome)} ({variant.error})"
    clauses = []
    if (measured := variant.measured) is not None:
        spread = f" (± {duration(measured.spread_ns / 2)})" if measured.steps > 1 else ""
        clauses.append(
            f"{duration(measured.step_ns)} a step{spread}{f', which is {variant.step}' if variant.step else ''}"
        )
        if variant.ledger.compiles:
            clauses.append(_compilations(variant))
    clauses += [*_sameness(variant, run), *variant.effective.notes, *variant.effective.remarks]
    return f"{variant.name}: {'; '.join(filter(None, clauses))}"


def busy(load: float | None, environment: Mapping[str, Any]) -> str | None:
    """A warning if more processes want to run than there are processors."""
    if not was_busy(environment, load):
        return None
    return (
        f"warning: the machine is busy (load {load:.1f} on {many(environment['cpus_usable'], 'core')}): "
        "other work disturbs the measurements, and the intervals will be correspondingly wide."
    )


def repeating(seconds: float, passes: int, reserved: int, visible: float | None) -> str:
    """`Measuring again, in turns, for about 60 s at most (--budget): differences above about 3 % should be seen …`."""
    clause = "" if visible is None else f": differences above about {percent(visible)} should be seen"
    if passes <= reserved:
        return f"Measuring again, in turns: {passes} passes each (--passes){clause} …"
    return f"Measuring again, in turns, for about {seconds:.0f} s at most (--budget){clause} …"


def no_turns(why: str) -> str:
    """Why whole passes take turns."""
    return f"  Whole passes take turns, not blocks of steps: {why}."


def progress_line(rounds: int, run: Run, seconds_left: float) -> str:
    """`3 rounds: compiled 1.32 × faster than eager (1.20–1.45; 3 pairs); about 40 s left`, or of several variants the
    one of which least is known."""
    measured = [(variant.name, variant.measured) for variant in run.variants if variant.measured]
    (first, base), *rest = measured
    sentence = f"{first} {duration(base.step_ns)} a step"
    if interval := step_interval(base):
        sentence += f" ({' … '.join(duration(end, like=base.step_ns) for end in interval)})"
    contrasts = [(contrast(result, base), name) for name, result in rest]
    if contrasts:
        intervals = [comparison.interval for comparison, _ in contrasts]
        widths = [
            interval[1] / interval[0] if interval is not None and interval[0] else math.inf for interval in intervals
        ]
        widest, name = contrasts[widths.index(max(widths))]
        verdict = "too uncertain to tell yet" if widest.says_nothing else compared(widest, first)
        sentence = f"{'least certain: ' if len(contrasts) > 1 else ''}{name} {verdict}"
    return f"  {rounds} rounds: {sentence}; about {seconds_left:.0f} s left"


def reached(smallest: float, requested: float) -> str:
    """Whether a check of two such captures would see the regression that was requested."""
    if smallest <= requested:
        return f"A check of two such captures would see regressions of {percent(smallest)}."
    if smallest == math.inf:
        return "What a check of two such captures would see is unknown: one pass does not show how much passes differ."
    if smallest > TOO_UNSURE:
        return f"{UNSEEN}. Give a quieter machine, or more --budget or --passes."
    return (
        f"The passes do not suffice: a check of two such captures would see regressions of {percent(smallest)}, not of "
        f"{percent(requested)}. Give more --budget or --passes, or a quieter machine."
    )


def training(name: str, epochs: int, seed: int) -> str:
    """`compiled: training 100 epochs with seed 1 …`."""
    return f"{name}: training {many(epochs, 'epoch')} with seed {seed} …"


def lost_training(name: str, seed: int, error: str) -> str:
    """A training that did not finish."""
    return f"{name}: training with seed {seed} failed ({error})"


def lost_pass(name: str, number: int, error: str) -> str:
    """A pass that failed after an earlier one succeeded."""
    return f"{name}: unprofiled pass {number + 1} failed ({error}); its step time is based on the earlier ones"


def step_times(run: Run) -> Iterator[str]:
    """The result of all passes: `compiled: 4.02 ms a step, 1.32 × faster than eager (1.25–1.40; 7 passes)`."""
    measured = [(variant.name, variant.measured) for variant in run.variants if variant.measured]
    (first, base), *_ = measured
    for name, result in measured:
        passes = many(max(1, len(result.counted_passes)), "pass", "passes")
        against = f", {compared(contrast(result, base), first)}" if result is not base else ""
        worked = processor_ns(result)
        beside = f"; processor time {duration(worked)} a step" if worked is not None else ""
        yield f"{name}: {duration(result.step_ns)} a step in {passes}{against}{beside}"
        if result is not base and (by_thread := otherwise(result, base)) is not None:
            yield f"  By the processor time of its own thread, {compared(by_thread, first)}: the rest is waiting."
    if waited := queued(run.variants):
        yield f"  {waited[0].upper()}{waited[1:]}."


def interrupted(run: Run, run_file: Path) -> str:
    """What is left after Ctrl-C."""
    if not any(variant.measured for variant in run.variants):
        return "Interrupted. Nothing was written."
    finished = [variant.name for variant in run.variants if variant.outcome == "ok"]
    return f"Interrupted. {short(run_file)} contains {', '.join(finished) or 'no finished variant'}."


def written(run_file: Path) -> list[str]:
    """Where the run is, and the commands that open it."""
    typed = shlex.quote(str(short(run_file)))
    return [f"Wrote {short(run_file)}", f"Open it:  tracekit tui {typed}   or   tracekit report {typed}"]


def moved_aside(aside: Path) -> str:
    """Where the earlier run is now."""
    return f"The earlier run was moved to {short(aside)}"


def quoted(text: str) -> list[str]:
    """The recipe's own words or traceback, line by line."""
    return text.rstrip().expandtabs(4).splitlines()


def usage(output: str) -> str | None:
    """What a script prints that does not accept its arguments, on one line; None if it prints no usage."""
    lines = [line.strip() for line in output.splitlines()]
    begins = [number for number, line in enumerate(lines) if line.lower().startswith("usage:")]
    return " ".join(filter(None, lines[begins[-1] :])).rstrip(".") if begins else None


def short(path: Path) -> Path:
    """The path as one would type it in the current folder."""
    try:
        return path.relative_to(Path.cwd())
    except (ValueError, OSError):  # it is elsewhere, or the current folder is gone
        return path


def _compilations(variant: Variant) -> str:
    """`1 graph, 0 recompilations, 2 graph breaks (print, train.py:12), compiling cost 21.8 s`."""
    ledger = variant.ledger
    counts = [
        many(ledger.graphs, "graph"),
        many(ledger.recompiles, "recompilation"),
        many(ledger.break_places, "graph break"),
    ]
    if ledger.breaks:  # the reason names an operator that Dynamo cannot trace
        places = Counter((graph_break.reason, graph_break.file, graph_break.line) for graph_break in ledger.breaks)
        reason, file, line = max(places, key=places.__getitem__)
        counts[-1] += f" ({sanitize(reason, _REASON_WIDTH)}{f', {Path(file).name}:{line}' if file else ''})"
    if cost := compiling_cost(variant):
        counts.append(f"compiling cost {cost}")
    return ", ".join(counts)


def _sameness(variant: Variant, run: Run) -> list[str]:
    alike = (other for other in run.variants if not other.requested.compile and other.params == variant.params)
    eager = next(alike, None)
    if eager is None or eager.name == variant.name or not variant.losses:
        return []
    apart = divergence(eager.losses, variant.losses)
    of_gradients = divergence(eager.gradients, variant.gradients)
    if of_gradients is not None and of_gradients > gradient_tolerance(eager.gradient_drift):
        times = ratio(times_apart(eager.gradients, variant.gradients))
        return [*_of_losses(variant, eager, apart), f"norms of its gradients differ from {eager.name}'s by {times}"]
    return _of_losses(variant, eager, apart, " and gradients" if of_gradients is not None else "")


def _of_losses(variant: Variant, eager: Variant, apart: float | None, and_gradients: str = "") -> list[str]:
    if apart is None:
        return [f"its losses cannot be compared with {eager.name}'s"]
    if apart > loss_tolerance(eager.loss_drift):
        number = many(min(len(eager.losses), len(variant.losses)), "loss", "losses")
        return [f"losses differ from {eager.name}'s by up to {apart:.1e} ({number} compared)"]
    if apart > loss_tolerance():
        why = f"except for rounding, which by itself changes those by {eager.loss_drift:.1e}"
        return [f"same losses{and_gradients} as {eager.name} {why}"]
    return [f"same losses{and_gradients} as {eager.name}"]


class Expected(Protocol):
    """What is known of the steps to come."""

    def steps(self) -> int:
        """The number of all steps."""

    def left_ns(self, steps_taken: int) -> int | None:
        """How long those after the first `taken` will take; None if that cannot be known."""


class _Progress(msgspec.Struct):
    taken: int
    wanted: int
    left_ns: int | None


class Writer:
    """The side of the pass, which costs one comparison per step."""

    def __init__(self, folder: str) -> None:
        self._file = Path(folder, _FILE) if folder else None
        self._next_ns = 0

    def took(self, steps_taken: int, expected: Expected, now_ns: int) -> None:
        """Note how many steps were taken, and how many are expected."""
        if self._file is None or now_ns < self._next_ns:
            return
        self._next_ns = now_ns + _WRITTEN_EVERY_NS
        put(self._file, msgspec.json.encode(_Progress(steps_taken, expected.steps(), expected.left_ns(steps_taken))))


class Reader:
    """The side of the waiting process."""

    def __init__(self, folder: Path, tell: Callable[[str], None]) -> None:
        self._file, self._tell = folder / _FILE, tell
        self._file.unlink(missing_ok=True)
        self._next_s = time.monotonic() + _SAID_EVERY_S

    def look(self) -> None:
        """Report the progress, unless it was reported recently."""
        if time.monotonic() < self._next_s or not self._file.exists():
            return
        self._next_s = time.monotonic() + _SAID_EVERY_S
        progress = msgspec.json.decode(self._file.read_bytes(), type=_Progress)
        sentence = f"  step {progress.taken} of about {max(progress.taken, progress.wanted)}"
        age_s = time.time() - self._file.stat().st_mtime
        if age_s > _STALE_S:  # a long step, or what follows the steps: writing a trace
            sentence = f"{sentence} was reached {age_s:.0f} s ago"
        elif progress.left_ns is not None:
            sentence = f"{sentence}, about {duration(progress.left_ns)} left for the steps of this pass"
        self._tell(sentence)
