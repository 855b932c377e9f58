"""How much GPU time of a step goes to each kind of work? The launching operator decides, then the kernel's name."""

from typing import NamedTuple

import numpy as np

from tracekit.kernel_class import kernel_class
from tracekit.profile.grouping import Grouping
from tracekit.profile.profile import Profile
from tracekit.trace.roles import KERNEL


class KernelTime(NamedTuple):
    """The time in a counted step of the kernels (or copies) of one name that one operator launches.

    A copy counts only while no kernel runs: copies that overlap kernels cost nothing.
    """

    label: str  # the kind of work
    name: str
    operator: str | None
    step_ns: float
    per_step: float  # how many


def kernel_times(profile: Profile) -> list[KernelTime]:
    """The kernels and copies whose launch is known, the costliest first."""
    trace = profile.trace
    width = len(trace.names) + 1
    groups = Grouping(profile, ["dur_ns"])
    pieces = profile.attribution.pieces
    alone = pieces.union(pieces.of("gpu_copy"))
    for activities, launches in trace.links.some():
        operator = trace.operators.of(launches)
        made_by = np.where(operator >= 0, trace.name_codes[np.maximum(operator, 0)].astype(np.int64) + 1, 0)
        keys = trace.name_codes[activities].astype(np.int64) * width + made_by
        events = trace.events_at(activities)
        free = alone.within(events.ts_ns, events.end_ns)
        taken = np.where(events.roles.kind == KERNEL, trace.dur_ns[activities], free)
        groups.add(keys, trace.steps.of(trace.ts_ns[launches]), taken)
    totals = groups.sorted({"key": str})
    times = zip(map(int, totals["key"]), totals["dur_ns_per_step"].tolist(), totals["per_step"].tolist(), strict=True)
    return [_kernel_time(trace.names, divmod(key, width), time, per_step) for key, time, per_step in times]


def _kernel_time(names: list[str], key: tuple[int, int], time: float, per_step: float) -> KernelTime:
    name, operator = names[key[0]], names[key[1] - 1] if key[1] else None
    return KernelTime(kernel_class(name, operator), name, operator, time, per_step)


def summed(times: list[KernelTime], by: str) -> dict[str, float]:
    """The time per step by one of the columns, ns; the largest first."""
    sums: dict[str, float] = {}
    for each in times:
        sums[getattr(each, by)] = sums.get(getattr(each, by), 0.0) + each.step_ns
    return dict(sorted(sums.items(), key=lambda item: -item[1]))
