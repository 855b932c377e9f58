"""Do elementwise kernels follow each other, each reading from memory what the one before it wrote there?"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tracekit.findings import Finding, rule
from tracekit.findings.counted import counted_steps
from tracekit.findings.kernels import blaming, classes, kernels
from tracekit.findings.traffic import ELEMENTWISE, moved
from tracekit.intervals import Bools, Ints, runs
from tracekit.profile import Profile
from tracekit.units import count, size

_LINK = "https://docs.pytorch.org/docs/stable/generated/torch.compile.html"
_WORTH_SAYING = 1 << 20  # bytes a step


@dataclass(frozen=True)
class _Chains:
    """Elementwise kernels that follow each other on one stream in one step."""

    number: int
    handing_on: Ints  # the rows of all but the last of each
    shorter: Ints  # of all but the longest: those that one kernel could save


@rule("unfused_elementwise")
def unfused_elementwise(profile: Profile) -> Iterator[Finding]:
    """Beyond the verdicts' list: of each chain all but its longest kernel could be saved at most."""
    trace = profile.trace
    rows = kernels(profile, lambda events: ~events.roles.communication)
    rows = rows[np.lexsort((rows, trace.track[rows]))]  # stream by stream
    chains = _chains(profile, rows, _is_fusible(profile, rows))
    if not chains.number:
        return
    steps = counted_steps(profile)
    yield blaming(
        profile,
        chains.shorter,
        Finding(
            "unfused_elementwise",
            f"{count(round((len(chains.shorter) + chains.number) / steps))} elementwise kernels a step follow one "
            f"another, in {count(round(chains.number / steps))} chains{_bytes_saved(profile, chains)}",
            advice="Fuse them: torch.compile makes one kernel of a chain, which reads and writes memory once; those of "
            "an optimizer are fused by fused=True or foreach=True.",
            link=_LINK,
            confidence="inferred",
        ),
    )


def _bytes_saved(profile: Profile, chains: _Chains) -> str:
    """What is written only to be read again by the next in the chain, where shapes tell it."""
    work = moved(profile)
    between = np.isin(work.rows, chains.handing_on)
    if not between.any():
        return ""
    asked = np.isin(profile.sample.kernels, chains.handing_on).sum()
    saved = 2 * int(work.written[between].sum())
    if saved < _WORTH_SAYING:
        return ""
    least = "at least " if between.sum() < asked else ""
    return f", and hand on through memory what one kernel would keep: {least}{size(saved)} a step, written and read"


def _is_fusible(profile: Profile, rows: Ints) -> Bools:
    """Which of them are elementwise kernels that nobody fused yet."""
    fused = np.fromiter(("triton" in name for name in profile.trace.names), bool, len(profile.trace.names))
    fusible: Bools = np.isin(classes(profile, rows), ELEMENTWISE) & ~fused[profile.trace.name_codes[rows]]
    return fusible


def _chains(profile: Profile, rows: Ints, fusible: Bools) -> _Chains:
    """The chains among kernels in order of their streams and starts."""
    trace = profile.trace
    dur, step = trace.dur_ns[rows], trace.steps.of(trace.ts_ns[trace.links.launch(rows)])
    stretch = (step + 1) * len(trace.tracks) + trace.track[rows]
    bounds = runs(np.where(fusible, stretch, -1))
    sizes = np.diff(bounds)
    stretches = np.repeat(np.arange(len(sizes)), sizes)
    longest_first = np.lexsort((-dur, stretches))
    chained = fusible & (sizes[stretches] > 1)
    shorter, handing_on = chained.copy(), chained.copy()
    shorter[longest_first[bounds[:-1]]] = False
    handing_on[bounds[1:] - 1] = False
    return _Chains(int((fusible[bounds[:-1]] & (sizes > 1)).sum()), rows[handing_on], rows[shorter])
