"""How much slower was the machine for such steps in one capture than in another?

Beside each turn of steps, two yardsticks are timed: pieces of work that are always the same. How much of what slows
them slows the steps, too, shows from pass to pass within each capture (analysis of covariance: each capture has a mean
of its own, and both have the slopes in common), together with what is expected of any program. Captures are compared by
their fastest passes, so what the machine did to the second one is how much longer the fastest yardsticks took there,
times these slopes.

They differ by a little at the same pace as well, because a process has its place in memory, so less than that says
nothing, and they are too coarse to correct a step time by: they only say which passes can be compared, and how far
these can be trusted.

A machine on which they take now this long and now that long does more to steps than they show, and the more so the more
time has passed (`drift`).
"""

import math
import statistics
from collections.abc import Sequence

from tracekit.run import Measured, Pass, Turn

# Expected of both slopes before any pass is measured: steps suffer about as much as the mean of both yardsticks.
_SLOPE, _SLOPE_DEVIATION = 0.5, 0.5
_DEVIATION = 0.03  # of a pass, as a logarithm, that the slopes do not explain
_AT_ONE_PACE = 0.03  # by up to so much, as a logarithm, captures seem to differ that nothing disturbed
_FASTEST = 3  # turns whose yardsticks show how fast the machine is at best
# Beside a pass, the first yardstick takes this much longer at most, as a logarithm, than beside the fastest tenth: half
# of what a busy sibling of a core makes of it, and far more than where a process lies in memory.
_MAX_EXCESS_OF_FAST, _ONE_OF_FASTEST = 0.25, 10
_LEAST_PASSES = 4  # that are fast, of each capture
# What the yardsticks do not explain of how captures of the same code differ that are so long apart, per standard
# deviation of the second yardstick. Until then, it grows like the path of a random walk. Chosen on 94 captures of nine
# programs on two cores of a virtual machine, up to an hour apart: 207 ratios, of which 99 % intervals then missed none.
_DRIFT_OF_A_RATIO, _DRIFTED_AFTER_NS = 0.05, 15 * 60 * 1_000_000_000

Pair = tuple[float, float]  # one figure for each of the two yardsticks


def comparable(*captures: Measured) -> list[list[Pass]]:
    """Of each capture the counted passes beside which the machine was about as fast as it ever was in any of them, by
    the first yardstick; all of them where one has too few of these, or they cannot be told, as in captures without
    turns."""
    counted = [capture.counted_passes for capture in captures]
    if not _all_have_yardsticks(counted):
        return counted
    paces = [sorted(_yard(timed_pass)[0] for timed_pass in side) for side in counted]
    best = min(pace[len(pace) // _ONE_OF_FASTEST] for pace in paces)
    fast = [
        [timed_pass for timed_pass in side if _yard(timed_pass)[0] < best + _MAX_EXCESS_OF_FAST] for side in counted
    ]
    return fast if min(map(len, fast)) >= _LEAST_PASSES else counted


def slower(ours: Measured, theirs: Measured) -> float:
    """How much slower the machine was for the steps of `ours`, as a logarithm; negative if it was faster, and 0 if that
    cannot be told."""
    sides = [ours.counted_passes, theirs.counted_passes]
    if not _all_have_yardsticks(sides):
        return 0.0
    fastest: list[Pair] = []  # what the yardsticks took where they were fastest, a few turns in the mean
    apart: list[tuple[Pair, float]] = []  # of each pass from the mean of its capture: the yardsticks, and its step
    for side in sides:
        logs = [_logs(turn) for timed_pass in side for turn in timed_pass.turns]
        first, second = (sorted(kind)[:_FASTEST] for kind in zip(*logs, strict=True))
        fastest.append((statistics.fmean(first), statistics.fmean(second)))
        middle = _mean([_yard(timed_pass) for timed_pass in side])
        level = statistics.fmean(math.log(timed_pass.step_ns) for timed_pass in side)
        apart += [(_less(_yard(timed_pass), middle), math.log(timed_pass.step_ns) - level) for timed_pass in side]
    # How much of each yardstick's change is in the steps, by least squares and what is expected.
    prior_weight = (_DEVIATION / _SLOPE_DEVIATION) ** 2
    squares = [prior_weight + sum(yard[kind] ** 2 for yard, _ in apart) for kind in (0, 1)]
    product = sum(yard[0] * yard[1] for yard, _ in apart)
    steps = [prior_weight * _SLOPE + sum(yard[kind] * log for yard, log in apart) for kind in (0, 1)]
    determinant = squares[0] * squares[1] - product**2
    slopes = [(squares[1 - kind] * steps[kind] - product * steps[1 - kind]) / determinant for kind in (0, 1)]
    explained = sum(slope * log for slope, log in zip(slopes, _less(*fastest), strict=True))
    return explained if abs(explained) > _AT_ONE_PACE else 0.0


def drift(ours: Measured, theirs: Measured) -> float:
    """The standard deviation, as a logarithm, of what the machine may have done to the ratio of two captures beyond
    what the yardsticks show; 0 where it is steady, or that cannot be told.

    It counts the time from the first pass of either to the last one of both; a capture with itself stands for another
    one right after it.
    """
    counted = [ours.counted_passes, theirs.counted_passes]
    if not _all_have_yardsticks(counted):
        return 0.0
    passes = [timed_pass for side in counted for timed_pass in side]
    starts_ns = [timed_pass.started_ns for timed_pass in passes]
    unsteadiness = statistics.pstdev(_yard(timed_pass)[1] for timed_pass in passes)
    elapsed = min((max(starts_ns) - min(starts_ns)) / _DRIFTED_AFTER_NS, 1.0)
    return _DRIFT_OF_A_RATIO * unsteadiness * math.sqrt(elapsed)


def _all_have_yardsticks(sides: Sequence[Sequence[Pass]]) -> bool:
    turns = [timed_pass.turns for side in sides for timed_pass in side]
    return all(sides) and all(of_pass and all(len(turn.yardsticks_ns) == 2 for turn in of_pass) for of_pass in turns)


def _yard(timed_pass: Pass) -> Pair:
    """What the yardsticks took beside the turns of a pass, as logarithms."""
    return _mean([_logs(turn) for turn in timed_pass.turns])


def _logs(turn: Turn) -> Pair:
    first, second = turn.yardsticks_ns
    return math.log(max(first, 1)), math.log(max(second, 1))


def _mean(pairs: Sequence[Pair]) -> Pair:
    return statistics.fmean(first for first, _ in pairs), statistics.fmean(second for _, second in pairs)


def _less(first: Pair, second: Pair) -> Pair:
    return first[0] - second[0], first[1] - second[1]
