"""The answered steps as columns: start, end, bucket, the event to blame, and the step."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from tracekit.base.intervals import Bools, Ints, Rows, Union, place_among, split
from tracekit.engine.buckets import CODES, among
from tracekit.trace.schema import codes, values
from tracekit.trace.storing.scratch import gathered

if TYPE_CHECKING:
    from tracekit.engine.attribution import StepView


class Pieces(Struct, frozen=True):
    """One entry for the part of each segment inside an answered step, in order of time.

    They are disjoint, and add up to the totals of the view. `event` is the row to blame, on the host; −1 where none
    is, and while the GPU works. `step` is the index of the step.
    """

    view: str
    start: Ints
    end: Ints
    bucket: NDArray[np.int8]
    event: Rows
    step: Rows

    @property
    def dur(self) -> Ints:
        """How long each lasts, ns."""
        lengths: Ints = self.end - self.start
        return lengths

    def of(self, *buckets: str) -> Bools:
        """The pieces in one of these buckets."""
        return among(self.bucket, [CODES[key] for key in buckets])

    def union(self, mask: Bools) -> Union:
        """The time of some of them."""
        return Union.of(self.start[mask], self.end[mask])


def pieces(view: "StepView", segments: Iterable[pa.Table]) -> Pieces:
    """The segments of a view, cut at its answered steps; none if no step is answered."""
    parts = _pieces_of(view, segments) if view.known.any() else ()
    start, end, bucket, event, step = gathered(parts, (np.int64, np.int64, np.int8, np.int32, np.int32))
    return Pieces(view.name, start, end, bucket, event, step)


def _pieces_of(view: "StepView", segments: Iterable[pa.Table]) -> Iterator[tuple[Ints | Rows, ...]]:
    answered_steps = np.flatnonzero(view.known & (view.step_ns > 0))
    lows, highs = view.starts_ns[answered_steps], view.starts_ns[answered_steps] + view.step_ns[answered_steps]
    for part in segments:
        starts = part["start_ns"].to_numpy()
        ends = starts + part["dur_ns"].to_numpy()
        low, high, segment = split(starts, ends, np.concatenate((lows, highs)))
        index = place_among(lows, low, after=True) - 1
        in_step = (
            (index >= 0) & (low < highs[np.maximum(index, 0)]) if len(answered_steps) else np.zeros(len(low), bool)
        )
        bucket, event = codes(part["bucket"]), values(part["event"], null=-1)
        kept_segments = segment[in_step]
        yield low[in_step], high[in_step], bucket[kept_segments], event[kept_segments], answered_steps[index[in_step]]
