"""How long is a typical step, where steps are not alike?

With batches of two sizes, or an evaluation every few steps, the median is the time of one kind of step, or of none: it
is quoted only where steps are alike. If their durations repeat, the typical step is the mean over a period in which
each step takes the median of its kind; otherwise, if there are two kinds of steps, it is the mean over all.
"""

import math
import statistics
from collections.abc import Sequence

from msgspec import Struct

_LEAST_PERIODS = 3  # that have to be seen
_LONGEST = 100  # steps of a period
_SEARCHED = 1000  # steps, in which a period is looked for
_EXPLAINED = 0.65  # of the deviations of the steps from their median, by their place in the period
_APART = 0.85  # of the variance, by the two kinds of steps: 0.64 for a normal distribution, 0.75 for a uniform one
_LEAST_SHARE = 0.2  # of the steps that are of the rarer kind: fewer are outliers
_LEAST_RATIO = 1.2  # of the durations of different steps: less does not matter


class TypicalStep(Struct, frozen=True):
    """The duration to quote for one step, ns, and what it is."""

    step_ns: int
    alike: bool = True  # whether it is the median
    period: int = 1  # the number of steps after which durations repeat; 1 if they do not


def typical_step(times: Sequence[int]) -> TypicalStep:
    """The typical step of consecutive steps that took so many ns each; there is at least one."""
    logs = [math.log(max(time, 1)) for time in times]
    if (period := _period(logs[:_SEARCHED])) > 1:
        mean = statistics.fmean(statistics.median(times[phase::period]) for phase in range(period))
        return TypicalStep(max(1, round(mean)), alike=False, period=period)
    if _two_kinds(logs):
        return TypicalStep(max(1, round(statistics.fmean(times))), alike=False)
    return TypicalStep(max(1, round(statistics.median(times))))


def _period(logs: Sequence[float]) -> int:
    """The smallest number of steps after which durations repeat; 1 if there is none."""
    count = len(logs)
    total = _deviations(logs) / (count - 1) if count > 1 else 0.0
    for period in range(2, min(count // _LEAST_PERIODS, _LONGEST) + 1):
        phases = [logs[phase::period] for phase in range(period)]
        within = sum(map(_deviations, phases)) / (count - period)
        kinds = [statistics.median(phase) for phase in phases]
        if within < (1 - _EXPLAINED) * total and max(kinds) - min(kinds) > math.log(_LEAST_RATIO):
            return period
    return 1


def _two_kinds(logs: Sequence[float]) -> bool:
    """Whether the durations lie around two values, both of which are common."""
    ordered, count = sorted(logs), len(logs)
    rarer = max(2, math.ceil(_LEAST_SHARE * count))
    total = _squares(ordered)
    for cut in range(rarer, count - rarer + 1):
        if ordered[cut] - ordered[cut - 1] > math.log(_LEAST_RATIO):
            return _squares(ordered[:cut]) + _squares(ordered[cut:]) < (1 - _APART) * total
    return False


def _deviations(values: Sequence[float]) -> float:
    """How far they lie from their median, together: outliers count less than in a variance."""
    middle = statistics.median(values)
    return sum(abs(value - middle) for value in values)


def _squares(values: Sequence[float]) -> float:
    mean = statistics.fmean(values)
    return sum((value - mean) ** 2 for value in values)
