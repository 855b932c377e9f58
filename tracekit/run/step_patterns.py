"""How do the steps of a program differ? Decided once for a run, from all its passes together.

Each pass alone would decide by itself whether it quotes a median or a mean over periods, and an average over passes
would mix both. Variants of the same parameters run the same steps, so they have one pattern.
"""

import math
from collections.abc import Sequence

from msgspec.structs import replace

from tracekit.run.model import Measured, Run
from tracekit.statistics.typical_step import StepPattern, step_pattern, typical_steps
from tracekit.statistics.uncertainty import undisturbed


def with_common_period(run: Run) -> Run:
    """The run with the step times of all passes by the pattern that all of them show together."""
    timed = [(variant, variant.measured) for variant in run.variants if variant.measured and variant.measured.passes]
    by_name: dict[str, Measured] = {}
    for variant, _ in timed:
        if variant.name in by_name:
            continue
        program = variant.params, variant.workload
        of_program = [
            (candidate.name, measured)
            for candidate, measured in timed
            if (candidate.params, candidate.workload) == program
        ]
        pattern = _common([measured for _, measured in of_program])
        by_name |= {name: _with_pattern(measured, pattern) for name, measured in of_program}
    variants = [replace(variant, measured=by_name.get(variant.name, variant.measured)) for variant in run.variants]
    return replace(run, variants=variants)


def _common(captures: Sequence[Measured]) -> StepPattern:
    """The pattern of all their passes or, where these show none together, that of the variant that shows one."""
    times = [[timed_pass.step_all_ns for timed_pass in measured.passes] for measured in captures]
    pattern = step_pattern([steps_ns for passes in times for steps_ns in passes])
    if pattern.period > 1:
        return pattern
    return max([pattern, *map(step_pattern, times)], key=lambda candidate: (candidate.period, not candidate.alike))


def _with_pattern(measured: Measured, pattern: StepPattern) -> Measured:
    quoted = typical_steps([timed_pass.step_all_ns for timed_pass in measured.passes], pattern)
    passes = [
        replace(timed_pass, step_ns=step_ns, alike=pattern.alike, period=pattern.period)
        for timed_pass, step_ns in zip(measured.passes, quoted, strict=True)
    ]
    counted = [math.log(timed_pass.step_ns) for timed_pass in passes if timed_pass.counted]
    return replace(measured, step_ns=max(1, round(math.exp(undisturbed(counted)))), passes=passes)
