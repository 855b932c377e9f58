"""What a run measured besides its traces: unprofiled step times, the cost of compiling, memory, losses.

Unprofiled and profiled times are never mixed: the unprofiled one is quoted, the profiled one explains it.
"""

import math

from tracekit.base.names import sanitize
from tracekit.base.units import percent, ratio
from tracekit.profile import Member
from tracekit.run import Variant, divergence, gradient_tolerance, loss_tolerance, times_apart
from tracekit.run.contrast import Contrast, cold_cost_ns, contrast, steps_to_break_even
from tracekit.vocabulary.event_names import PREPARATION

SPREAD_EPOCHS = 100  # over which the cost of compiling is spread if no run says how many are trained


def inflation_of(member: Member) -> float | None:
    """The mean step of the trace divided by the unprofiled step time."""
    mean, measured = member.means["wall"], member.variant.measured if member.variant else None
    return mean.step_ns / measured.step_ns if mean is not None and measured is not None else None


def epoch_ns(variant: Variant | None) -> float | None:
    """An epoch at the unprofiled step time; None where its number of steps is unknown."""
    measured = variant.measured if variant is not None else None
    if measured is None or measured.epoch_steps is None:
        return None
    return float(measured.step_ns) * measured.epoch_steps


def epoch_with_compiling_ns(variant: Variant | None, epochs: int) -> float | None:
    """An epoch, with the slower start spread over all epochs of the training."""
    epoch, extra = epoch_ns(variant), cold_cost_ns(variant)
    return epoch + extra / epochs if epoch is not None and extra is not None else None


def break_even_steps(member: Member, baseline: Member) -> float | None:
    """After how many steps the time saved makes up for the slower start; infinite if it never does.

    None where that is unknown, for example because the difference is within noise.
    """
    ours, theirs = member.variant, baseline.variant
    if member is baseline or ours is None or theirs is None or ours.measured is None or theirs.measured is None:
        return None
    if not ours.requested.compile:
        return None
    extra, base = cold_cost_ns(ours), cold_cost_ns(theirs)
    if extra is None or base is None:
        return None
    if contrast(ours.measured, theirs.measured).noise:
        return None  # a difference that may be zero need not save anything
    saved = theirs.measured.step_ns - ours.measured.step_ns
    return steps_to_break_even(extra - base, saved)


def contrast_of(member: Member, baseline: Member) -> Contrast | None:
    """How the unprofiled step times compare; None for the baseline, and if one of the two was not measured."""
    ours, theirs = (p.variant.measured if p.variant else None for p in (member, baseline))
    return None if ours is None or theirs is None or member is baseline else contrast(ours, theirs)


def break_even_doubt(member: Member, baseline: Member) -> str:
    """Why it is unknown whether compiling pays off: `within noise`; empty if that is known, or nothing was compiled."""
    compared = contrast_of(member, baseline)
    return compared.doubt if compared and member.variant and member.variant.requested.compile else ""


def loss_difference(member: Member, baseline: Member) -> float | None:
    """The largest relative difference between the losses of the seeded check steps; None if these were not run."""
    if member is baseline or member.variant is None or baseline.variant is None:
        return None
    return divergence(baseline.variant.losses, member.variant.losses)


def tolerance_of(member: Member, baseline: Member) -> float:
    """How far losses may differ without significance: further if rounding by itself moves them further."""
    return loss_tolerance(*(side.variant.loss_drift for side in (member, baseline) if side.variant))


def gradients_differ(member: Member, baseline: Member) -> str:
    """`the norms of its gradients by 20.0 × (rounding explains 0.1 %)`; empty where they do not, or nobody knows."""
    ours, theirs = member.variant, baseline.variant
    if member is baseline or ours is None or theirs is None:
        return ""
    apart = divergence(theirs.gradients, ours.gradients)
    tolerance = gradient_tolerance(ours.gradient_drift, theirs.gradient_drift)
    if apart is None or apart <= tolerance:
        return ""
    times = times_apart(theirs.gradients, ours.gradients)
    by = ratio(times) if times >= 2 else percent(apart) if math.isfinite(apart) else "more than any number"
    return f"the norms of its gradients by up to {by} (rounding explains {percent(tolerance)})"


def differs(member: Member, baseline: Member) -> str:
    """`its losses differ from eager's by up to 5.0 % (rounding explains 0.1 %)`, and the norms of its gradients; empty
    where they do not, or nobody knows.
    """
    difference, tolerance = loss_difference(member, baseline), tolerance_of(member, baseline)
    name, gradients = sanitize(baseline.name), gradients_differ(member, baseline)
    if difference is None or difference <= tolerance:
        differing = gradients.replace(" by up to", f" differ from {name}'s by up to", 1)
        return f"{differing}, although its losses hardly do" if gradients else ""
    and_gradients = f", and {gradients}" if gradients else ""
    if not math.isfinite(difference):
        return f"its losses are finite in other steps than {name}'s{and_gradients}"
    by = f"{percent(difference)} (rounding explains {percent(tolerance)})"
    return f"its losses differ from {name}'s by {by}{and_gradients}"


def records_graphs(variant: Variant | None) -> bool:
    """Whether CUDA graphs hold memory that the allocator counts as free, so that only reserved memory is meaningful."""
    entries = variant.ledger.compiles if variant is not None else []
    return any(entry.kind == "cudagraph" and entry.span != PREPARATION for entry in entries)
