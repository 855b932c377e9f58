"""What is known of a variant from the cache: what a step is made of, which first steps only start up, when the GPU's
side was not recorded. It is valid until something that it was computed from changes, which its name says.
"""

import numpy as np

from tracekit.base.intervals import Union
from tracekit.profile.profile import Profile
from tracekit.profile.start_up import ColdStep, cold_steps, may_be_cold
from tracekit.profile.unrecorded import unseen
from tracekit.trace.storing.cache import file_state, kept, result_name
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
    parts = dict(profile.mean.parts)
    modules = __name__, "tracekit.profile.collective_waits"
    return kept(
        profile.trace.entry,
        lambda: name_of(profile, "parts", *modules),
        dict[str, float],
        lambda: _with_waits_as_communication(profile, parts),
    )


def _with_waits_as_communication(profile: Profile, parts: dict[str, float]) -> dict[str, float]:
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

    modules = __name__, "tracekit.profile.unrecorded", "tracekit.trace.facts"
    bounds_of_spans = kept(profile.trace.entry, lambda: result_name("unseen", *modules), list[tuple[int, int]], spans)
    bounds = np.array(bounds_of_spans, np.int64).reshape(-1, 2)
    return Union.of(bounds[:, 0], bounds[:, 1])
