"""How much of the GPU's work belongs to forward, backward and the optimizer? Decided by where it was launched."""

import re

import numpy as np

from tracekit.intervals import Bools, Ints
from tracekit.profile import Profile
from tracekit.trace.enclosing import enclosing
from tracekit.trace.roles import USER
from tracekit.trace.rows import Events
from tracekit.units import percent

_NAMES = ("forward and the rest", "backward", "the optimizer")
# What programs call these parts themselves: `## backward ##`, `(B) micro-batch 3`.
_BACKWARD = re.compile(r"(?:##? *)?(?:\([BW]\)|backward\b).*", re.DOTALL | re.IGNORECASE)
_OPTIMIZER = re.compile(r"(?:##? *)?(?:Optimizer\b|optim\b|zero_grad\b).*", re.DOTALL | re.IGNORECASE)
# Kernels of backward; those that Inductor fuses are named after all that is in them.
_GRADIENT = re.compile(r"(?!triton_).*(?:dgrad|wgrad|bgrad|[Bb]ackward).*", re.DOTALL)
_UNTOLD = 0.01  # of the work: where more kernels of backward seem to be forward's, phases cannot be told
_GRAPHED = 0.5  # of the work, in graphs that no phase encloses: they may hold whole steps


def phases(profile: Profile) -> dict[str, float]:
    """The share of each in the GPU's work in counted steps; nothing where neither of the last two launches anything,
    or where what launched the work does not tell.

    Backward is what autograd launches – inside of its nodes, or in its thread – or what the program calls so. What a
    CUDA graph replays counts for the phase that launches the graph.
    """
    trace = profile.trace
    launches, activities = trace.links.launches, trace.links.activities
    counted = profile.in_counted(trace.steps.of(trace.ts_ns[launches]))
    calls, which = np.unique(launches[counted].astype(np.int64), return_inverse=True)
    backward, optimizer = _in_backward(profile, calls), _in_optimizer(profile, calls)
    if not (backward | optimizer).any():
        return {}
    phase = np.where(optimizer, 2, np.where(backward, 1, 0))
    lasted, total = trace.dur_ns[activities[counted]], max(int(trace.dur_ns[activities[counted]].sum()), 1)
    forward = phase[which] == 0
    gradients = trace.labels.fits(_GRADIENT)[trace.name_codes[activities[counted]]]
    graphed = trace.events_at(calls).roles.graph_launch[which]
    if lasted[forward & gradients].sum() > _UNTOLD * total or lasted[forward & graphed].sum() > _GRAPHED * total:
        return {}
    times = np.bincount(phase[which], lasted, minlength=len(_NAMES))
    return {name: float(time) for name, time in zip(_NAMES, times / total, strict=True) if time > 0}


def _in_backward(profile: Profile, calls: Ints) -> Bools:
    trace = profile.trace
    helpers = np.array(trace.threads.helpers, np.int64)
    inside = enclosing(trace, calls, lambda part: part.roles.backward_node | _called(part, _BACKWARD)) >= 0
    return inside | np.isin(trace.track[calls], helpers)


def _in_optimizer(profile: Profile, calls: Ints) -> Bools:
    chosen: Bools = enclosing(profile.trace, calls, lambda part: _called(part, _OPTIMIZER)) >= 0
    return chosen


def _called(part: Events, pattern: re.Pattern[str]) -> Bools:
    """The annotations that have such a name."""
    roles = part.roles
    called: Bools = ((roles.kind == USER) | roles.annotation) & roles.named(pattern)
    return called


def sentence(profile: Profile) -> str:
    """The same in words: `by phase: forward and the rest 31.0 %, backward 58.2 %`."""
    listed = ", ".join(f"{name} {percent(share)}" for name, share in phases(profile).items())
    return f"by phase: {listed}" if listed else ""
