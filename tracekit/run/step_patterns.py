"""How do the steps of a program differ? Decided once for a run, from all its passes together.

Each pass alone would decide by itself whether it quotes a median or a mean over periods, and an average over passes
would mix both. Variants of the same parameters run the same steps, so they have one pattern.
"""

import math

from msgspec.structs import replace

from tracekit.run.model import Measured, Run
from tracekit.statistics.typical_step import step_pattern, typical_steps
from tracekit.statistics.uncertainty import undisturbed


def with_common_period(run: Run) -> Run:
    """The run with the step times of all passes by the pattern that all of them show together."""
    timed = [(variant, variant.measured) for variant in run.variants if variant.measured and variant.measured.passes]
    by_name: dict[str, Measured] = {}
    for variant, _ in timed:
        if variant.name in by_name:
            continue
        program = variant.params, variant.workload
        of_program = [(twin, measured) for twin, measured in timed if (twin.params, twin.workload) == program]
        # The pattern of all their passes or, where these show none together, that of the variant that shows one.
        times = [[timed_pass.step_all_ns for timed_pass in measured.passes] for _, measured in of_program]
        pattern = step_pattern([steps_ns for passes in times for steps_ns in passes])
        if pattern.period == 1:
            candidates = [pattern, *map(step_pattern, times)]
            pattern = max(candidates, key=lambda candidate: (candidate.period, not candidate.alike))
        for (member, measured), step_times in zip(of_program, times, strict=True):
            passes = [
                replace(timed_pass, step_ns=step_ns, alike=pattern.alike, period=pattern.period)
                for timed_pass, step_ns in zip(measured.passes, typical_steps(step_times, pattern), strict=True)
            ]
            counted = [math.log(timed_pass.step_ns) for timed_pass in passes if timed_pass.counted]
            step_ns = max(1, round(math.exp(undisturbed(counted))))
            by_name[member.name] = replace(measured, step_ns=step_ns, passes=passes)
    variants = [replace(variant, measured=by_name.get(variant.name, variant.measured)) for variant in run.variants]
    return replace(run, variants=variants)
