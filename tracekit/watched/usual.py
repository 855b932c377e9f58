"""Is this step slow? What is usual follows the last steps, at a few µs a step and without numpy.

Each step is divided by the level around it, the median of the last LEVEL_STEPS: steps that lengthen little by little
stay usual, and a new level is usual after half as many steps. The last RATIOS of these ratios say how much steps
scatter. A step is slow if it takes LEAST_NS longer than the level, and more than the level times

    1 + the largest of LEAST_SHARE, the tail, and DEVIATIONS * MAD, but no more than MOST_TAILS tails

The MAD alone would call each step of a rarer kind slow, where every fourth step ends with the optimizer. The tail
begins at a high quantile of the ratios, and goes on STRETCH times as far as that is from a lower one: where ratios
thin out exponentially, one in 80,000 is beyond it. Of two such pairs the nearer tail counts, because a rarer kind of
step can lie between the quantiles of one pair, but not of both.

Where several steps fit into half of LEAST_NS, only one in so many is learnt from, at no fixed interval: every fourth or
tenth step may be of a kind of its own. Each is compared with the limit.

A step that takes as long as the ones before it at the same interval, such as the first of each epoch, is periodic
instead of slow. A trend is told when the last BLOCKS blocks of steps are all GROWTH times as long as BLOCKS in a row
once were at most.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from statistics import median_low
from typing import Generic, NamedTuple, TypeVar

from tracekit.watched.record import UNKNOWN, Step

LEAST_SHARE = 0.25  # of the level
LEAST_NS = 5_000_000  # an operating system takes the processor away for so long now and then
DEVIATIONS = 20  # times the MAD: one value in 10,000 of Student's t with 4 degrees of freedom is beyond 18 of them
STRETCH = 6
MOST_TAILS = 3  # of two kinds that are as frequent, the MAD says nothing
TAILS = ((0.80, 0.95), (0.92, 0.98))  # the share beyond the second quantile is a quarter of that beyond the first
LEVEL_STEPS, RATIOS = 31, 512
FIRST_STEPS = 32  # of which nothing is said
FIRST_LEVEL = 8  # steps that a level needs
FEW_RATIOS, MANY_RATIOS = 32, 128  # with so few the limit is twice as far from the level as with so many
SPREAD_STEPS = 8  # after so many, the spread is worked out anew
SERIES = 3  # slow steps at one interval, after which the next is periodic
SERIES_GROWTH = 1.5  # times the slowest of its series, a step still belongs to it
SHORTEST_PERIOD = 8  # the tail knows what comes more often
RECENT_SLOW = 32
BLOCK_STEPS, BLOCKS = 32, 4
GROWTH, FURTHER_GROWTH = 1.25, 2.0
CUT = 4  # the longest steps of a block that do not count
TYPICAL_STEPS = 128
QUEUE_BLOCKS = 8  # of these, each of which says how long it waits for a core
MOST_SKIPPED = 16  # one step in so many is learnt from, however short steps are
_HASHES, _SPREADING = 1 << 32, 2_654_435_769  # multiples of the golden ratio's part of 2^32 lie evenly among the hashes

_Number = TypeVar("_Number", int, float)


class Verdict(NamedTuple):
    """What is said of a step."""

    usual_ns: int = UNKNOWN  # UNKNOWN of the first steps
    limit_ns: int = UNKNOWN
    slow: bool = False
    period: int = 0  # steps since the one before it in its series, if it would be slow but for that
    trend: bool = False  # steps take longer than they did: told once, of a step that is not slow itself


class Usual:
    """What is usual so far."""

    def __init__(self, read: Callable[[int], Step] = [].__getitem__) -> None:
        self._read = read  # gets a step by its number
        self._recent: deque[Step | int] = deque(maxlen=TYPICAL_STEPS)  # steps judged; numbers of those only learnt from
        self._levels = Levels()
        self._factor = 0.0  # of the level, beyond which a step is slow
        self._learnt = self._spread_of = 0  # steps; those of which the spread was worked out last
        self._share = _HASHES  # of steps that are learnt from, out of as many hashes as there are
        self._is_after_slow = False
        self._quiet = Verdict()  # on a step that is not slow
        self._slow: dict[int, float] = {}  # the ratios of recent slow steps by their numbers
        self._trend = _Trend()

    def at_a_glance(self, number: int, step_ns: int) -> Verdict | None:
        """What `judge` says of a step that is not slow, if nothing is learnt from it; None if it has to be judged."""
        is_usual = 0 <= step_ns <= self._quiet.limit_ns and not self._is_after_slow
        return self._quiet if is_usual and number * _SPREADING % _HASHES >= self._share else None

    def judge(self, step: Step) -> Verdict:
        """The verdict on a step, which then belongs to what is usual. Steps that were traced are not to be judged, nor
        those in which something apart from a step happened."""
        number, step_ns = step.number, step.step_ns
        if step_ns < 0:
            return Verdict()
        verdict = self._quiet
        if UNKNOWN != verdict.limit_ns < step_ns:
            verdict = self._beyond(number, step_ns)
        is_learnt = self._is_after_slow or number * _SPREADING % _HASHES < self._share
        self._is_after_slow = verdict.slow
        if is_learnt:
            lengthened = self._factor > 0 and self._trend.lengthened([step_ns])
            # Without periodic steps, the others stay comparable with one another.
            self._take_in([step], [step_ns], are_comparable=not verdict.period)
            self._settle()
            if lengthened and not verdict.slow and not verdict.period:
                self._trend.tell()
                verdict = verdict._replace(trend=True)
        return verdict

    def sample(self, first: int, end: int) -> Sequence[int]:
        """Which steps to learn from, of those from `first` to `end`, none of which follows a slow one."""
        share = self._share
        if share >= _HASHES:
            return range(first, end)
        return [number for number in range(first, end) if number * _SPREADING % _HASHES < share]

    def learn(self, numbers: Sequence[int], durations: list[int]) -> list[int]:
        """Steps that were not longer than the limit when they ended, which limits since then do not change, belong to
        what is usual from now on. The numbers of those of which a trend is to be told."""
        told = [numbers[at] for at in self._trend.told(durations)] if self._factor else []
        self._take_in(numbers, durations)
        self._settle()
        return told

    @property
    def quiet(self) -> Verdict:
        """The verdict on the next steps that are not slow; without a limit, if each of them has to be judged."""
        return Verdict() if self._is_after_slow else self._quiet

    @property
    def typical(self) -> Step:
        """What each part of a step usually takes."""
        return typical(step if isinstance(step, Step) else self._read(step) for step in self._recent)

    def _beyond(self, number: int, step_ns: int) -> Verdict:
        """The verdict on a step beyond the limit."""
        level, limit = self._quiet[:2]
        ratio = step_ns / level
        period = self._period(number, ratio)
        self._slow[number] = ratio
        if len(self._slow) > RECENT_SLOW:
            del self._slow[next(iter(self._slow))]
        return Verdict(level, limit, not period, period)

    def _take_in(self, steps: Sequence[Step | int], durations: list[int], are_comparable: bool = True) -> None:
        self._levels.take_in(durations, are_comparable)
        self._recent.extend(steps)
        self._learnt += len(durations)

    def _settle(self) -> None:
        """What was taken in changes the limit."""
        if self._learnt - self._spread_of >= SPREAD_STEPS and self._learnt >= FIRST_STEPS:
            self._spread_of = self._learnt - self._learnt % SPREAD_STEPS
            self._factor = self._levels.factor
        if self._factor:
            level = self._levels.level_ns
            self._quiet = Verdict(level, max(int(level * self._factor), level + LEAST_NS))
            self._share = max(2 * _HASHES * level // LEAST_NS, _HASHES // MOST_SKIPPED)

    def _period(self, number: int, ratio: float) -> int:
        """The interval at which steps like this one come; 0 if there is none."""
        for before in reversed(self._slow):
            period = number - before
            if period >= SHORTEST_PERIOD:
                series = [self._slow.get(number - period * back, 0.0) for back in range(1, SERIES + 1)]
                if all(series) and ratio <= SERIES_GROWTH * max(series):
                    return period
        return 0


def typical(steps: Iterable[Step]) -> Step:
    """The medians of some steps, field by field; UNKNOWN where nothing was observed.

    A step waits for a core as long as all of them do for what they compute: of steps that take less than other work
    keeps a core, most wait for nothing, and a few for the others. What happens once is not usual: it is the median of a
    few blocks of steps.
    """
    some = [*steps]
    known = ([value for value in values if value != UNKNOWN] for values in zip(*some, strict=True))
    medians = Step._make(median_low(values) if values else UNKNOWN for values in known)
    asked = [(step.queued_ns, step.processor_ns) for step in some if UNKNOWN not in (step.queued_ns, step.processor_ns)]
    if not asked:
        return medians
    size = -(-len(asked) // QUEUE_BLOCKS)
    blocks = (map(sum, zip(*asked[first : first + size], strict=True)) for first in range(0, len(asked), size))
    per_ns = median_low(queued_ns / max(processor_ns, 1) for queued_ns, processor_ns in blocks)
    return medians._replace(queued_ns=int(medians.processor_ns * per_ns))


class PlainLevels:
    """The level around each step, and the ratios of the last steps to it. `native/levels.c` does the same in C."""

    def __init__(self) -> None:
        self._level: _Window[int] = _Window(LEVEL_STEPS)
        self._ratios: _Window[float] = _Window(RATIOS)

    def take_in(self, durations: list[int], are_comparable: bool) -> None:
        """Steps in their order; those that are not comparable say nothing of how much steps scatter."""
        for step_ns in durations:
            if are_comparable and len(self._level.ordered) >= FIRST_LEVEL:
                self._ratios.add(step_ns / self.level_ns)
            self._level.add(step_ns)

    @property
    def level_ns(self) -> int:
        """The median of the last steps."""
        ordered = self._level.ordered
        return max(ordered[len(ordered) // 2], 1) if ordered else 1

    @property
    def factor(self) -> float:
        """Times the level, beyond which a step is slow."""
        return _factor(self._ratios.ordered)


class _Window(Generic[_Number]):
    """The last numbers, in their order and by size."""

    def __init__(self, length: int) -> None:
        self.ordered: list[_Number] = []
        self._last: deque[_Number] = deque()
        self._length = length

    def add(self, number: _Number) -> None:
        """Take in a number, in place of the oldest one."""
        self._last.append(number)
        insort(self.ordered, number)
        if len(self._last) > self._length:
            del self.ordered[bisect_left(self.ordered, self._last.popleft())]


try:
    from tracekit.native._levels import Levels
except ImportError:
    Levels = PlainLevels  # type: ignore[assignment,misc]


class _Trend:
    """Do steps lengthen?"""

    def __init__(self) -> None:
        self._block: list[int] = []
        self._blocks: deque[float] = deque(maxlen=BLOCKS)  # means, without the longest steps of each
        self._shortest = 0.0  # that BLOCKS in a row did not exceed
        self._growth = GROWTH
        self._has_lengthened = False  # as of the last block

    def lengthened(self, durations: list[int]) -> bool:
        """Take in steps, no more than the current block has room for. Whether steps have lengthened so far that it is
        to be told."""
        self._block += durations
        if len(self._block) == BLOCK_STEPS:
            counted = sorted(self._block)[:-CUT]
            self._blocks.append(sum(counted) / len(counted))
            self._block.clear()
            if len(self._blocks) == BLOCKS:
                self._shortest = min(self._shortest or max(self._blocks), max(self._blocks))
                self._has_lengthened = min(self._blocks) > self._growth * self._shortest
        return self._has_lengthened

    def told(self, durations: list[int]) -> list[int]:
        """Take in steps of which none is slow. The places of those at which it is told that steps have lengthened."""
        told, at = [], 0
        while at < len(durations):
            # One that was not told yet is told at the next step; otherwise, nothing changes before a block is full.
            steps = 1 if self._has_lengthened else BLOCK_STEPS - len(self._block)
            piece = durations[at : at + steps]
            at += len(piece)
            if self.lengthened(piece):
                self.tell()
                told.append(at - 1)
        return told

    def tell(self) -> None:
        """It is told: the next time when steps take FURTHER_GROWTH times as long again."""
        self._growth = FURTHER_GROWTH * self._blocks[-1] / max(self._shortest, 1.0)
        self._has_lengthened = False


def _factor(ratios: list[float]) -> float:
    """How many times the level a step may take, from the ratios of earlier steps in order of size."""
    count = len(ratios)
    if not count:
        return 0.0
    ends = ((ratios[int(lower * count)], ratios[int(upper * count)]) for lower, upper in TAILS)
    tail = min(upper + STRETCH * (upper - lower) for lower, upper in ends) - 1
    beyond = max(LEAST_SHARE, min(DEVIATIONS * _mad(ratios), MOST_TAILS * tail), tail)
    return 1 + beyond * (1 + FEW_RATIOS / count if count < MANY_RATIOS else 1)


def _mad(ordered: list[float]) -> float:
    """The median of the distances from the median: the half of all numbers that is nearest to it lies side by side."""
    count = len(ordered)
    median, half = ordered[count // 2], count // 2
    first = bisect_left(range(count - half), True, key=lambda at: median - ordered[at] <= ordered[at + half] - median)
    return max(median - ordered[first], ordered[first + half - 1] - median)
