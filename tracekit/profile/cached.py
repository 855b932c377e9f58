"""What is known of a variant from the cache: what a step is made of, which first steps only start up, when the GPU's
side was not recorded. It is valid until something that it was computed from changes, which its name says.
"""

import numpy as np

from tracekit.base.intervals import Union
from tracekit.profile.profile import Profile
from tracekit.profile.start_up import ColdStep, cold_steps, may_be_cold
from tracekit.profile.unrecorded import unseen
from tracekit.trace.storing.cache import file_state, recall, remember, result_name
from tracekit.vocabulary.lines_file import lines_path


def name_of(profile: Profile, kind: str, *modules: str) -> str:
    """The name in the cache of a result of these modules; it depends on everything that they read of a variant."""
    cold = profile.cold.trace.path if profile.cold is not None else None
    detail = profile.detail_path
    files = (cold, detail, detail and lines_path(detail))
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
    entry = profile.trace.entry
    name = name_of(profile, "parts", __name__, "tracekit.profile.collective_waits") if entry is not None else ""
    if (parts := recall(entry, name, dict[str, float])) is None:
        parts = _parts(profile, dict(profile.mean.parts))
        remember(entry, name, parts)
    return parts


def _parts(profile: Profile, parts: dict[str, float]) -> dict[str, float]:
    waits, pieces = profile.waits_in_collectives, profile.attribution.pieces
    for key in ("python", "cpu_compute") if len(waits.starts) else ():
        in_bucket = pieces.of(key) & profile.counted[pieces.step]
        waited = float(waits.within(pieces.start[in_bucket], pieces.end[in_bucket]).sum()) / profile.counted_steps
        parts[key] -= waited
        parts["gpu_comm"] = parts.get("gpu_comm", 0.0) + waited
    return parts


def known_cold_steps(profile: Profile) -> list[ColdStep]:
    """The first steps that are longer only because something starts up in them. Events are read only where the first
    step is longer than those after it."""
    if not may_be_cold(profile.attribution):
        return []
    entry = profile.trace.entry
    name = result_name("cold-steps", __name__, "tracekit.profile.start_up") if entry is not None else ""
    if (steps := recall(entry, name, list[ColdStep])) is None:
        steps = cold_steps(profile.attribution)
        remember(entry, name, steps)
    return steps


def known_unseen(profile: Profile) -> Union:
    """The time in steps of which it is unknown what the GPU did."""
    entry = profile.trace.entry
    name = (
        result_name("unseen", __name__, "tracekit.profile.unrecorded", "tracekit.trace.facts")
        if entry is not None
        else ""
    )
    if (spans := recall(entry, name, list[tuple[int, int]])) is None:
        union = unseen(profile)
        spans = [*zip(union.starts.tolist(), union.ends.tolist(), strict=True)]
        remember(entry, name, spans)
    bounds = np.array(spans, np.int64).reshape(-1, 2)
    return Union.of(bounds[:, 0], bounds[:, 1])
