"""Are the first steps long only because something starts up in them?"""

from collections.abc import Iterator

import numpy as np

from tracekit.findings import Finding, Where, evidence, rule
from tracekit.profile import Profile
from tracekit.profile.start_up import cold_said
from tracekit.units import count

_LINK = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#lazy-loading"
_FIRST = "the first "


@rule("start_up")
def start_up(profile: Profile) -> Iterator[Finding]:
    """`cold_start`, of steps that the means leave out: its cost is spread over all steps."""
    cold, view = profile.cold_steps, profile.attribution.answered_view
    if not cold:
        return
    steps = int(view.known.sum())
    cost = sum(sum(each.parts.values()) for each in cold) / steps
    most = max(cold, key=lambda each: sum(each.parts.values())).most
    trace, of_cold = profile.trace, np.array([each.index for each in cold])
    calls = trace.where(lambda part: part.roles.host & ~part.roles.annotation & part.lasting)
    yield Finding(
        "cold_start",
        f"One-time start-up makes the first {'step' if len(cold) == 1 else f'{len(cold)} steps'} longer",
        cost,
        "Warm up first: this happens once, so it matters only in a short run.",
        f"Left out of the means: {cold_said(profile)}. The cost is spread over all {count(steps)} steps, and no other "
        "figure contains it.",
        share=cost / float(view.step_ns[view.known].mean()),
        where=Where(operator=most.removeprefix(_FIRST)) if most.startswith(_FIRST) else Where(),
        evidence=evidence(profile, calls[np.isin(trace.steps.of(trace.ts_ns[calls]), of_cold)]),
        link=_LINK,
        once=True,
    )
