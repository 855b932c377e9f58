"""The kernels of the steps that figures are of: which they are, what launched them, and the time they take."""

from collections.abc import Callable

import numpy as np

from tracekit.findings.counted import Steps
from tracekit.findings.finding import Where
from tracekit.intervals import Bools, Ints, Rows, Union
from tracekit.profile import Profile
from tracekit.trace.rows import Events

Ask = Callable[[Events], Bools]


def kernels(profile: Profile, ask: Ask) -> Ints:
    """The rows of GPU activities that are asked for and run while a counted step lasts, in order of their starts.

    There are none where the wall view cannot be answered: what a step does on the GPU is not known then.
    """
    found = [np.zeros(0, np.int64)]
    if profile.means["wall"] is None:
        return found[0]
    steps = Steps.of(profile)
    low, high = steps.low, steps.high
    for part in profile.trace.parts():
        wanted = part.roles.gpu & part.lasting
        wanted[wanted] = ask(profile.trace.rows(part.rows(wanted)))
        rows = part.rows(wanted)
        asked = profile.trace.rows(rows)
        place = np.searchsorted(low, asked.end_ns, side="left") - 1  # the last step that begins before its end
        found.append(rows[(place >= 0) & (asked.ts_ns < high[np.maximum(place, 0)])] if len(low) else rows[:0])
    return np.concatenate(found)


def named(profile: Profile, fits: Callable[[str], bool]) -> Ask:
    """Those whose name fits; each name is looked at once."""
    known = np.fromiter(map(fits, profile.trace.names), bool, len(profile.trace.names))
    return lambda events: known[events.name_codes]


def time_of(profile: Profile, rows: Ints) -> Union:
    """When any of them runs."""
    asked = profile.trace.rows(rows)
    return Union.of(asked.ts_ns, asked.end_ns)


def dearest(profile: Profile, rows: Ints) -> tuple[Where, Ints]:
    """The kernel name that takes most of their time, the operator that launches most of that, and its rows."""
    trace = profile.trace
    own = rows[_heaviest(trace.name_codes[rows], trace.dur_ns[rows])]
    makers = trace.operators.of(trace.links.launch(own))
    operators = np.where(makers >= 0, trace.name_codes[np.maximum(makers, 0)], -1)
    of_most = operators[_heaviest(operators, trace.dur_ns[own])][0]
    name = trace.names[trace.name_codes[own[0]]]
    return Where(kernel=name, operator=trace.names[of_most] if of_most >= 0 else None), own


def share_of_work(profile: Profile, rows: Ints) -> float:
    """Their part of the time that the GPU's work takes in the counted steps."""
    every = kernels(profile, lambda events: ~events.roles.communication)
    return float(profile.trace.dur_ns[rows].sum() / max(profile.trace.dur_ns[every].sum(), 1))


def _heaviest(keys: Ints | Rows, weights: Ints) -> Bools:
    """The entries of the key that weighs most."""
    which = np.unique(keys, return_inverse=True)[1]
    chosen: Bools = which == np.bincount(which, weights).argmax()
    return chosen
