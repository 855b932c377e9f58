"""The steps over which costs are spread."""

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from tracekit.base.intervals import Ints, Union
from tracekit.engine.attribution import Pieces
from tracekit.engine.buckets import CODES, ON_THE_GPU
from tracekit.engine.replay import Retiming
from tracekit.profile import Profile
from tracekit.profile.calibration import Calibration


class WithoutRecording(Struct, frozen=True):
    """What remains of a time without that of recording: in each bucket as much as in the calibrated step.

    The moments in which events are recorded go first. What they leave of a bucket may still be more than the calibrated
    step has of it, because recording that a busy GPU hides delays what comes later: then all of it shrinks alike.
    """

    pieces: Pieces
    recording: Union  # while the GPU idles
    remains: NDArray[np.float64]  # by the code of a bucket: a share

    @staticmethod
    def of(profile: Profile, calibration: Calibration) -> "WithoutRecording":
        """In the pieces of a profile."""
        pieces = profile.attribution.pieces
        recording = Retiming(profile.trace).recording(calibration.overhead)
        recording = recording.minus(pieces.union(pieces.of(*ON_THE_GPU, "gpu_gap")))
        counted = profile.counted[pieces.step]
        remaining_ns = np.where(counted, pieces.dur - recording.within(pieces.start, pieces.end), 0)
        remains = np.ones(max(CODES.values()) + 1)
        for key, ns in calibration.wall.items():
            of_bucket = float(remaining_ns[pieces.of(key)].sum()) / profile.counted_steps
            if key not in ON_THE_GPU and of_bucket:
                remains[CODES[key]] = min(ns / of_bucket, 1.0)
        return WithoutRecording(pieces, recording, remains)

    def total(self, time: Union) -> float:
        """How much remains, ns."""
        covered_ns = time.minus(self.recording).within(self.pieces.start, self.pieces.end)
        return float(covered_ns @ self.remains[self.pieces.bucket])


class Steps(Struct, frozen=True):
    """The start and the end of each of these steps, ns, and which of the trace's steps it is."""

    low: Ints
    high: Ints
    number: Ints
    unrecorded: WithoutRecording | None = None  # where costs are told without the time of recording
    shorter_ns: float = 0.0  # by how much a step is shorter without it
    stretch: float = 1.0  # how many times as long as a step that nobody records: all costs shrink alike

    @staticmethod
    def of(profile: Profile, all_steps: bool = False) -> "Steps":
        """The counted steps in the view of the pieces, or every step that can be answered."""
        view = profile.attribution.answered_view
        is_included = view.known if all_steps else view.known & profile.counted
        low = view.starts_ns[is_included]
        return Steps(low, low + view.step_ns[is_included], np.flatnonzero(is_included))

    @staticmethod
    def calibrated(profile: Profile, all_steps: bool = False) -> "Steps":
        """The same without the time of recording: where the profile has an estimate of it, without that; and never
        longer than an unprofiled step, as no step can save more than it takes."""
        steps, calibration, wall = Steps.of(profile, all_steps), profile.calibration, profile.means["wall"]
        if calibration is not None and wall is not None:
            shorter = wall.step_ns - sum(calibration.wall.values())
            steps = replace(steps, unrecorded=WithoutRecording.of(profile, calibration), shorter_ns=shorter)
        if len(steps.number) != profile.counted_steps:  # of them, others than steady ones: no pass timed such steps
            return steps
        return replace(steps, stretch=stretch(profile, steps.length))

    @property
    def unprofiled(self) -> bool:
        """Whether costs are those of steps that nobody records, which are shorter than the recorded ones."""
        return self.unrecorded is not None or self.stretch > 1

    @property
    def length(self) -> float:
        """The mean length of a step, ns."""
        return (float((self.high - self.low).mean()) - self.shorter_ns) / self.stretch if len(self.low) else 0.0

    def mean(self, claim: Union) -> float:
        """How much of the claim falls into a step, on average, ns."""
        if self.unrecorded is not None and len(self.low):
            return self.total(claim.common(Union.of(self.low, self.high))) / len(self.low) / self.stretch
        return float(claim.within(self.low, self.high).mean()) / self.stretch if len(self.low) else 0.0

    def total(self, time: Union) -> float:
        """How much there is of a time inside the steps, ns, as they were recorded."""
        return self.unrecorded.total(time) if self.unrecorded is not None else time.total()


def stretch(profile: Profile, step_ns: float) -> float:
    """How many times as long as an unprofiled step one of this length is; 1 where it is not longer, or where no pass
    timed such steps."""
    measured = profile.variant.measured if profile.variant is not None else None
    if measured is None or profile.all_compile:
        return 1.0
    return max(step_ns / measured.step_ns, 1.0)
