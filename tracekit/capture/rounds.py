"""More unprofiled passes, with variants taking turns, because no single pass can show how much passes differ.

Each round reverses the order, so that a steady drift favours no variant.
"""

import math
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from tracekit.capture import messages
from tracekit.capture.job import PassResult
from tracekit.capture.live import NoTurnsError
from tracekit.capture.options import Options
from tracekit.capture.passes import measure_again, usable_cores
from tracekit.capture.preparation import Prepared
from tracekit.capture.turns import LEAST_TURNS, LONG_S, MOST_TURNS, TURN_NS, InterruptedTurnsError, Turns
from tracekit.run import Measured, Pass, Run, StageTime, Variant, with_common_period
from tracekit.run.contrast import (
    NO_DIFFERENCE,
    SPREAD_IN_TURNS,
    SPREAD_OF_PAIRS,
    contrast,
    fastest_logs,
    passes_needed,
    prior_of_captures,
    prior_of_pairs,
    step_interval,
)
from tracekit.run.pace import comparable, drift
from tracekit.statistics.uncertainty import (
    CONFIDENCE_WHERE_STOPPED,
    POWER,
    TOLERANCE,
    Interval,
    Prior,
    expected_square_of_error,
    margin_of_passes,
    smallest_regression,
    student_t,
    typical,
)

# Two pairs of passes can agree by chance, and one is never significant: these rounds come before any budget counts.
RESERVED_ROUNDS = 3
ENOUGH_ROUNDS = 4  # before the intervals are asked whether they are narrow enough
# With this many rounds, the first pass, which had to compile and was observed, is left out.
_WITHOUT_FIRST = 3
NARROW = 0.02  # of the step time to either side, unless a precision is requested
SEEN = (1 + TOLERANCE) ** 2 - 1  # the regression that a check is to show, unless it is told otherwise
_READY_S, _IN_CACHES = 3.0, 0.2  # that a process takes to be ready, besides that part of compiling


def seconds_for_rounds(run: Run, options: Options) -> float:
    """Seconds for later rounds, of which the reserved ones take place whatever they take."""
    first_s = sum(measured_pass.seconds for measured in _all_measured(run) for measured_pass in measured.passes)
    return options.seconds_for_rounds(len(run.variants), first_s)


class Rounds(Struct):
    """Rounds of one capture, until every interval is narrow, the time is spent, or the number requested is reached."""

    prepared: Prepared
    folder: Path
    caches: dict[str, Path]
    options: Options
    turns: Turns | None = None  # block by block of steps; without, whole passes take turns
    lost: set[str] = field(default_factory=set)  # variants of which a pass failed
    _turns_s: float = 0.0  # that the last round took, without making processes ready
    _ready_s: float = 0.0  # that it took to make those of one round ready

    def runs(self, run: Run) -> Iterator[Run]:
        """Yield the run after each round, or each group of rounds that take turns together; after a group that is
        interrupted, too, if every variant was measured in one of its rounds."""
        first_began, measured = time.monotonic(), _all_measured(run)
        ends = first_began + seconds_for_rounds(run, self.options)
        if self.turns is not None:
            self._turns_s = _seconds_of_turns(measured)
            self._ready_s = _seconds_until_ready(measured)
        else:
            self._turns_s = _expected_seconds(measured)
        number = 1
        while number < self.options.passes:
            began = time.monotonic()
            able = {variant.name for variant in run.variants if variant.outcome == "ok"} - self.lost
            variants = [variant for variant in self.prepared.variants if variant.name in able]
            if number % 2:
                variants.reverse()
            is_over = began + self._seconds_of(1) > ends or (number > ENOUGH_ROUNDS and suffices(run, self.options))
            if not variants or (number >= RESERVED_ROUNDS and is_over):
                return
            rounds = self._coming_rounds(number, run, ends - began)
            if number > 1:
                self.options.tell(messages.progress_line(number, run, self._seconds_of(rounds)))
            taken = 1
            if self.turns is not None:
                try:
                    results = self.turns.take(number, variants, ends, rounds=rounds, known=run)
                except InterruptedTurnsError as interrupt:
                    yield self._with_rounds(interrupt.so_far, run)
                    raise KeyboardInterrupt(str(interrupt)) from None
                except NoTurnsError as error:
                    self.turns, run, self._ready_s = None, replace(run, why_no_turns=str(error)), 0.0
                    began = time.monotonic()  # the passes in its place take shorter
                    self.options.tell(messages.no_turns(str(error)))
                else:
                    run, taken = self._with_rounds(results, run), len(results)
            if self.turns is None:
                for variant in variants:
                    caches, options = self.caches[variant.name], self.options
                    result = measure_again(number, variant, self.prepared, self.folder, caches=caches, options=options)
                    run = self._with_rounds({number: {variant.name: result}}, run)
                self._turns_s = time.monotonic() - began
            else:
                self._turns_s, self._ready_s = self.turns.turns_s, self.turns.ready_s
            number += taken
            seconds = round(time.monotonic() - first_began, 3)
            spent = [earlier for earlier in run.spent if earlier.stage != "live"]
            run = replace(run, spent=[*spent, StageTime(stage="live", round=number - 1, seconds=seconds)])
            yield run

    def _seconds_of(self, rounds: int) -> float:
        """How long the next rounds will take."""
        return rounds * (self._turns_s + self._ready_s)

    def _coming_rounds(self, number: int, run: Run, seconds_left: float) -> int:
        """How many more rounds to expect, this one included: as many as suffice if the passes go on to scatter as they
        do, but no more than are allowed, or than the budget has time for."""
        first, *rest = _all_measured(run)
        precision, most = self.options.precision, self.options.passes
        if self.options.min_detectable is not None:
            enough = _passes_until_seen(run, self.options.min_detectable, most)
        elif rest:
            half_widths = (_wanted(math.log(contrast(measured, first).ratio), precision) for measured in rest)
            enough = max(
                passes_needed(measured, first, half_width, most)
                for measured, half_width in zip(rest, half_widths, strict=True)
            )
        else:
            enough = passes_needed(first, None, precision or NARROW, most)
            if precision is None:
                enough = max(enough, _passes_until_seen(run, SEEN, most))
        wanted = min(most, max(enough, ENOUGH_ROUNDS) + 1) - number  # the first round is not counted
        affordable = int(seconds_left / max(self._seconds_of(1), 0.1))
        return max(1, min(wanted, max(affordable, RESERVED_ROUNDS - number)))

    def _with_rounds(self, results: Mapping[int, Mapping[str, PassResult]], run: Run) -> Run:
        """The run with the results of these rounds, by variant; a variant of which a pass has failed gets no more."""
        for number, of_round in results.items():
            for name, result in of_round.items():
                if name in self.lost:
                    continue
                if result.measured is None:
                    self.lost.add(name)
                    self.options.tell(messages.lost_pass(name, number, result.error or result.outcome))
                variants = [
                    _with_pass(variant, result) if variant.name == name else variant for variant in run.variants
                ]
                run = replace(run, variants=variants)
        return in_proportion(with_common_period(run))


def in_proportion(run: Run) -> Run:
    """The run with step times whose ratios to the first variant's are those that pairs show, which are known far better
    than each time by itself."""
    first = next((variant.measured for variant in run.variants if variant.measured), None)
    if first is None:
        return run

    def proportional(variant: Variant) -> Variant:
        measured = variant.measured
        if measured is None or measured is first:
            return variant
        compared = contrast(measured, first)
        if compared.covers != "rounds":
            return variant
        return replace(variant, measured=replace(measured, step_ns=max(1, round(first.step_ns * compared.ratio))))

    return replace(run, variants=[proportional(variant) for variant in run.variants])


def visible(run: Run, seconds: float, most_passes: int) -> float | None:
    """About how large a difference between two variants must be to be seen in 19 of 20 captures of so many seconds, as
    a share, if pairs differ as expected: nothing is known yet of this machine. None for a single variant."""
    first, *rest = _all_measured(run)
    if not rest:
        return None
    ready_s = _seconds_until_ready([first, *rest])
    rounds = max(RESERVED_ROUNDS, min(int(seconds / (_seconds_of_turns([first, *rest]) + ready_s)), most_passes - 1))
    prior = prior_of_pairs(first, *rest)
    in_turns = Prior(math.hypot(SPREAD_IN_TURNS, prior.deviation - SPREAD_OF_PAIRS), prior.freedom)
    square, freedom = expected_square_of_error(in_turns, rounds)
    t_values = student_t(freedom, CONFIDENCE_WHERE_STOPPED) + student_t(freedom, 2 * POWER - 1)
    return math.expm1(math.sqrt(square) * t_values)


def _expected_seconds(sides: Sequence[Measured]) -> float:
    """The expected duration of a round: as long as the first passes took, without compiling."""
    return sum(measured.passes[0].seconds - measured.compile_ns / 1e9 for measured in sides if measured.passes)


def _seconds_until_ready(sides: Sequence[Measured]) -> float:
    """The expected time until the processes of a round are ready, some of them at the same time."""
    each_s = [_READY_S + measured.compile_ns / 1e9 * _IN_CACHES for measured in sides]
    return sum(each_s) / min(len(sides), usable_cores() or 1)


def _seconds_of_turns(sides: Sequence[Measured]) -> float:
    """The expected duration of the turns of a round."""
    turns_s = [max(TURN_NS, measured.step_ns) / 1e9 for measured in sides]
    return sum(min(MOST_TURNS, max(LEAST_TURNS, math.ceil(LONG_S / turn_s))) * turn_s for turn_s in turns_s)


def _passes_until_seen(run: Run, share: float, most: int) -> int:
    """After how many passes a check would see a regression of that share: its margin shrinks with their root."""
    margin, wanted_margin = (math.log1p(regression) - math.log1p(TOLERANCE) for regression in (detectable(run), share))
    if wanted_margin <= 0 or not math.isfinite(margin):
        return most
    passes = min(len(measured.counted_passes) for measured in _all_measured(run))
    return min(most, math.ceil(passes * (margin / wanted_margin) ** 2))


def suffices(run: Run, options: Options) -> bool:
    """Whether every ratio to the first variant's step time is known well enough; for a single variant, whether its step
    time is, and a check of it against another capture would show what it is to show."""
    precision = options.precision
    if options.min_detectable is not None:
        return detectable(run) <= options.min_detectable
    first, *rest = _all_measured(run)
    if rest:
        contrasts = [contrast(measured, first) for measured in rest]
        return all(
            _half_width(compared.interval) <= _wanted(math.log(compared.ratio), precision) for compared in contrasts
        )
    if _half_width(step_interval(first)) > (precision or NARROW):
        return False
    return precision is not None or detectable(run) <= SEEN


def _wanted(log_ratio: float, precision: float | None) -> float:
    """How wide half the interval of a ratio may be: as requested, or so wide that there is no doubt of a difference, or
    that there is none that matters."""
    apart = abs(log_ratio)
    return max(precision or min(NARROW, apart / 2), math.log(NO_DIFFERENCE) - apart)


def _half_width(interval: Interval | None) -> float:
    """Half its width, as a logarithm."""
    return math.log(interval[1] / interval[0]) / 2 if interval is not None and interval[0] else math.inf


def _all_measured(run: Run) -> list[Measured]:
    return [variant.measured for variant in run.variants if variant.measured]


def detectable(run: Run) -> float:
    """The smallest regression that a check of this run against another one like it would see in every variant, as a
    share of the step time; infinite where a variant has fewer than two passes."""
    margins = [
        margin_of_passes(logs, logs, prior_of_captures(measured), drift(measured, measured))
        for measured in _all_measured(run)
        for logs in map(fastest_logs, comparable(measured))
        if logs
    ]
    return max(map(smallest_regression, margins), default=math.inf)


def merged(first: Measured, passes: list[Pass]) -> Measured:
    """The results of all passes; compiling, first steps and inference are those of the first pass."""
    late = [measured_pass for measured_pass in passes if measured_pass.round]
    passes = [
        replace(measured_pass, counted=bool(measured_pass.round) or len(late) < _WITHOUT_FIRST)
        for measured_pass in passes
    ]
    counted = [measured_pass for measured_pass in passes if measured_pass.counted]
    times = [ns for measured_pass in counted for ns in measured_pass.step_all_ns]
    low, _, high = statistics.quantiles(times, n=4) if len(times) > 1 else times * 3
    return replace(
        first,
        step_ns=max(1, round(math.exp(typical([math.log(measured_pass.step_ns) for measured_pass in counted])))),
        step_all_ns=times,
        spread_ns=round(high - low),
        compiles_timed=sum(measured_pass.compiles_timed for measured_pass in counted),
        passes=passes,
    )


def _with_pass(variant: Variant, result: PassResult) -> Variant:
    assert variant.measured is not None
    if result.measured is None:
        note = (
            f"an unprofiled pass failed ({result.error or result.outcome}): its step time is based on the earlier ones"
        )
        return replace(variant, effective=replace(variant.effective, notes=[*variant.effective.notes, note]))
    passes = [*variant.measured.passes, *result.measured.passes]
    spent = [*variant.spent, *([result.spent] if result.spent is not None else [])]
    return replace(variant, measured=merged(variant.measured, passes), spent=spent)
