"""How much of the GPU's work belongs to forward, backward and the optimizer? Decided by where it was launched."""

import numpy as np

from tracekit.profile import Profile
from tracekit.trace.enclosing import enclosing
from tracekit.trace.roles import OPTIMIZER_STEP
from tracekit.units import percent


def phases(profile: Profile) -> dict[str, float]:
    """The share of each in the GPU's work in counted steps; nothing where neither of the last two launches anything.

    What a CUDA graph replays counts for the phase that launches the graph.
    """
    trace = profile.trace
    launches, activities = trace.links.launches, trace.links.activities
    counted = profile.in_counted(trace.steps.of(trace.ts_ns[launches]))
    if not counted.any() or not trace.census.any(lambda roles: roles.backward_node | roles.named(OPTIMIZER_STEP)):
        return {}
    calls, which = np.unique(launches[counted], return_inverse=True)
    backward = enclosing(trace, calls, lambda part: part.roles.backward_node) >= 0
    optimizer = enclosing(trace, calls, lambda part: part.roles.annotation & part.roles.named(OPTIMIZER_STEP)) >= 0
    phase = np.where(optimizer, 2, np.where(backward, 1, 0))[which]
    times = np.bincount(phase, trace.dur_ns[activities[counted]], minlength=3)
    if not times[1:].any():
        return {}
    names = ("forward and the rest", "backward", "the optimizer")
    return {name: float(time) for name, time in zip(names, times / times.sum(), strict=True) if time > 0}


def sentence(profile: Profile) -> str:
    """The same in words: `by phase: forward and the rest 31.0 %, backward 58.2 %`."""
    listed = ", ".join(f"{name} {percent(share)}" for name, share in phases(profile).items())
    return f"by phase: {listed}" if listed else ""
