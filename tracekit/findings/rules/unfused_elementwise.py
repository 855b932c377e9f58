"""Do elementwise kernels follow each other, each reading from memory what the one before it wrote there?"""

from collections.abc import Iterator

import numpy as np

from tracekit.analyses.kernel_class import kernel_class
from tracekit.findings import Finding, evidence, rule
from tracekit.findings.counted import Steps
from tracekit.findings.kernels import dearest, kernels, time_of
from tracekit.intervals import Bools, Ints, runs
from tracekit.kernel_names import short_kernel
from tracekit.profile import Profile
from tracekit.units import count

_LINK = "https://docs.pytorch.org/docs/stable/generated/torch.compile.html"
_FUSIBLE = ("elementwise", "random")


@rule("unfused_elementwise")
def unfused_elementwise(profile: Profile) -> Iterator[Finding]:
    """Beyond the verdicts' list: of each chain all but its longest kernel could be saved at most."""
    trace = profile.trace
    rows = kernels(profile, lambda events: ~events.roles.communication)
    rows = rows[np.lexsort((rows, trace.track[rows]))]  # stream by stream
    saved, chains = _all_but_the_longest(profile, rows, _is_fusible(profile, rows))
    if not len(saved):
        return
    where, own = dearest(profile, saved)
    steps = len(Steps.of(profile).low)
    yield Finding(
        "unfused_elementwise",
        f"{count(round((len(saved) + chains) / steps))} elementwise kernels a step follow one another, in "
        f"{count(round(chains / steps))} chains, most of all {short_kernel(where.kernel or '')}",
        claim=time_of(profile, saved),
        where=where,
        evidence=evidence(profile, own),
        advice="Fuse them: torch.compile makes one kernel of a chain, which reads and writes memory once; those of an "
        "optimizer are fused by fused=True or foreach=True.",
        link=_LINK,
        confidence="inferred",
    )


def _is_fusible(profile: Profile, rows: Ints) -> Bools:
    """Which of them are elementwise kernels that nobody fused yet."""
    trace = profile.trace
    makers = trace.operators.of(trace.links.launch(rows))
    operators = np.where(makers >= 0, trace.name_codes[np.maximum(makers, 0)].astype(np.int64), -1)
    keys, which = np.unique(
        trace.name_codes[rows] * np.int64(len(trace.names) + 1) + operators + 1, return_inverse=True
    )
    fusible = []
    for key in keys.tolist():
        name, operator = divmod(key, len(trace.names) + 1)
        label = kernel_class(trace.names[name], trace.names[operator - 1] if operator else None)
        fusible.append(label in _FUSIBLE and "triton" not in trace.names[name])
    return np.array(fusible, bool)[which]


def _all_but_the_longest(profile: Profile, rows: Ints, fusible: Bools) -> tuple[Ints, int]:
    """Of each chain of fusible kernels on one stream in one step all but the longest, and how many chains there are."""
    trace = profile.trace
    dur, step = trace.dur_ns[rows], trace.steps.of(trace.ts_ns[trace.links.launch(rows)])
    stretch = (step + 1) * len(trace.tracks) + trace.track[rows]
    bounds = runs(np.where(fusible, stretch, -1))
    sizes = np.diff(bounds)
    chain = np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((-dur, chain))
    saved = fusible & (sizes[chain] > 1)
    chains = int((fusible[bounds[:-1]] & (sizes > 1)).sum())
    saved[order[bounds[:-1]]] = False
    return rows[saved], chains
