"""Durations of the steps of simulated loops, in ns, with slow steps planted into them."""

import math
import random
from collections.abc import Callable, Iterable, Iterator

from tracekit.watched import Step
from tracekit.watched.usual import Usual, Verdict

Noise = Callable[[random.Random, int], float]  # the duration of a step, divided by the usual one


def a_step(number: int = 0, step_ns: int = 10_000_000, **parts: int) -> Step:
    """A step in which nothing happens, but for the parts given."""
    return Step(number, number * step_ns, step_ns, step_ns, *[0] * 7)._replace(**parts)


def verdicts(durations: Iterable[int], together: int = 1) -> list[Verdict]:
    """What is said of each; where so many together are taken in that were not beyond the limit."""
    said, taken_in = list[Verdict](), 0
    steps = [a_step(number, step_ns) for number, step_ns in enumerate(durations)]
    usual = Usual(steps.__getitem__)
    for step in steps:
        quiet, number = usual.quiet, step.number
        is_beyond = not 0 <= step.step_ns <= quiet.limit_ns
        if is_beyond or number - taken_in >= together - 1:
            numbers = usual.sample(taken_in, number)
            for told in usual.learn(numbers, [steps[learnt].step_ns for learnt in numbers]):
                said[told] = said[told]._replace(trend=True)
            taken_in = number + 1
            quiet = usual.judge(step)
        said.append(quiet)
    return said


def student(degrees: int, scale: float) -> Noise:
    """The t distribution, whose tails are the heavier the fewer its degrees of freedom are."""

    def drawn(source: random.Random, _: int) -> float:
        spread = math.sqrt(source.gammavariate(degrees / 2, 2) / degrees)
        return max(1 + scale * source.gauss(0, 1) / spread, 0.05)

    return drawn


def wandering(scale: float, noise: float) -> Noise:
    """Gaussian noise around a pace that wanders: what lasts for about 100 steps is a share `scale` of it."""
    pace = [0.0]

    def drawn(source: random.Random, _: int) -> float:
        pace[0] = 0.99 * pace[0] + 0.141 * scale * source.gauss(0, 1)
        return math.exp(pace[0]) * source.gauss(1, noise)

    return drawn


QUIET: dict[str, Noise] = {
    "constant": lambda source, _: 1.0,
    "gauss 2 %": lambda source, _: source.gauss(1, 0.02),
    "gauss 10 %": lambda source, _: source.gauss(1, 0.1),
    "quantised": lambda source, _: round(source.gauss(1, 0.02), 1),
    "lognormal 5 %": lambda source, _: source.lognormvariate(0, 0.05),
    "lognormal 30 %": lambda source, _: source.lognormvariate(0, 0.3),
    "exponential 5 %": lambda source, _: 1 + source.expovariate(20),
    "t with 3 degrees of freedom, 1 %": student(3, 0.01),
    "t with 4 degrees of freedom, 2 %": student(4, 0.02),
    "t with 5 degrees of freedom, 5 %": student(5, 0.05),
    "wandering pace": wandering(0.05, 0.02),
    "every 4th twice as long": lambda source, number: source.gauss(1, 0.03) * (2 if number % 4 == 3 else 1),
    "every 10th 3 times as long": lambda source, number: source.gauss(1, 0.03) * (3 if number % 10 == 9 else 1),
    "every other twice as long": lambda source, number: source.gauss(1, 0.03) * (1 + number % 2),
    "one in 4 twice as long": lambda source, _: source.gauss(1, 0.03) * (2 if source.random() < 0.25 else 1),
    "every 50th a third as long": lambda source, number: source.gauss(1, 0.03) / (3 if number % 50 == 49 else 1),
}


def loop(noise: Noise, steps: int, usual_ns: int = 100_000_000, seed: int = 1) -> Iterator[int]:
    """The durations of its steps."""
    source = random.Random(seed)
    return (int(usual_ns * noise(source, number)) for number in range(steps))


def false_alarms(noise: Noise, steps: int, usual_ns: int, seed: int = 1, together: int = 1) -> int:
    """How often a loop in which nothing was planted is called slow, or is said to lengthen."""
    return sum(verdict.slow or verdict.trend for verdict in verdicts(loop(noise, steps, usual_ns, seed), together))


def caught(
    noise: Noise, steps: int, usual_ns: int, times: float, rate: float, seed: int = 1, together: int = 1
) -> tuple[int, int]:
    """Of the steps that last (times - 1) usual steps longer, one in 1 / rate: how many are called slow, of how many."""
    source = random.Random(seed)
    planted = [number > 100 and source.random() < rate for number in range(steps)]
    durations = zip(loop(noise, steps, usual_ns, seed), planted, strict=True)
    longer = (step_ns + int(here * (times - 1) * usual_ns) for step_ns, here in durations)
    said = [verdict.slow for verdict, here in zip(verdicts(longer, together), planted, strict=True) if here]
    return sum(said), len(said)
