"""How long does a rank communicate, where several collectives may be under way at the same time?"""

import numpy as np
import pyarrow as pa

from tracekit.engine.buckets import CODES, ON_THE_GPU
from tracekit.ranks.columns import RankColumns
from tracekit.trace.columns import values


def communication_ns(columns: RankColumns) -> float | None:
    """Communication that nothing hides, per counted step; None where no step is counted.

    On a CPU it is the Python during collectives, which is how a host waits for them.
    """
    mean = columns.means["wall"]
    if mean is None or not on_a_cpu(columns):
        return mean.parts.get("gpu_comm") if mean is not None else None
    steps = columns.steps["step"].to_numpy()[columns.steps["steady"].to_numpy()]
    steps = steps if len(steps) else columns.steps["step"].to_numpy()
    calls = columns.calls.filter(np.isin(values(columns.calls["step"]), steps))
    waited = until = 0
    for before, after in sorted(
        zip(_python(calls, "spent_at_start_ns"), _python(calls, "spent_at_end_ns"), strict=True)
    ):
        waited += max(after - max(before, until), 0)  # what ran until the latest end so far has been counted
        until = max(until, after)
    return waited / max(len(steps), 1)


def _python(calls: pa.Table, name: str) -> list[int]:
    """How much Python had run by then."""
    return [spent[CODES["python"]] for spent in calls[name].to_pylist()]


def on_a_cpu(columns: RankColumns) -> bool:
    """Whether nothing ran on a GPU."""
    return not any(values(columns.steps[f"{key}_ns"]).any() for key in ON_THE_GPU)
