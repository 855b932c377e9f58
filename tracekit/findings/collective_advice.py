"""What to do about communication that nothing overlaps: it depends on the kind of collective, and on who starts it."""

import re
from dataclasses import dataclass

import numpy as np

from tracekit.intervals import Ints
from tracekit.profile import Profile
from tracekit.trace.enclosing import enclosing
from tracekit.units import duration

_MANY, _SHORT_NS = 30, 100_000  # collectives a step, and their median, that should travel together
_LATE = 0.5  # of their time: where more than that is waiting, ranks arrive late
_ROOM = 0.5  # of what nothing overlaps: where the rest of the step is shorter than that, it cannot hide it
_DDP = re.compile(r".*(?:DistributedDataParallel|(?:ddp\.|::)reducer).*", re.DOTALL)
_FSDP = re.compile(r".*(?:FullyShardedDataParallel|FSDP|fully_shard).*", re.DOTALL)
_SHARDING = ("all_gather", "reduce_scatter")
_COMBINE = "Combine small collectives"
_EQUAL_WORK = (
    "Give the ranks equal work: most of this time is spent waiting for the last rank to arrive. Its trace shows what "
    "delays it."
)
_ALIKE = (
    " Compare its bus bandwidth with that of nccl-tests on the same machine: a slow network and ranks that come late "
    "look alike in the trace of one rank."
)
_AT_ONCE = (
    "Start it as soon as its input is ready (async_op=True), and wait only where its result is needed, so that "
    "something else computes meanwhile; or send less, for example in half precision."
)


@dataclass(frozen=True)
class Spent:
    """What collectives take of a step, ns, and the share of it that is waiting for other ranks; None where it is not
    known."""

    step_ns: float
    running_ns: float
    exposed_ns: float  # that nothing overlaps
    waiting: float | None


def advice(profile: Profile, kind: str, rows: Ints, started: Ints, spent: Spent) -> str:
    """What to do about the collectives in `rows`, most of which are of that kind.

    `started` has for each of them the event that started it.
    """
    if len(rows) >= _MANY * profile.counted_steps and np.median(profile.trace.dur_ns[rows]) < _SHORT_NS:
        buckets = "larger buckets (bucket_cap_mb)" if _has(profile, _DDP) else "one flattened tensor for many"
        return f"{_COMBINE}: use {buckets}."
    if spent.waiting is not None and spent.waiting > _LATE:
        return _EQUAL_WORK
    room_ns = max(spent.step_ns - spent.running_ns, 0.0)
    if room_ns < _ROOM * spent.exposed_ns:
        hidden = f"Beside the rest of a step, at most {duration(room_ns)} more of it can be hidden."
        return f"Send less{_less(profile, kind, started)}. {hidden}{_ALIKE}"
    return _earlier(profile, kind, started)


def as_ranks_wait(advised: str, waiting: float) -> str:
    """That advice, or what fits better where all ranks show that so much of the time is waiting."""
    if advised.startswith(_COMBINE):
        return advised
    if waiting > _LATE:
        return _EQUAL_WORK
    return _AT_ONCE if advised == _EQUAL_WORK else advised.removesuffix(_ALIKE)


def _earlier(profile: Profile, kind: str, started: Ints) -> str:
    if kind == "all_reduce" and _in_backward(profile, started):
        if _has(profile, _DDP):
            return (
                "Let more of it run beside the backward pass, with smaller buckets (bucket_cap_mb), or send less: "
                "synchronise only every N micro-batches (no_sync), or compress or halve what is sent "
                "(register_comm_hook)."
            )
        return (
            "Start it earlier in the backward pass, as soon as a gradient is there (as DistributedDataParallel does), "
            "or send less: only every N micro-batches, or in half precision."
        )
    if kind in _SHARDING and _has(profile, _FSDP):
        return (
            "Gather the next shard while this one computes (FSDP's forward_prefetch and backward_prefetch), keep "
            "parameters from forward to backward if they fit (reshard_after_forward=False), or send half precision "
            "(MixedPrecision)."
        )
    return _AT_ONCE


def _less(profile: Profile, kind: str, started: Ints) -> str:
    """How, as the end of a sentence."""
    if kind == "all_reduce" and _in_backward(profile, started):
        if _has(profile, _DDP):
            return (
                ": synchronise only every N micro-batches (no_sync), or compress or halve what is sent "
                "(register_comm_hook)"
            )
        return ": only every N micro-batches, or in half precision"
    if kind in _SHARDING and _has(profile, _FSDP):
        return (
            ": keep parameters from forward to backward if they fit (reshard_after_forward=False), or send half "
            "precision (MixedPrecision)"
        )
    return ", for example in half precision"


def _has(profile: Profile, pattern: re.Pattern[str]) -> bool:
    return bool(profile.trace.labels.fits(pattern).any())


def _in_backward(profile: Profile, started: Ints) -> bool:
    """Whether autograd starts most of them: in backward's thread, or inside of an operator of backward."""
    trace, started = profile.trace, started[started >= 0]
    helping = np.isin(trace.track[started], np.array(trace.threads.helpers, np.int64))
    inside = enclosing(trace, started, lambda part: part.roles.backward_node) >= 0
    return bool(2 * (helping | inside).sum() > len(started))
