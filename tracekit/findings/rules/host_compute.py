"""Does the CPU compute something in a step, while the GPU waits for it?"""

import re
from collections.abc import Iterator

import numpy as np

from tracekit.engine.buckets import SLOW_HOST
from tracekit.findings import Finding, evidence, rule
from tracekit.findings.culprits import plain
from tracekit.findings.where import where_of_event
from tracekit.intervals import Ints, Union
from tracekit.profile import Profile
from tracekit.trace.enclosing import enclosing
from tracekit.trace.roles import OPERATOR
from tracekit.units import count, duration, many

_LEAST_NS = 500_000  # at a time: dispatching an operator takes far less, and shorter ones are told with that
_WORKS = re.compile(r"(?:aten::(?!_?empty)|torchvision::|torchaudio::|torch_\w+::|pyg::)\w+")
_LINK = "https://docs.pytorch.org/docs/stable/notes/cuda.html"


@rule("host_compute")
def host_compute(profile: Profile) -> Iterator[Finding]:
    """`cpu_compute` in a run on a GPU: operators that compute on the CPU, one finding for each name."""
    trace, pieces = profile.trace, profile.attribution.pieces
    if profile.means["wall"] is None or trace.device != "gpu":
        return
    rows = computing(profile)
    rows = rows[profile.in_counted(trace.steps.of(trace.ts_ns[rows]))]
    for code in np.unique(trace.name_codes[rows]).tolist():
        named = rows[trace.name_codes[rows] == code]
        events, dur = trace.events_at(named), trace.dur_ns[named]
        name, steps = plain(trace.names[code]), len(np.unique(trace.steps.of(events.ts_ns)))
        culprit = where_of_event(profile, int(named[dur.argmax()]), name)
        often = duration(dur.sum() / profile.counted_steps) + " a step"
        if steps < profile.counted_steps:
            often = f"{duration(dur.sum())} in all, in {count(steps)} of {many(profile.counted_steps, 'step')}"
        yield Finding(
            "cpu_compute",
            f"The GPU waits while the CPU computes {name}{culprit.at}",
            why=f"It computes on the CPU for {often}, and submits nothing to the GPU.",
            do="Let it work on the GPU (create its tensors with device=...), or do it ahead of the step, in a worker "
            "of the data loader.",
            where=culprit,
            evidence=evidence(profile, named),
            link=_LINK,
            claim=pieces.union(pieces.of(*SLOW_HOST) & np.isin(pieces.event, named)),
            host=Union.of(events.ts_ns, events.end_ns),
        )


def computing(profile: Profile) -> Ints:
    """The operators that call nothing of the GPU and usually take long, if some keep the GPU waiting; not those of
    backward, which run where the forward did."""
    trace, pieces = profile.trace, profile.attribution.pieces
    works = trace.labels.fits(_WORKS)
    waits = pieces.of("dispatch") & (pieces.event >= 0) & (pieces.dur >= _LEAST_NS)
    blamed: Ints = np.unique(pieces.event[waits]).astype(np.int64)
    blamed = blamed[works[trace.name_codes[blamed]] & (trace.labels.kinds[trace.cat_codes[blamed]] == OPERATOR)]
    if not len(blamed):
        return blamed
    codes = np.unique(trace.name_codes[blamed])
    alike = trace.where(lambda part: (part.roles.kind == OPERATOR) & np.isin(part.name_codes, codes) & part.lasting)
    calls = trace.where(lambda part: part.roles.runtime & part.process)
    alike = np.setdiff1d(alike, _around(profile, calls, alike))
    codes = np.unique(trace.name_codes[alike])
    usual = ((code, np.median(trace.dur_ns[alike[trace.name_codes[alike] == code]])) for code in codes.tolist())
    long = [code for code, median in usual if median >= _LEAST_NS]
    alike = alike[np.isin(trace.name_codes[alike], long)]
    forward: Ints = alike[enclosing(trace, alike, lambda part: part.roles.backward_node) < 0]
    return forward


def _around(profile: Profile, calls: Ints, among: Ints) -> Ints:
    """Those of the operators in which one of the calls is made: also the outer ones, of those that are nested."""
    trace = profile.trace
    found = [np.zeros(0, np.int64)]
    for track in np.unique(trace.track[among]).tolist():
        rows = among[trace.track[among] == track]
        made = trace.ts_ns[calls[trace.track[calls] == track]]
        events = trace.events_at(rows)
        found.append(rows[np.searchsorted(made, events.end_ns) > np.searchsorted(made, events.ts_ns)])
    return np.concatenate(found)
