"""How do the steps of a program differ? Decided once for a run, from all its passes together.

Each pass alone would decide by itself whether it quotes a median or a mean over periods, and an average over passes
would mix both. Variants of the same parameters run the same steps, so they have one pattern.
"""

import math

from msgspec.structs import replace

from tracekit.run.model import Measured, Run, Variant
from tracekit.statistics.typical_step import StepPattern, step_pattern, typical_steps
from tracekit.statistics.uncertainty import undisturbed


def with_common_period(run: Run) -> Run:
    """The run with the step times of all passes by the pattern that all of them show together."""
    timed = [variant for variant in run.variants if variant.measured is not None and variant.measured.passes]
    patterns: list[tuple[Variant, StepPattern]] = []
    for variant in timed:
        fitting_patterns = (pattern for candidate, pattern in patterns if _runs_the_same(variant, candidate))
        pattern = next(fitting_patterns, None) or _common(
            [candidate for candidate in timed if _runs_the_same(variant, candidate)]
        )
        patterns.append((variant, pattern))
    by_name = {variant.name: pattern for variant, pattern in patterns}
    return replace(
        run,
        variants=[
            replace(variant, measured=_with_pattern(variant.measured, by_name[variant.name]))
            if variant.name in by_name and variant.measured is not None
            else variant
            for variant in run.variants
        ],
    )


def _runs_the_same(first: Variant, second: Variant) -> bool:
    return (first.params, first.workload) == (second.params, second.workload)


def _common(variants: list[Variant]) -> StepPattern:
    """The pattern of all their passes or, where these show none together, that of the variant that shows one."""
    times = [[timed_pass.step_all_ns for timed_pass in _measured(variant).passes] for variant in variants]
    pattern = step_pattern([timed_pass for passes in times for timed_pass in passes])
    return max([pattern, *map(step_pattern, times)], key=_tells) if pattern.period == 1 else pattern


def _tells(pattern: StepPattern) -> tuple[int, bool]:
    return pattern.period, not pattern.alike


def _measured(variant: Variant) -> Measured:
    assert variant.measured is not None
    return variant.measured


def _with_pattern(measured: Measured, pattern: StepPattern) -> Measured:
    quoted = typical_steps([timed_pass.step_all_ns for timed_pass in measured.passes], pattern)
    passes = [
        replace(timed_pass, step_ns=step_ns, alike=pattern.alike, period=pattern.period)
        for timed_pass, step_ns in zip(measured.passes, quoted, strict=True)
    ]
    counted = [math.log(timed_pass.step_ns) for timed_pass in passes if timed_pass.counted]
    return replace(measured, step_ns=max(1, round(math.exp(undisturbed(counted)))), passes=passes)
