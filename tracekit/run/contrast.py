"""Unprofiled passes: how long a step takes, how one variant compares with another, and how certain both are.

Two variants are compared pass by pass. The passes of one round ran at the same time, in turns, or one after the other,
so that drift – clocks, heat, other jobs – affects both and mostly cancels in their ratio: they are a pair. What a turn
took is the median of its steps, what a pass took the median of its turns, and the ratio of two variants what is typical
of those of their pairs. None of these favours a lucky pass: a process of the user's is as lucky as any. Ratios are
logarithms, so that neither side is favoured.

Processes of the same code differ persistently, by their layout in memory and by what ran beside them, so what the steps
of one pass show says nothing about the next: only pairs do, and one pair alone is never significant.
"""

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.units import duration, many, percent, ratio
from tracekit.run import Measured, Pass, Variant, crowding
from tracekit.run.pace import comparable, drift, slower
from tracekit.statistics.uncertainty import (
    CONFIDENCE,
    CONFIDENCE_WHERE_STOPPED,
    NOTHING_KNOWN,
    Interval,
    Prior,
    half_width_of_captures,
    half_width_of_difference,
    half_width_of_typical,
    interval_from_logs,
    is_noise,
    says_nothing,
    square_of_error,
    student_t,
    typical,
)

Covers = Literal["rounds", "passes", "one pass"]
COVERED: dict[Covers, str] = {
    "rounds": "passes that took turns, each in a separate process",
    "passes": "the passes of two captures, which did not take turns; it does not cover changes between the captures",
    "one pass": "nothing: with one pass each, it is unknown how much passes differ",
}
SPREAD_OF_PAIRS, SPREAD_IN_TURNS = 0.06, 0.03
NO_DIFFERENCE = 1.015  # a ratio that is known to be closer to 1 is no difference that matters
_SAME_RATIO = 1.005
_AGREE_BY_CHANCE = 16  # passes at most
_QUEUED_TOLD = 0.05  # of the time of steps
_MIN_SHARE_TO_REPORT = 0.01  # of the cost of compiling: a smaller part is not told


def prior_of_pairs(*sides: Measured) -> Prior:
    """How much the logarithms of the ratios of pairs are expected to differ, before any is measured.

    Whole passes that take turns have a standard deviation of 6 %, worth four degrees of freedom, and those that do so
    block by block of steps one of 3 %: captures of a script, a small language model and a GCN against themselves had
    2.7 to 8.0 %, and later ones of a script, matrix products and a GCN in turns 0.7 to 7.2 %, on two CPU cores.
    Other work on the machine adds to it, so it grows with the load where steps contain waits for a core, and with the
    scatter of the steps: what disturbs these lasts longer than a step, and often as long as a pass. Where pairs differ
    less, as on many a GPU, it makes the intervals of few pairs wider than they need to be.
    """
    passes = [timed_pass for side in sides for timed_pass in side.counted_passes]
    if not passes:
        return Prior(SPREAD_OF_PAIRS, 4)
    in_turns = all(timed_pass.turns for timed_pass in passes)
    # Where turns say what their thread waited for a core, steps do not contain that.
    crowded = statistics.median(
        1.0
        if timed_pass.turns and all(turn.queued_ns is not None for turn in timed_pass.turns)
        else crowding(timed_pass.load, timed_pass.cores)
        for timed_pass in passes
    )
    scatter = statistics.median(map(_scatter, passes))
    spread = SPREAD_IN_TURNS if in_turns else SPREAD_OF_PAIRS
    return Prior(math.hypot(spread * crowded, math.sqrt(2) * scatter), 4)


def _scatter(timed_pass: Pass) -> float:
    """How uncertain what the pass took is, by its own steps, as a logarithm.

    The middle of its turns is as much more certain than one of them as these are many. Without turns, half the range in
    which the middle half of the steps lies; of steps that are not alike, that of whole periods.
    """
    if len(timed_pass.turns) > 1:
        logs = turn_logs(timed_pass)
        return statistics.stdev(logs) / math.sqrt(len(logs))
    times, period = timed_pass.step_all_ns, timed_pass.period
    sums_of_periods = [sum(times[first : first + period]) for first in range(0, len(times) - period + 1, period)]
    if len(sums_of_periods) < 2:
        return 0.0
    low, _, high = statistics.quantiles(sums_of_periods, n=4, method="inclusive")
    return math.log(max(high, 1) / max(low, 1)) / 2


def turn_logs(timed_pass: Pass) -> list[float]:
    """What a step took in each turn, as a logarithm: the median, or the mean where steps are not alike."""
    middle = statistics.median if timed_pass.alike else statistics.fmean
    return [math.log(max(middle(steps), 1)) for steps in _turns(timed_pass)]


def _turns(timed_pass: Pass) -> Iterator[list[int]]:
    """The steps of each turn, ns."""
    first = 0
    for turn in timed_pass.turns:
        if steps := timed_pass.step_all_ns[first : first + turn.steps]:
            yield steps
        first += turn.steps


def pass_log(timed_pass: Pass) -> float:
    """What a step took in the pass, as a logarithm: in the middle one of its turns, if it took turns."""
    logs = turn_logs(timed_pass)
    return statistics.median(logs) if len(logs) > 1 else math.log(timed_pass.step_ns)


def prior_of_passes(*sides: Measured) -> Prior:
    """The same for single passes: both passes of a pair contribute to how much pairs differ."""
    pairs = prior_of_pairs(*sides)
    return Prior(pairs.deviation / math.sqrt(2), pairs.freedom)


def prior_of_captures(*sides: Measured) -> Prior:
    """The same for captures, unless they have so many passes that the fastest do not agree by chance."""
    many_passes = all(len(side.counted_passes) > _AGREE_BY_CHANCE for side in sides)
    return NOTHING_KNOWN if many_passes else prior_of_passes(*sides)


def cold_cost_ns(variant: Variant | None) -> float | None:
    """What the slower start cost, unprofiled, ns: compiling before the first step, and in the steps how much longer the
    first ones took than as many steady ones – or all compiling there, if later steps compiled as well."""
    if variant is None or variant.measured is None or not variant.measured.first_steps_ns:
        return None
    measured, first = variant.measured, variant.measured.first_steps_ns
    longer = max(sum(first) - len(first) * measured.step_ns, 0)
    return measured.compile_before_ns + max(longer, measured.compile_ns - measured.compile_before_ns)


def compiling_cost(variant: Variant | None) -> str | None:
    """`1.48 s`, or `118 s (72.0 s before the first step, 46.0 s in steps)`: what every sentence says of it. None if it
    cost nothing, or is unknown."""
    cost = cold_cost_ns(variant)
    if not cost or variant is None or variant.measured is None:
        return None
    before = variant.measured.compile_before_ns
    if before < _MIN_SHARE_TO_REPORT * cost:
        return duration(cost)
    return f"{duration(cost)} ({duration(before)} before the first step, {duration(cost - before)} in steps)"


def processor_ns(measured: Measured) -> float | None:
    """The processor time of a step in turns, all threads of the process together, ns; None if none were taken.

    Other work on the machine hardly changes it, which tells drift from a difference; but it knows nothing of waiting.
    """
    turns = [turn for timed_pass in measured.counted_passes for turn in timed_pass.turns]
    return sum(turn.processor_ns for turn in turns) / sum(turn.steps for turn in turns) if turns else None


def queued(variants: Iterable[Variant]) -> str:
    """`steps waited 31 % of the time for a core that other work held; step times leave that out`; empty if the thread
    that drives them hardly waited in its turns."""
    measured = [variant.measured for variant in variants if variant.measured is not None]
    passes = [timed_pass for capture in measured for timed_pass in capture.counted_passes if timed_pass.turns]
    queued_ns = sum(turn.queued_ns or 0 for timed_pass in passes for turn in timed_pass.turns)
    share = queued_ns / (queued_ns + sum(sum(timed_pass.step_all_ns) for timed_pass in passes)) if queued_ns else 0.0
    if share < _QUEUED_TOLD:
        return ""
    return f"steps waited {percent(share)} of the time for a core that other work held; step times leave that out"


def steps_to_break_even(extra_ns: float, saved_ns: float) -> float:
    """After how many steps the time that each saves makes up for a slower start; infinite if it never does."""
    return max(extra_ns, 0) / saved_ns if saved_ns > 0 else float("inf")


class Contrast(Struct, frozen=True):
    """The step time of a variant divided by that of its baseline, with its confidence interval."""

    ratio: float
    interval: Interval | None  # None for one pass each
    covers: Covers
    passes: int  # on the side that has fewer
    load: float | None = None  # while the passes ran; None if the machine was not busy, or if that is unknown
    slower: float = 1.0  # how many times as long such steps took on the variant's machine, which the interval covers

    def document(self) -> dict[str, Any]:
        """The contrast as plain data, for JSON."""
        return {
            "ratio": self.ratio,
            "interval": self.interval,
            "confidence": CONFIDENCE,
            "interval_covers": COVERED[self.covers],
            "passes": self.passes,
            "noise": self.noise,
        }

    @property
    def noise(self) -> bool:
        """Whether the difference is within noise: the interval contains 1, or there is none."""
        return is_noise(self.interval)

    @property
    def is_known_equal(self) -> bool:
        """Whether it is known that there is no difference that matters."""
        return self.interval is not None and 1 / NO_DIFFERENCE <= self.interval[0] <= self.interval[1] <= NO_DIFFERENCE

    @property
    def says_nothing(self) -> bool:
        """Whether the interval is so wide that no figure should be quoted."""
        return self.interval is not None and says_nothing(self.interval)

    @property
    def why_nothing(self) -> str:
        """Why the interval is that wide, and what to do."""
        passes = _rests_on(self)
        if self.load is None:
            return f"passes differ too much for {passes}; run again with --budget 120"
        busy = f"the machine was too busy (load {self.load:.1f}; {passes})"
        return f"{busy}; run again when it is quiet, or with --budget 120"

    @property
    def doubt(self) -> str:
        """Why the difference is not significant; empty if it is."""
        if self.interval is None:
            return "one pass each"
        if self.says_nothing:
            return "too uncertain to tell"
        if self.noise and self.is_known_equal:
            return f"no difference above {percent(NO_DIFFERENCE - 1)}"
        return "within noise" if self.noise else ""


def contrast(ours: Measured, theirs: Measured, confidence: float = CONFIDENCE_WHERE_STOPPED) -> Contrast:
    """The step time of `ours` compared with that of `theirs`, by the clock; `confidence` is the confidence of the
    interval."""
    logs = pair_logs(ours, theirs)
    if len(logs) > 1:
        half = half_width_of_typical(logs, confidence, prior_of_pairs(ours, theirs))
        return _contrast(typical(logs), half, "rounds", len(logs), (ours, theirs))
    log = math.log(ours.step_ns / theirs.step_ns)
    sides = [[*map(pass_log, side.counted_passes)] for side in (ours, theirs)]
    if min(map(len, sides)) > 1:
        half = half_width_of_difference(sides[0], sides[1], confidence, prior_of_passes(ours, theirs))
        return _contrast(log, half, "passes", min(map(len, sides)), (ours, theirs))
    return Contrast(math.exp(log), None, "one pass", 1)


def contrast_of_captures(ours: Measured, theirs: Measured, confidence: float) -> Contrast:
    """The step time of a capture compared with that of another, by the fastest turn of each of the comparable passes:
    what disturbs the others is no part of both captures. Where the machine was slower in one of them, or is unsteady,
    the interval covers what that may have done."""
    by_clock = contrast(ours, theirs, confidence)
    if by_clock.covers != "passes":
        return by_clock
    after, before = (fastest_logs(passes) for passes in comparable(ours, theirs))
    half = half_width_of_captures(after, before, confidence, prior_of_captures(ours, theirs), drift(ours, theirs))
    log, by_machine = typical(after) - typical(before), slower(ours, theirs)
    interval = interval_from_logs(log - half - max(by_machine, 0.0), log + half - min(by_machine, 0.0))
    return replace(by_clock, ratio=math.exp(log), interval=interval, slower=math.exp(by_machine))


def logs_of(passes: Sequence[Pass]) -> list[float]:
    """What a step took in each of the passes, as a logarithm."""
    return [*map(pass_log, passes)]


def fastest_logs(passes: Sequence[Pass]) -> list[float]:
    """What a step took in the fastest turn of each pass, as a logarithm; what the pass took if there were no turns."""
    return [min(turn_logs(timed_pass), default=math.log(timed_pass.step_ns)) for timed_pass in passes]


def otherwise(ours: Measured, theirs: Measured) -> Contrast | None:
    """The same comparison by the processor time of the thread that drives the steps, if the two intervals have nothing
    in common. Other work hardly changes that time, and waiting for other threads, a GPU or a file is not in it."""
    by_time, logs = contrast(ours, theirs), []
    for pair in _rounds(ours.counted_passes, theirs.counted_passes):
        if all(timed_pass.turns for timed_pass in pair):
            # The processor time of a step of that thread on either side; 0 if it is not known.
            our_ns, their_ns = (
                sum(turn.thread_ns or 0 for turn in timed_pass.turns) / sum(turn.steps for turn in timed_pass.turns)
                for timed_pass in pair
            )
            if our_ns and their_ns:
                logs.append(math.log(our_ns / their_ns))
    if by_time.covers != "rounds" or by_time.interval is None or len(logs) < max(2, by_time.passes):
        return None
    half = half_width_of_typical(logs, CONFIDENCE_WHERE_STOPPED, prior_of_pairs(ours, theirs))
    by_thread = _contrast(typical(logs), half, "rounds", len(logs), (ours, theirs))
    assert by_thread.interval is not None
    low, high = max(by_time.interval[0], by_thread.interval[0]), min(by_time.interval[1], by_thread.interval[1])
    return by_thread if low > high else None


def compared(ours: Contrast, other: str = "") -> str:
    """`1.32 × faster than eager (1.25–1.40; 6 pairs)`, `1.02 × slower (0.97–1.07; 3 pairs), within noise`."""
    slower = ours.ratio > 1
    factor = ours.ratio if slower else 1 / ours.ratio
    if factor < _SAME_RATIO:
        verdict = "as fast as" if other else "as fast"
    else:
        verdict = f"{ratio(factor)} {'slower' if slower else 'faster'}{' than' if other else ''}"
    if ours.says_nothing:
        return f"too uncertain to compare{f' with {other}' if other else ''}: {ours.why_nothing}"
    interval = ""
    if ours.interval:  # its ends as factors, slower or faster
        inverse = [1 / end if end else math.inf for end in reversed(ours.interval)]
        low, high = ours.interval if slower else inverse
        interval = f" ({low:.2f}–{high:.2f}; {_rests_on(ours)})"
    significance = "untested: " if other and ours.interval is None else ""
    doubt = f", {significance}{ours.doubt}" if ours.doubt else ""
    return f"{verdict}{f' {other}' if other else ''}{interval}{doubt}"


def _rests_on(ours: Contrast) -> str:
    return many(ours.passes, "pair") if ours.covers == "rounds" else f"{many(ours.passes, 'pass', 'passes')} each"


def passes_needed(ours: Measured, theirs: Measured | None, half_width: float, most: int) -> int:
    """How many passes that take turns make the interval of the ratio that narrow (as a logarithm), if they go on to
    scatter as they do; without `theirs`, the interval of the step time. At most `most`."""
    if theirs is None:
        logs, prior = logs_of(ours.counted_passes), prior_of_passes(ours)
    else:
        logs, prior = pair_logs(ours, theirs), prior_of_pairs(ours, theirs)
    if not logs:
        return most
    enough = (
        passes
        for passes in range(2, most)
        for square, freedom in [square_of_error(logs, prior, passes)]
        if freedom and student_t(freedom, CONFIDENCE_WHERE_STOPPED) * math.sqrt(square) <= half_width
    )
    return next(enough, most)


def step_interval(measured: Measured, confidence: float = CONFIDENCE_WHERE_STOPPED) -> Interval | None:
    """The confidence interval of the step time, ns; None if there is only one pass, or if passes differ so much that it
    would say nothing."""
    logs = logs_of(measured.counted_passes)
    if len(logs) < 2:
        return None
    log, half = math.log(measured.step_ns), half_width_of_typical(logs, confidence, prior_of_passes(measured))
    ends = interval_from_logs(log - half, log + half)
    return None if says_nothing(ends) else ends


def passes_document(measured: Measured) -> dict[str, Any]:
    """The passes and the interval that they give as plain data, for JSON."""
    interval = step_interval(measured)
    return {
        "interval_ns": interval,
        "interval_covers": COVERED["rounds"] if interval is not None else None,
        "passes": [
            {
                "round": timed_pass.round,
                "started_ns": timed_pass.started_ns,
                "seconds": timed_pass.seconds,
                "step_ns": float(timed_pass.step_ns),
                "steps": len(timed_pass.step_all_ns),
                "load": timed_pass.load,
                "counted": timed_pass.counted,
            }
            for timed_pass in measured.passes
        ],
    }


def pair_logs(ours: Measured, theirs: Measured) -> list[float]:
    """The ratio of each pair, as a logarithm; empty if the two sides did not take turns."""
    return [pass_log(mine) - pass_log(its) for mine, its in _rounds(ours.counted_passes, theirs.counted_passes)]


def _rounds(ours: list[Pass], theirs: list[Pass]) -> list[tuple[Pass, Pass]]:
    """The passes paired by round; no pairs if the two sides did not take turns, as in two captures."""
    by_round = {timed_pass.round: timed_pass for timed_pass in theirs}
    pairs = [(timed_pass, by_round[timed_pass.round]) for timed_pass in ours if timed_pass.round in by_round]
    took_turns = all(
        max(one.started_ns for one in before) < min(one.started_ns for one in after)
        for before, after in pairwise(pairs)
    )
    return pairs if took_turns else []


def _contrast(
    log_ratio: float, half_width: float, covers: Covers, passes: int, sides: tuple[Measured, Measured]
) -> Contrast:
    interval = interval_from_logs(log_ratio - half_width, log_ratio + half_width)
    passes_of_sides = [timed_pass for side in sides for timed_pass in side.counted_passes]
    loads = [(timed_pass.load, timed_pass.cores) for timed_pass in passes_of_sides if timed_pass.load is not None]
    crowded = [load for load, cores in loads if crowding(load, cores) > 1]
    busy = statistics.median(crowded) if 2 * len(crowded) > len(loads) else None
    return Contrast(math.exp(log_ratio), interval, covers, passes, busy)
