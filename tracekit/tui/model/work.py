"""The work in the steps of a variant, event by event: the GPU's activities, or what operators compute."""

from functools import cached_property

import numpy as np
import pyarrow as pa
from msgspec import Struct

from tracekit.base.intervals import Bools, Ints, Rows
from tracekit.engine.buckets import CODES, of_activities
from tracekit.engine.pieces import Pieces
from tracekit.findings.culprits import NOTHING
from tracekit.profile import Profile
from tracekit.trace.schema import LABEL, Role, column
from tracekit.vocabulary.kernel_class import kernel_class

_SUMS = pa.schema(
    [
        column("class", LABEL, "kind of work, inferred from the name"),
        column("per_step", pa.float64(), "instances per step"),
        column("step_ns", pa.float64(), "time per step", "ns"),
    ]
)


class Work(Struct, frozen=True, dict=True):
    """A row for each stretch of work: event, index of its step (−1: none), name, duration in ns and launch call.

    `once` marks the rows that count as an occurrence: an operator that computes in several stretches counts once.
    """

    profile: Profile
    event: Rows
    step: Rows
    dur: Ints
    launch: Ints
    once: Bools

    @cached_property
    def name(self) -> Rows:
        """The number of each event's name; −1 if there is no event."""
        return _names(self.profile, self.event)

    @cached_property
    def operator(self) -> Rows:
        """The number of the name of the operator that launched each row; −1 if none is known."""
        return _names(self.profile, self.profile.trace.operators.of(self.launch))

    def kinds(self, bucket: str) -> Bools:
        """Which of the GPU's activities belong to a bucket."""
        in_bucket: Bools = of_activities(self.profile.trace.events_at(self.event).roles) == CODES[bucket]
        return in_bucket

    def by_name(self, names: Rows, is_selected: Bools, steps: int, role: Role = "name") -> pa.Table:
        """The sums of the selected rows per step, by the name given to each; the costliest first."""
        texts = self.profile.trace.names
        codes = names[is_selected].astype(np.int64) + 1
        total = np.zeros(len(texts) + 1, np.int64)
        np.add.at(total, codes, self.dur[is_selected])
        number = np.bincount(codes[self.once[is_selected]], minlength=len(texts) + 1)
        present = np.flatnonzero((total > 0) | (number > 0))
        present = present[np.argsort(-total[present], kind="stable")]
        labels = [texts[code - 1] if code else NOTHING for code in present.tolist()]
        columns = [
            pa.array(labels, pa.string()).dictionary_encode(),
            pa.array([kernel_class(label, label) for label in labels], pa.string()).dictionary_encode(),
            pa.array(number[present] / max(steps, 1)),
            pa.array(total[present] / max(steps, 1)),
        ]
        name = column("name", LABEL, "name as written", role=role)
        return pa.Table.from_arrays(columns, schema=_SUMS.insert(0, name))


def work_of(profile: Profile) -> Work:
    """The GPU's activities, or without a GPU the stretches in which operators compute."""
    trace = profile.trace
    if trace.device != "gpu":
        return blamed(profile, profile.attribution.pieces, "cpu_compute")
    event = np.concatenate([np.zeros(0, np.int64), *(part.rows(part.roles.gpu) for part in trace.parts())])
    launch = trace.links.launch(event).astype(np.int64)
    step = np.where(launch >= 0, trace.steps.of(trace.ts_ns[np.maximum(launch, 0)]), -1)
    once = np.ones(len(event), bool)
    return Work(profile, event.astype(np.int32), step.astype(np.int32), trace.dur_ns[event], launch, once)


def blamed(profile: Profile, pieces: Pieces, bucket: str) -> Work:
    """The stretches of a bucket and the events to blame for them: they add up to exactly the bucket."""
    in_bucket = pieces.of(bucket)
    event = pieces.event[in_bucket]
    once = np.zeros(len(event), bool)
    once[np.unique(event, return_index=True)[1]] = True
    return Work(profile, event, pieces.step[in_bucket], pieces.dur[in_bucket], np.full(len(event), -1), once)


def _names(profile: Profile, events: Ints | Rows) -> Rows:
    if not len(profile.trace.ts_ns):
        return np.full(len(events), -1, np.int32)
    codes: Rows = np.where(events >= 0, profile.trace.name_codes[np.maximum(events, 0)], -1).astype(np.int32)
    return codes
