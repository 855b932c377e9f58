"""How much GPU time a step has of each kind of work; the operator that launched a kernel decides, then its name."""

import numpy as np

from tracekit.analyses.grouping import Grouping
from tracekit.analyses.kernel_class import kernel_class
from tracekit.profile import Profile


def class_times(profile: Profile) -> dict[str, float]:
    """Kind of work → ns per counted step, of the kernels whose launch is known; the largest first."""
    trace = profile.trace
    width = len(trace.names) + 1
    groups = Grouping(profile, ["dur_ns"])
    for activities, launches in trace.links.some():
        operator = trace.operators.of(launches)
        made_by = np.where(operator >= 0, trace.name_codes[np.maximum(operator, 0)].astype(np.int64) + 1, 0)
        keys = trace.name_codes[activities].astype(np.int64) * width + made_by
        groups.add(keys, trace.steps.of(trace.ts_ns[launches]), trace.dur_ns[activities])
    found = groups.sorted({"key": str})
    times: dict[str, float] = {}
    for key, time in zip(map(int, found["key"]), found["dur_ns_per_step"].tolist(), strict=True):
        name, operator_name = trace.names[key // width], trace.names[key % width - 1] if key % width else None
        label = kernel_class(name, operator_name)
        times[label] = times.get(label, 0.0) + time
    return dict(sorted(times.items(), key=lambda item: -item[1]))
