"""In steps that replay CUDA graphs, what is still submitted call by call between the replays?"""

from collections.abc import Iterator

import numpy as np

from tracekit.engine.buckets import SUBMITTING
from tracekit.findings import Finding, evidence, rule
from tracekit.findings.compiler_advice import graphs_recorded, into_graphs
from tracekit.findings.culprits import outermost_operators, plain, where_of_event
from tracekit.findings.holes import OFTEN, is_hole
from tracekit.intervals import Bools, Ints, distinct
from tracekit.profile import Profile
from tracekit.units import duration, many, times

_LINK = "https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html"


@rule("eager_remainders")
def eager_remainders(profile: Profile) -> Iterator[Finding]:
    """`eager_remainders`, which is not one of `VERDICTS`: the GPU idles until work that no graph holds is submitted."""
    trace, pieces = profile.trace, profile.attribution.pieces
    if profile.means["wall"] is None or not trace.census.any(lambda roles: roles.graph_launch):
        return
    calls = _counted_calls(profile)
    replays = trace.events_at(calls).roles.graph_launch
    eager = calls[~replays]
    is_eager_wait = pieces.of(*SUBMITTING) & ~is_hole(pieces)
    is_eager_wait &= _until_one_of(profile, eager)
    steps = profile.counted_steps
    if (
        replays.sum() < steps
        or graphs_recorded(profile) >= OFTEN
        or not (is_eager_wait & profile.counted[pieces.step]).any()
    ):
        return
    operator, row = _most_calls(profile, eager)
    location = where_of_event(profile, row, operator)
    idle = float(pieces.dur[is_eager_wait & profile.counted[pieces.step]].sum()) / steps
    yield Finding(
        "eager_remainders",
        f"Work is left outside of CUDA graphs, most of all {operator}{location.at}",
        why=f"Besides replaying graphs {times(round(replays.sum() / steps))} a step, the host makes "
        f"{many(round(len(eager) / steps), 'separate call')}, and the GPU idles for {duration(idle)} a step waiting "
        "for them.",
        do=f"Move the work between the replays into the graphs: {into_graphs(profile)}. Use a single graph for the "
        "step where possible.",
        where=location,
        evidence=evidence(profile, eager),
        link=_LINK,
        claim=pieces.union(is_eager_wait),
    )


def _counted_calls(profile: Profile) -> Ints:
    """The calls of counted steps that submitted anything."""
    trace = profile.trace
    calls = distinct(trace.links.launches).astype(np.int64)
    return calls[profile.in_counted(trace.steps.of(trace.ts_ns[calls]))]


def _until_one_of(profile: Profile, calls: Ints) -> Bools:
    """The pieces after which the next GPU activity is one that these calls submitted."""
    trace, pieces = profile.trace, profile.attribution.pieces
    lasting = trace.dur_ns[trace.links.activities] > 0
    activities, launches = trace.links.activities[lasting], trace.links.launches[lasting]
    following = np.searchsorted(trace.ts_ns[activities], pieces.end)
    has_next = following < len(activities)
    ended: Bools = np.zeros(len(pieces.end), bool)
    ended[has_next] = np.isin(launches[following[has_next]], calls)
    return ended


def _most_calls(profile: Profile, calls: Ints) -> tuple[str, int]:
    """The outermost operator under which most of them are made, and the first of those."""
    trace = profile.trace
    outer = outermost_operators(profile, calls)
    codes = np.where(outer >= 0, trace.name_codes[np.maximum(outer, 0)], trace.name_codes[calls])
    names, first, number = np.unique(codes, return_index=True, return_counts=True)
    most_frequent = int(number.argmax())
    return plain(trace.names[names[most_frequent]]), int(calls[first[most_frequent]])
