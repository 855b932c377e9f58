"""Does the GPU idle because of the profiler itself, or because code is loaded at its first use?"""

from collections.abc import Iterator

from tracekit.findings import Finding, Where, blamed_events, evidence, rule
from tracekit.findings.culprits import by_name, plain
from tracekit.profile import Profile
from tracekit.units import duration


@rule("lost_to_tools")
def lost_to_tools(profile: Profile) -> Iterator[Finding]:
    """`cold_start` if GPU code is loaded at its first use, `profiler_overhead` if the profiler delays the host."""
    mean, pieces = profile.means["wall"], profile.attribution.pieces
    if mean is None:
        return
    if mean.parts["module_load"]:
        chosen = pieces.of("module_load")
        culprits = [each for each in by_name(profile, chosen) if len(each.rows)]
        yield Finding(
            "cold_start",
            f"GPU code is loaded at its first use{f' by {plain(culprits[0].name)}' if culprits else ''}",
            why=f"The GPU idles for {duration(mean.parts['module_load'])} a step meanwhile.",
            do="Warm up before you measure or record; CUDA_MODULE_LOADING=EAGER loads everything at the start.",
            where=Where(operator=culprits[0].name) if culprits else Where(),
            evidence=evidence(profile, culprits[0].rows) if culprits else (),
            link="https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#lazy-loading",
            claim=pieces.union(chosen),
        )
    if mean.parts["profiler"]:
        chosen = pieces.of("profiler")
        yield Finding(
            "profiler_overhead",
            "The profiler itself delays the host",
            why=f"The GPU idles for {duration(mean.parts['profiler'])} a step because of it.",
            do="Record fewer steps, without stacks and shapes, and rely on the step time of a run that is not "
            "profiled.",
            evidence=evidence(profile, blamed_events(profile, chosen)),
            link="https://docs.pytorch.org/docs/stable/profiler.html",
            claim=pieces.union(chosen),
        )
