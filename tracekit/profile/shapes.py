"""Of which shapes are the inputs of an operator? Recordings with stacks have them; steady steps are read from those."""

import numpy as np
import pyarrow as pa

from tracekit.intervals import Ints
from tracekit.profile.profile import Profile
from tracekit.trace.reading.shapes import input_dims


def dims_of(profile: Profile, rows: Ints) -> pa.Array:
    """For each of these rows of `profile.trace.events` the dimensions of its inputs as JSON: `[[8, 16], [16, 4]]`.

    An operator has those of the one it was matched with in the recording beside the trace, or its own. Null where
    neither was recorded, where it was not matched, for −1, and for what is no operator.
    """
    ownership = profile.ownership
    if ownership.recording is None:
        return pa.nulls(len(rows), pa.string())
    recorded = ownership.recorded(rows)
    dims = input_dims(ownership.recording.trace)
    return dims.take(pa.array(np.maximum(recorded, 0), mask=recorded < 0))
