"""The communication kernels of one rank, in the order in which they run."""

import re
from dataclasses import dataclass

import numpy as np

from tracekit.findings.kernels import kernels
from tracekit.intervals import Ints
from tracekit.profile import Profile

_KINDS = (
    ("all_reduce", re.compile(r"all_?reduce", re.IGNORECASE)),
    ("reduce_scatter", re.compile(r"reduce_?scatter", re.IGNORECASE)),
    ("all_gather", re.compile(r"all_?gather", re.IGNORECASE)),
    ("all_to_all", re.compile(r"all_?to_?all|dispatch|combine", re.IGNORECASE)),
    ("send_recv", re.compile(r"send|recv", re.IGNORECASE)),
    ("broadcast", re.compile(r"broadcast", re.IGNORECASE)),
    ("reduce", re.compile(r"reduce", re.IGNORECASE)),
)
Key = tuple[int, str, int]  # step number, kind, and the how manieth of that kind in the step


@dataclass(frozen=True)
class Calls:
    """One entry per communication kernel of the counted steps; times are ns on the clock that all traces share."""

    rank: int
    keys: list[Key]
    row: Ints
    start_ns: Ints
    end_ns: Ints


def kind_of(name: str) -> str:
    """The collective that a kernel's name says; `other` where it says none."""
    return next((kind for kind, pattern in _KINDS if pattern.search(name)), "other")


def calls_of(profile: Profile, rank: int) -> Calls:
    """The calls of a profile of one rank."""
    trace = profile.trace
    rows = kernels(profile, lambda events: events.roles.communication)
    events = trace.rows(rows)
    order = np.argsort(events.ts_ns, kind="stable")
    rows, start, end = rows[order], events.ts_ns[order], events.end_ns[order]
    begins = trace.steps.begin
    step = np.maximum(np.searchsorted(begins, end, side="left") - 1, 0)
    kinds = [kind_of(name) for name in trace.names]
    counts: dict[tuple[int, str], int] = {}
    keys = []
    for place, code in zip(step.tolist(), trace.name_codes[rows].tolist(), strict=True):
        number, kind = int(trace.steps.number[place]), kinds[code]
        counts[number, kind] = nth = counts.get((number, kind), -1) + 1
        keys.append((number, kind, nth))
    base = trace.base_ns
    return Calls(rank, keys, rows, start + base, end + base)
