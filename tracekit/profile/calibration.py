"""Where does the time of a step go when nothing records it? Estimated where recording stretches steps.

This is the one place that decides whether calibrated figures are used. They are where at least two variants of the run
were measured unprofiled and traced on one rank, and where the costs of recorded events explain the stretch; see
`engine/calibration.py`.
"""

from collections.abc import Iterable

from msgspec import Struct, field
from msgspec.structs import replace

from tracekit.engine import attribute
from tracekit.engine.calibration import Window, estimate
from tracekit.engine.replay import EventKind, Overhead, Retiming
from tracekit.profile.profile import Profile, mean_of
from tracekit.statistics.typical_step import typical_step
from tracekit.trace.storing.cache import file_state, kept, result_name

STRETCHED = 0.1  # of the unprofiled step: a recording that adds less needs no calibration


class Calibration(Struct, frozen=True):
    """A variant's mean step without the time of recording, ns by bucket, so that it is as long as the unprofiled one.

    `error` is how far off the step is, relative to the unprofiled one, by the cost of events that the other variants
    tell. Where `why_not` says why there is no estimate, there are no parts. `other` explains the variants as well, with
    other costs of the kinds of events.
    """

    stretch: float  # by how much a traced step is longer, relative to the unprofiled one
    overhead: dict[EventKind, float] = field(default_factory=dict)  # what an event costs, ns
    error: float = 0.0
    variants: int = 0  # that the estimate rests on
    wall: dict[str, float] = field(default_factory=dict)
    host: dict[str, float] = field(default_factory=dict)
    why_not: str = ""
    other: "Calibration | None" = None

    @property
    def stretched(self) -> bool:
        """Whether recording adds so much that traced figures mislead."""
        return self.stretch > STRETCHED


def calibrations(profiles: Iterable[Profile]) -> dict[str, Calibration]:
    """The calibration of each variant that was measured unprofiled, by name, in runs in which recording stretches any;
    from the cache where it is known."""
    runs: dict[str, list[Profile]] = {}
    for profile in profiles:
        if _stretch(profile) is not None:
            runs.setdefault(profile.run_name, []).append(profile)
    estimates: dict[str, Calibration] = {}
    for members in runs.values():
        if any((_stretch(member) or 0.0) > STRETCHED for member in members):
            estimates |= _known_estimates(members)
    return estimates


def _stretch(profile: Profile) -> float | None:
    """By how much longer a traced step is than an unprofiled one; None where either is unknown."""
    measured = profile.variant.measured if profile.variant is not None else None
    walls = profile.views["wall"].step_ns[profile.answered["wall"]]
    if measured is None or not len(walls) or not walls.all():
        return None
    traced = float(walls.mean()) if _on_a_gpu(profile) else typical_step(walls.tolist(), profile.pattern).step_ns
    return traced / measured.step_ns - 1


def _on_a_gpu(profile: Profile) -> bool:
    return (
        profile.variant is None or profile.variant.measured is None or profile.variant.measured.clock != "perf_counter"
    )


def _known_estimates(members: list[Profile]) -> dict[str, Calibration]:
    def name() -> str:
        causes = tuple((member.name, member.variant, file_state(member.trace.path)) for member in members)
        return result_name("calibration", __name__, causes=causes)

    return kept(members[0].trace.entry, name, dict[str, Calibration], lambda: _calibrated(members))


def _calibrated(members: list[Profile]) -> dict[str, Calibration]:
    reasons = {member.name: _unfit(member) for member in members}
    fit = [member for member in members if not reasons[member.name]]
    if len(fit) == 1:
        reasons[fit[0].name] = "the estimate needs two variants with a trace and unprofiled passes"
    estimates = {member.name: Calibration(_stretch(member) or 0.0, why_not=reasons[member.name]) for member in members}
    if len(fit) < 2:
        return estimates
    windows = [
        Window(
            Retiming(member.trace),
            member.answered["wall"],
            float(measured.step_ns),
            _on_a_gpu(member),
            member.pattern,
        )
        for member in fit
        if member.variant is not None and (measured := member.variant.measured) is not None
    ]
    for profile, window, estimated in zip(fit, windows, estimate(windows), strict=True):
        made = Calibration(
            window.traced_ns / window.unprofiled_ns - 1,
            error=estimated.error,
            variants=len(fit),
            why_not=estimated.why_not,
        )
        other = estimated.other if not made.why_not else None
        estimates[profile.name] = replace(
            _with_costs(made, profile, window, estimated.overhead),
            other=_with_costs(made, profile, window, other) if other is not None else None,
        )
    return estimates


def _with_costs(made: Calibration, profile: Profile, window: Window, overhead: Overhead) -> Calibration:
    """The calibration with these costs of events, and with what a step takes without them where they explain it."""
    costs = dict(overhead)
    if made.why_not:
        return replace(made, overhead=costs)
    views = attribute(window.retiming.without(overhead)).views
    means = {name: mean_of(view, profile.answered[name]) for name, view in views.items()}
    wall, host = (mean.parts if mean is not None else {} for mean in (means["wall"], means["host"]))
    return replace(made, overhead=costs, wall=wall, host=host)


def _unfit(profile: Profile) -> str:
    """Why a variant cannot be calibrated whatever recording costs; empty if it can."""
    if profile.per_rank:
        return "its ranks wait for each other, and a replay knows one of them"
    if profile.all_compile:
        return "every traced step compiles"
    return "its trace is cut" if profile.trace.lost_from_ns is not None else ""
