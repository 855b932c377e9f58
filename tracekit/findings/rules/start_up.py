"""Is time lost to something that only starts up, in the first steps or where code is loaded at its first use, or to the
profiler itself?
"""

from collections.abc import Iterator

import numpy as np

from tracekit.findings import Finding, Where, blamed_events, evidence, rule
from tracekit.findings.culprits import by_name, plain
from tracekit.profile import Profile
from tracekit.profile.start_up import cold_said
from tracekit.units import duration


@rule("lost_to_tools")
def lost_to_tools(profile: Profile) -> Iterator[Finding]:
    """`cold_start` if GPU code is loaded at its first use, `profiler_overhead` if the profiler delays the host."""
    mean, pieces = profile.means["wall"], profile.attribution.pieces
    if mean is None:
        return
    if mean.parts["module_load"]:
        is_lost = pieces.of("module_load")
        culprits = [culprit for culprit in by_name(profile, is_lost) if len(culprit.rows)]
        yield Finding(
            "cold_start",
            f"GPU code is loaded at its first use{f' by {plain(culprits[0].name)}' if culprits else ''}",
            why=f"The GPU idles for {duration(mean.parts['module_load'])} a step meanwhile.",
            do="Warm up before you measure or record; CUDA_MODULE_LOADING=EAGER loads everything at the start.",
            where=Where(operator=culprits[0].name) if culprits else Where(),
            evidence=evidence(profile, culprits[0].rows) if culprits else (),
            link="https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#lazy-loading",
            claim=pieces.union(is_lost),
        )
    if mean.parts["profiler"]:
        is_lost = pieces.of("profiler")
        yield Finding(
            "profiler_overhead",
            "The profiler itself delays the host",
            why=f"The GPU idles for {duration(mean.parts['profiler'])} a step because of it.",
            do="Record fewer steps, without stacks and shapes, and rely on the step time of a run that is not "
            "profiled.",
            evidence=evidence(profile, blamed_events(profile, is_lost)),
            link="https://docs.pytorch.org/docs/stable/profiler.html",
            claim=pieces.union(is_lost),
        )


_LINK = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#lazy-loading"
_FIRST = "the first "


@rule("start_up")
def start_up(profile: Profile) -> Iterator[Finding]:
    """`cold_start`, of steps that the means leave out: its cost is a total, spread over all steps for programs."""
    cold, view = profile.cold_steps, profile.attribution.answered_view
    if not cold:
        return
    steps = int(view.known.sum())
    cost = sum(sum(step.parts.values()) for step in cold) / steps
    largest_part = max(cold, key=lambda step: sum(step.parts.values())).largest_part
    trace, of_cold = profile.trace, np.array([step.index for step in cold])
    calls = trace.where(lambda part: part.roles.host & ~part.roles.annotation & part.lasting)
    yield Finding(
        "cold_start",
        f"One-time start-up makes the first {'step' if len(cold) == 1 else f'{len(cold)} steps'} longer",
        cost,
        "Warm up first: this happens once, so it matters only in a short run.",
        f"Left out of the means: {cold_said(profile)}. No other figure contains it.",
        share=cost / float(view.step_ns[view.known].mean()),
        where=Where(operator=largest_part.removeprefix(_FIRST)) if largest_part.startswith(_FIRST) else Where(),
        evidence=evidence(profile, calls[np.isin(trace.steps.of(trace.ts_ns[calls]), of_cold)]),
        link=_LINK,
        once=True,
        over_steps=steps,
    )
