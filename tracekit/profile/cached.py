"""What is worked out once for a variant: in this process (`once`), or for as long as the cache has it: what a step is
made of, which first steps only start up, when it is unknown what the GPU did. A result in the cache is valid until
something that it was computed from changes, which its name says.
"""

import re
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from tracekit.base.intervals import NO_TIME, Bools, Union
from tracekit.engine.wall import SUBMISSION_NS
from tracekit.profile.profile import Profile
from tracekit.profile.recording_words import has_steps
from tracekit.profile.start_up import ColdStep, cold_steps, may_be_cold
from tracekit.trace.roles import PYTHON, USER
from tracekit.trace.rows import AFTER, BEFORE
from tracekit.trace.storing.cache import file_state, kept, result_name
from tracekit.vocabulary.lines_file import lines_path

BACKEND_SPAN = re.compile(r"(?:gloo|mpi|ucc):.*", re.DOTALL)  # spans of torch.distributed on a CPU
_STARTING = re.compile(r"c10d::.*|record_param_comms", re.DOTALL)  # operators that hand a collective to the backend
Answer = TypeVar("Answer")


def once(work_out: Callable[[Profile], Answer]) -> Callable[[Profile], Answer]:
    """The function, which for each profile works only the first time."""

    @wraps(work_out)
    def ask(profile: Profile) -> Answer:
        known: dict[Any, Any] = profile.__dict__.setdefault("known_once", {})
        if work_out not in known:
            known[work_out] = work_out(profile)
        answer: Answer = known[work_out]
        return answer

    return ask


def name_of(profile: Profile, kind: str, *modules: str) -> str:
    """The name in the cache of a result of these modules; it depends on everything that they read of a variant."""
    cold = profile.cold.trace.path if profile.cold is not None else None
    detail = profile.detail_path
    files = (cold, detail, detail and lines_path(detail), profile.loader_folder)
    beside = (
        profile.name,
        profile.variant,
        profile.mine,
        profile.unshared,
        profile.calibration,
        *(path and file_state(path) for path in files),
    )
    return result_name(kind, *modules, causes=beside)


def known_parts(profile: Profile) -> dict[str, float]:
    """The mean of a counted step by bucket, ns, with the time in which the host waits in collectives as communication.

    On a GPU, and without communication, these are the buckets of the attribution contract.
    """
    if profile.mean is None:
        return {}
    parts = dict(profile.mean.parts)

    def with_waits_as_communication() -> dict[str, float]:
        waits, pieces = profile.waits_in_collectives, profile.attribution.pieces
        for key in ("python", "cpu_compute") if len(waits.starts) else ():
            in_bucket = pieces.of(key) & profile.counted[pieces.step]
            waited = float(waits.within(pieces.start[in_bucket], pieces.end[in_bucket]).sum()) / profile.counted_steps
            parts[key] -= waited
            parts["gpu_comm"] = parts.get("gpu_comm", 0.0) + waited
        return parts

    entry = profile.trace.entry
    return kept(entry, lambda: name_of(profile, "parts", __name__), dict[str, float], with_waits_as_communication)


def collective_waits(profile: Profile) -> Union:
    """On a CPU, the time of the steps in which a collective runs and the host does nothing but wait for it; nothing in
    a trace of a GPU.

    A backend on a CPU, such as gloo, communicates on threads of its own. The contract gives what the main thread does
    meanwhile to its own buckets: to wait for the backend is Python between operators, or, where the autograd engine
    waits, a part of its work. Both are communication that nothing hides. No event says that the host waits, so this is
    inferred.
    """
    trace, pieces = profile.trace, profile.attribution.pieces
    if trace.device == "gpu" or not trace.labels.fits(BACKEND_SPAN).any():
        return NO_TIME
    rows = trace.where(lambda part: (part.roles.kind == USER) & part.roles.named(BACKEND_SPAN))
    running = Union.of(trace.ts_ns[rows], trace.ts_ns[rows] + trace.dur_ns[rows])
    row = np.maximum(pieces.event, 0)
    starting = trace.labels.fits(_STARTING)[trace.name_codes[row]]
    python = trace.kinds[row] == PYTHON
    # The host may wait while no operator works, except one that starts a collective.
    may_wait: Bools = pieces.of("python") | (pieces.of("cpu_compute") & ((pieces.event < 0) | python | starting))
    return pieces.union(may_wait).common(running)


def known_cold_steps(profile: Profile) -> list[ColdStep]:
    """The first steps that are longer only because something starts up in them. Events are read only where the first
    step is longer than those after it."""
    if not may_be_cold(profile.attribution):
        return []
    return kept(
        profile.trace.entry,
        lambda: result_name("cold-steps", __name__, "tracekit.profile.start_up"),
        list[ColdStep],
        lambda: cold_steps(profile.attribution),
    )


def known_unseen(profile: Profile) -> Union:
    """The time in steps of which it is unknown what the GPU did."""

    def spans() -> list[tuple[int, int]]:
        union = unseen(profile)
        return [*zip(union.starts.tolist(), union.ends.tolist(), strict=True)]

    modules = __name__, "tracekit.trace.facts"
    bounds_of_spans = kept(profile.trace.entry, lambda: result_name("unseen", *modules), list[tuple[int, int]], spans)
    bounds = np.array(bounds_of_spans, np.int64).reshape(-1, 2)
    return Union.of(bounds[:, 0], bounds[:, 1])


def unseen(profile: Profile) -> Union:
    """The time inside the answered steps of which it is unknown what the GPU did: at either end of the recording, and
    where the trace lacks work; none in a trace whose wall time is unknown."""
    trace, view = profile.trace, profile.views["wall"]
    activities = trace.where(lambda part: part.roles.gpu & part.lasting) if trace.device == "gpu" else np.zeros(0, int)
    if not len(activities) or not view.known.any():
        return NO_TIME
    activity_ends = trace.events_at(activities).end_ns
    first, last = int(trace.ts_ns[activities[0]]), int(activity_ends.max())
    lost = trace.ts_ns[trace.coverage.calls[trace.coverage.is_lost]]
    # Whether the first activity starts so long after its call that work which was not recorded must have kept it
    # waiting: far longer than the others that are called while the GPU idles.
    calls = trace.links.launch(activities)
    delays = trace.ts_ns[activities] - trace.events_at(np.maximum(calls, 0)).end_ns
    worked_until = np.maximum.accumulate(activity_ends)
    into_idle = delays[1:][(calls[1:] >= 0) & (worked_until[:-1] <= trace.ts_ns[activities[1:]] - delays[1:])]
    usual_ns = float(np.median(into_idle)) if len(into_idle) else 0.0
    starts_late = bool(calls[0] >= 0) and bool(delays[0] > 2 * max(SUBMISSION_NS, usual_ns))
    without_steps, launches = not has_steps(profile), trace.links.launches
    if not (without_steps or starts_late):
        # Where the first launches have no work, the recording of the GPU began as late as that work may have run.
        first = int(trace.unknown.gpu.clip(BEFORE, first).ends.max(initial=BEFORE)) if (lost < first).any() else BEFORE
    if not (without_steps or (lost > trace.ts_ns[launches].max(initial=BEFORE)).any()):
        last = AFTER
    is_known = view.known & (view.step_ns > 0)
    steps = Union.of(view.starts_ns[is_known], (view.starts_ns + view.step_ns)[is_known])
    ends = steps.minus(Union.of(np.array([first]), np.array([last])))
    return ends.plus(steps.common(trace.unknown.gpu))
