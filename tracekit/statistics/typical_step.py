"""How long is a typical step, where steps are not alike?

With batches of two sizes, or an evaluation every few steps, the median is the time of one kind of step, or of none: it
is quoted only where steps are alike. If their durations repeat, the typical step is the mean over a period in which
each step takes the mean of its kind; otherwise, if there are two kinds of steps, it is the mean over all.

Rare work, such as saving a file, often takes a little longer than usual by itself, which a median would leave out.
Other work on the machine makes steps longer, too, in two ways: for a while, all of them; or one, many times as long. So
the mean of a kind leaves out the periods in which most steps are slow, and in it a step takes at most so much longer
than the median as steps of that kind may by themselves.

Which of these it is belongs to the program, not to one pass over it: a pass may be too short to show a period, or too
noisy. So it is decided from several passes together, and then holds for each of them.

A period shows in any of three ways. Most of what steps deviate is explained by their place in it; or steps that take
far longer than most recur at the same places, too regularly for chance, and are most of those that take far longer; or
steps at one place are among the longer ones too often for chance.
"""

import math
import statistics
import sys
from collections import Counter
from collections.abc import Collection, Sequence
from operator import truediv

from msgspec import Struct

_LEAST_PERIODS = 3  # that have to be seen in one pass; others contradict if they see
_LEAST_ELSEWHERE = 2
LONGEST_PERIOD = 100  # steps
_SEARCHED = 1000  # steps of a pass, in which a period is looked for
_MOST_PASSES = 8  # in which one is looked for: the longest
_EXPLAINED = 0.65  # of the deviations of the steps from their median, by their place in the period
_MIN_SHARE_OF_VARIANCE = (
    0.85  # of the variance, by the two kinds of steps: 0.64 for a normal distribution, 0.75 for a uniform one
)
_LEAST_SHARE = 0.2  # of the steps that are of the rarer kind: fewer are outliers
_LEAST_RATIO = 1.2  # of the durations of different steps: less does not matter
_FAR = 3.0  # standard deviations above the median, by the middle half of the steps: a step that takes far longer
_RECURS = 0.9  # of the steps at its place take far longer
_RARE_EXPLAINED = 0.5  # of the steps that take far longer, weighted by how much
_CHANCE = 0.003  # that so many of them would recur so regularly
_BEYOND_CHANCE = 1e-6  # the same, where a machine that is busy makes many others longer, too
_MATTERS = 0.05  # of the time: what steps take beyond the median; Python's garbage collector takes less, regularly
_LEAST_DEVIATION = 0.015  # the same, as the mean of logarithms
_SLOWED = 1.1  # times as long as in the quarter of the periods that is slowed least
_MAX_OWN_DEVIATIONS = (
    3.0  # standard deviations above the median, by the median absolute one: what is beyond, other work adds
)
_MAD = 1.4826  # deviations of a normal distribution in its median absolute deviation


class StepPattern(Struct, frozen=True):
    """How the steps of a program differ, which says what to quote for one."""

    alike: bool = True  # the median of all
    period: int = 1  # the number of steps after which durations repeat; 1 if they do not


class TypicalStep(Struct, frozen=True):
    """The duration to quote for one step, ns, and the pattern that makes it so."""

    step_ns: int
    alike: bool = True
    period: int = 1


def typical_step(times: Sequence[int], pattern: StepPattern | None = None) -> TypicalStep:
    """The typical step of consecutive steps that took so many ns each; there is at least one.

    Without a pattern, these steps alone decide which they have.
    """
    pattern = pattern or step_pattern([times])
    if 1 < pattern.period <= len(times):
        middle = statistics.fmean(_kinds(times, pattern.period))
    else:
        middle = statistics.median(times) if pattern.alike else statistics.fmean(times)
    return TypicalStep(max(1, round(middle)), pattern.alike, pattern.period)


def typical_steps(passes: Sequence[Sequence[int]], pattern: StepPattern) -> list[int]:
    """The typical step of each of several passes of one variant, ns.

    A pass of less than a few periods saw too few steps of the rare kinds, or none: it is compared with the others, kind
    by kind.
    """
    longest = max(passes, key=len, default=[])
    if pattern.period == 1 or len(longest) < pattern.period:
        return [typical_step(times, pattern).step_ns for times in passes]
    enough = _LEAST_PERIODS * pattern.period
    # How long a step takes at each place in the period in all of the passes together, at the pace of the longest.
    of_longest = _kinds(longest, pattern.period)
    times_by_place: list[list[float]] = [[*longest[place :: pattern.period]] for place in range(pattern.period)]
    for times in (times for times in passes if times is not longest):
        first, slower = _fit(times, of_longest)
        for step, time in enumerate(times):
            times_by_place[(first + step) % pattern.period].append(time / math.exp(slower))
    kinds = [*map(_undisturbed_mean, times_by_place)]
    return [
        typical_step(times, pattern).step_ns
        if len(times) >= enough
        else max(1, round(statistics.fmean(kinds) * math.exp(_fit(times, kinds)[1])))
        for times in passes
    ]


def step_pattern(passes: Sequence[Sequence[int]], in_a_row: Sequence[Sequence[int]] | None = None) -> StepPattern:
    """The pattern of the steps of a program, of which these are passes: the durations of consecutive steps, ns.

    Where passes were halted, `in_a_row` are the steps between two halts: the first one after a halt is slower each
    time, and no period of the program's.
    """
    period = common_period(passes if in_a_row is None else in_a_row)
    if period > 1:
        return StepPattern(alike=False, period=period)
    two_kinds = [_two_kinds(_logs(times)) for times in passes if len(times)]
    return StepPattern(alike=not two_kinds or 2 * sum(two_kinds) < len(two_kinds))


def common_period(passes: Sequence[Sequence[int]]) -> int:
    """The smallest number of steps after which durations repeat in all of these passes that are long enough to tell;
    1 if there is none."""
    longest_first = sorted(passes, key=len, reverse=True)[:_MOST_PASSES]
    return _period([_logs(times[:_SEARCHED]) for times in longest_first], LONGEST_PERIOD, _CHANCE)


def has_unexplained_work(times: Sequence[int]) -> bool:
    """Whether some of these steps take so much longer than the others that it matters, and nothing says how often."""
    if step_pattern([times]) != StepPattern():
        return False
    usual = statistics.median(times)
    beyond = sum(times[step] - usual for step in _far_longer(_logs(times)))
    return beyond > _MATTERS * sum(times)


def costliest_start(times: Sequence[int], period: int, steps: int) -> int:
    """The place in the period at which that many consecutive steps begin, if they are to hold most of its work."""
    kinds = _kinds(times, period)
    return max(range(period), key=lambda start: sum(kinds[(start + k) % period] for k in range(min(steps, period))))


def steps_far_longer(times: Sequence[int]) -> list[int]:
    """The indices of the steps that take far longer than most."""
    return [*_far_longer(_logs(times))]


def places_far_longer(times: Sequence[int], period: int) -> list[int]:
    """The places in the period at which every step takes far longer than most."""
    far = _far_longer(_logs(times))
    return [place for place in range(period) if all(step in far for step in range(place, len(times), period))]


def _kinds(times: Sequence[float], period: int) -> list[float]:
    """How long a step takes at each place in the period, in the whole periods that the machine does not slow."""
    usual = [max(1, statistics.median(times[place::period])) for place in range(period)]
    periods = [times[first : first + period] for first in range(0, len(times) - period + 1, period)]
    # By the median step: rare ones that take longer by themselves do not make a period slow.
    slowness = [statistics.median(map(truediv, steps, usual)) for steps in periods]
    limit = _SLOWED * sorted(slowness)[(len(periods) - 1) // 4]
    steady = [steps for steps, slow in zip(periods, slowness, strict=True) if slow <= limit]
    return [_undisturbed_mean(times) for times in zip(*steady, strict=True)]


def _undisturbed_mean(times: Sequence[float]) -> float:
    """The mean of steps of one kind, of which none counts as more than they may take by themselves."""
    middle = statistics.median(times)
    limit = middle + _MAX_OWN_DEVIATIONS * _MAD * statistics.median(abs(time - middle) for time in times)
    return statistics.fmean(min(time, limit) for time in times)


def _fit(times: Sequence[float], kinds: Sequence[float]) -> tuple[int, float]:
    """The place in the period at which steps begin, by how well they fit its kinds, and how much slower they are, as a
    logarithm."""
    logs, kind_logs, period = _logs(times), _logs(kinds), len(kinds)
    fits = []
    for first in range(period):
        apart = [log - kind_logs[(first + step) % period] for step, log in enumerate(logs)]
        fits.append((_deviations(apart), first, statistics.median(apart)))
    _, first, slower = min(fits)
    return first, slower


def _logs(times: Sequence[float]) -> list[float]:
    return [math.log(max(time, 1)) for time in times]


def _period(passes: Sequence[Sequence[float]], longest: int, chance: float) -> int:
    """The smallest period of the logarithms of durations, the longest pass first."""
    all_far, farthest, ranks = [_far_longer(logs) for logs in passes], list[dict[int, float]](), list[list[int]]()
    for far in all_far:  # those beside the longest few: what the machine does to steps may be many times as common
        *_, last_log = sorted(far.values(), reverse=True)[:_LEAST_PERIODS] or [0.0]
        farthest.append({step: apart for step, apart in far.items() if apart > last_log / 2})
    for logs in passes:  # how many steps are shorter than each
        by_log = sorted(range(len(logs)), key=logs.__getitem__)
        ranks.append(sorted(range(len(logs)), key=by_log.__getitem__))
    fewest = _LEAST_PERIODS if len(passes) < _LEAST_PERIODS else _LEAST_ELSEWHERE
    for period in range(2, min(max(map(len, passes), default=0) // fewest, longest) + 1):
        recurs = any(_recurs(passes, far, period, chance) for far in (all_far, farthest))
        if recurs or _repeats(passes, period) or _outranks(passes, ranks, period):
            return period * _longer_period(passes, period, longest // period)
    return 1


def _longer_period(passes: Sequence[Sequence[float]], period: int, longest: int) -> int:
    """Every how many periods something else happens at some place in them; 1 for nothing else."""
    if longest < 2:
        return 1
    # Of the passes that hold a whole period, each from the same place in it on as the longest one.
    kinds = _kinds([math.exp(log) for log in passes[0]], period)
    firsts = [(logs, _fit([math.exp(log) for log in logs], kinds)[0]) for logs in passes if len(logs) >= 2 * period]
    aligned = [logs[-first % period :] for logs, first in firsts]
    periods = [_period([logs[place::period] for logs in aligned], longest, _BEYOND_CHANCE) for place in range(period)]
    together = math.lcm(*periods)
    return together if together <= longest else max(periods)


def _repeats(passes: Sequence[Sequence[float]], period: int) -> bool:
    """Whether the place in the period explains most of what steps deviate."""
    total = within = 0.0
    apart: list[float] = []
    for logs in passes:
        count = len(logs)
        if count < _LEAST_PERIODS * period:
            continue
        places = [logs[place::period] for place in range(period)]
        total += _deviations(logs) / (count - 1)
        within += sum(map(_deviations, places)) / (count - period)
        kinds = [statistics.median(place) for place in places]
        matters = _deviations(kinds) > _LEAST_DEVIATION * period
        apart.append(max(kinds) - min(kinds) if matters else 0.0)
    return bool(apart) and within < (1 - _EXPLAINED) * total and statistics.median(apart) > math.log(_LEAST_RATIO)


def _recurs(passes: Sequence[Sequence[float]], far: Sequence[dict[int, float]], period: int, chance: float) -> bool:
    """Whether steps that take far longer than most recur after so many steps, in most passes."""
    explained = total = log_chance = 0.0
    periods, votes = 0, []
    for logs, longer in zip(passes, far, strict=True):
        count = len(logs)
        if count < _LEAST_ELSEWHERE * period:
            continue
        # The places at which steps take far longer nearly every time.
        hits = Counter(step % period for step in longer)
        often = {place: max(2, _RECURS * len(range(place, count, period))) for place in hits}
        places = {place for place in hits if hits[place] >= often[place]}
        weight, everything = sum(longer[step] for step in longer if step % period in places), sum(longer.values())
        explained, total, periods = explained + weight, total + everything, periods + count // period
        surely = [math.exp(apart) - 1 for step, apart in longer.items() if step % period in places]
        matters = bool(surely) and statistics.median(surely) * len(surely) >= _MATTERS * count
        by_chance = _log_chance(longer, places, count, period) if matters else 0.0
        beyond_chance = by_chance < math.log(_BEYOND_CHANCE)
        votes.append(matters and (beyond_chance or weight >= _RARE_EXPLAINED * everything))
        log_chance += min(0.0, by_chance) if votes[-1] else 0.0
    explains_most = explained >= _RARE_EXPLAINED * total
    min_log = math.log(chance if explains_most else _BEYOND_CHANCE)
    return periods >= _LEAST_PERIODS and 2 * sum(votes) > len(votes) and log_chance < min_log


def _outranks(passes: Sequence[Sequence[float]], ranks: Sequence[Sequence[int]], period: int) -> bool:
    """Whether steps at one place in the period are among the longer ones more often than by chance, in most passes.

    It shows two kinds of long steps of which both are common and vary so much that they overlap, such as saving with
    and without an evaluation: neither takes far longer than most, and their places explain little.
    """
    min_log = math.log(max(_LEAST_RATIO, 1 + _MATTERS * period))
    scores, votes = [], []
    for logs, ranked in zip(passes, ranks, strict=True):
        if len(logs) < _LEAST_PERIODS * period:
            continue
        score, place = max((_rank_score(ranked, place, period), place) for place in range(period))
        scores.append(score)
        elsewhere = [log for step, log in enumerate(logs) if step % period != place]
        votes.append(statistics.median(logs[place::period]) - statistics.median(elsewhere) > min_log)
    if 2 * sum(votes) <= len(votes):
        return False
    together = sum(scores) / math.sqrt(len(scores))
    by_chance = max(math.erfc(together / math.sqrt(2)) / 2, sys.float_info.min)
    log_tries = len(scores) * math.log(period)  # the place was chosen in each pass
    return log_tries + math.log(by_chance) < math.log(_BEYOND_CHANCE)


def _rank_score(ranks: Sequence[int], place: int, period: int) -> float:
    """By how many standard deviations the ranks of the steps at that place are above what they would be by chance
    (Mann and Whitney 1947)."""
    count, there = len(ranks), len(range(place, len(ranks), period))
    above = sum(ranks[place::period]) - there * (count - 1) / 2
    return above / math.sqrt(there * (count - there) * (count + 1) / 12)


def _log_chance(longer: Collection[int], places: set[int], count: int, period: int) -> float:
    """How likely it is that so many of the longer steps fall on so few places of some period, as a logarithm."""
    on_places = sum(len(range(place, count, period)) for place in places)
    hits = sum(step % period in places for step in longer)
    drawn = _log_choose(on_places, hits) + _log_choose(count - on_places, len(longer) - hits)
    log_tries = _log_choose(period, len(places)) + math.log(count / _LEAST_PERIODS)
    return log_tries + drawn - _log_choose(count, len(longer))


def _far_longer(logs: Sequence[float]) -> dict[int, float]:
    """The steps that take far longer than most, and by how much, as a logarithm.

    How much others scatter is judged by the shorter half, because the longer one has work of its own.
    """
    if len(logs) < 2:
        return {}
    low, middle, _ = statistics.quantiles(logs, n=4, method="inclusive")
    min_log = max(math.log(_LEAST_RATIO), _FAR * (middle - low) / 0.6745)
    return {step: log - middle for step, log in enumerate(logs) if log - middle > min_log}


def _log_choose(count: int, chosen: int) -> float:
    return math.lgamma(count + 1) - math.lgamma(chosen + 1) - math.lgamma(count - chosen + 1)


def _two_kinds(logs: Sequence[float]) -> bool:
    """Whether the durations lie around two values, both of which are common."""
    ordered, count = sorted(logs), len(logs)
    rarer = max(2, math.ceil(_LEAST_SHARE * count))
    total = _squares(ordered)
    for cut in range(rarer, count - rarer + 1):
        if ordered[cut] - ordered[cut - 1] > math.log(_LEAST_RATIO):
            return _squares(ordered[:cut]) + _squares(ordered[cut:]) < (1 - _MIN_SHARE_OF_VARIANCE) * total
    return False


def _deviations(values: Sequence[float]) -> float:
    """How far they lie from their median, together: outliers count less than in a variance."""
    middle = statistics.median(values)
    return sum(abs(value - middle) for value in values)


def _squares(values: Sequence[float]) -> float:
    mean = statistics.fmean(values)
    return sum((value - mean) ** 2 for value in values)
