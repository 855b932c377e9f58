"""Who is to blame for a late rank, computed nanosecond by nanosecond: slow, and written only from docs/ranks.md.

A job here is made of collectives that block: a rank works, arrives at a collective, and leaves it with all others.
"""

from dataclasses import dataclass, field
from fractions import Fraction

import pyarrow as pa

from tracekit.engine.buckets import KEYS
from tracekit.ranks.columns import CALLS, RankColumns


@dataclass
class Planned:
    """A collective before it runs: the work before it on each rank, as (bucket, ns), and how long work hides it."""

    group: tuple[int, ...]
    transfer: int
    work: dict[int, list[tuple[str, int]]]
    hidden: dict[int, int]


@dataclass
class Ran:
    number: int
    group: tuple[int, ...]
    transfer: int
    arrived: dict[int, int]
    end: int

    def wait(self, rank):
        return max(self.arrived.values()) - self.arrived[rank]


@dataclass
class Job:
    """What happened: the bucket of each nanosecond of each rank, and the collectives."""

    on_gpu: bool
    states: dict[int, list[str]] = field(default_factory=dict)
    ran: list[Ran] = field(default_factory=list)

    @staticmethod
    def of(plans, on_gpu):
        job = Job(on_gpu)
        for number, plan in enumerate(plans):
            for rank in plan.group:
                for bucket, ns in plan.work[rank]:
                    job.states.setdefault(rank, []).extend([bucket] * ns)
            arrived = {rank: len(job.states.setdefault(rank, [])) for rank in plan.group}
            end = max(arrived.values()) + plan.transfer
            for rank in plan.group:
                hidden = min(plan.hidden[rank], end - arrived[rank])
                job.states[rank] += ["gpu_compute" if on_gpu else "cpu_compute"] * hidden
                job.states[rank] += ["gpu_comm" if on_gpu else "python"] * (end - arrived[rank] - hidden)
            job.ran.append(Ran(number, plan.group, plan.transfer, arrived, end))
        return job

    def columns(self, clocks):
        """What reading each rank's trace would give; `clocks` says by how many ns each clock is ahead."""
        numbers = {id(each): sum(other.group == each.group for other in self.ran[: each.number]) for each in self.ran}
        groups = {str(each.group): each.group for each in self.ran}
        return [
            RankColumns(
                rank=rank,
                world_size=len(self.states),
                trace=f"rank{rank}.json",
                means={"wall": None, "host": None},
                steps=pa.table({"step": [0], "steady": [True]}),
                calls=self._calls(rank, clocks[rank], numbers),
                groups=groups,
            )
            for rank in sorted(self.states)
        ]

    def _calls(self, rank, clock, numbers):
        rows = [
            {
                "step": 0,
                "kind": "all_reduce",
                "group": str(each.group),
                "seq": numbers[id(each)],
                "nth": 0,
                "ranks": len(each.group),
                "bytes": None,
                "start_ns": each.arrived[rank] + clock,
                "end_ns": each.end + clock,
                "exposed_ns": 0,
                "spent_at_start_ns": self._spent(rank, each.arrived[rank]),
                "spent_at_end_ns": self._spent(rank, each.end),
            }
            for each in self.ran
            if rank in each.group
        ]
        return pa.Table.from_pylist(rows, CALLS)

    def _spent(self, rank, until):
        return [self.states[rank][:until].count(key) for key in KEYS]


def blame(job, each):
    """The last rank of a collective, who is to blame, for which bucket, and how certain that is."""
    last = max(each.group, key=lambda rank: (each.arrived[rank], -rank))
    base = _base(job, each, last)
    windows = {rank: range(base.end if base is not None else 0, each.arrived[rank]) for rank in each.group}
    inside = {rank: _inside(job, rank, windows[rank]) for rank in each.group}
    beyond = {}
    for key in KEYS:
        if key != "gpu_comm":
            spent = {rank: _own(job, rank, key, windows[rank], inside[rank]) for rank in each.group}
            beyond[key] = _beyond(spent, last)
    bucket = max(beyond, key=lambda key: beyond[key])  # of equals the first
    waiting = _beyond({rank: sum(_waited(job, rank, each) for each in inside[rank]) for rank in each.group}, last)
    if waiting <= max(beyond[bucket], 0):
        return last, last, bucket if beyond[bucket] > 0 else None, "its own"
    blamed = {}
    for other in inside[last]:
        if waited := _waited(job, last, other):
            _, rank, why, how = blame(job, other)
            sure = how != "passed on, inferred" and _nothing_else(job, last, other)
            before = blamed.get((rank, why), (0, True))
            blamed[rank, why] = before[0] + waited, before[1] and sure
    (rank, why), (_, sure) = max(blamed.items(), key=lambda item: item[1][0])
    return last, rank, why, "passed on" if sure else "passed on, inferred"


def _base(job, each, last):
    """The latest collective that all of its ranks had left before they arrived."""
    before = [
        other
        for other in job.ran
        if other is not each
        and set(each.group) <= set(other.group)
        and all(other.end <= each.arrived[rank] for rank in each.group)
    ]
    return max(before, key=lambda other: other.end, default=None)


def _inside(job, rank, window):
    """The collectives that the rank went through in that time."""
    return [
        each
        for each in job.ran
        if rank in each.group and window.start <= each.arrived[rank] and each.end <= window.stop
    ]


def _own(job, rank, key, window, inside):
    """How long the rank was in this bucket; Python inside a collective does not count as its own."""
    moments = [t for t in window if job.states[rank][t] == key]
    if key == "python":
        moments = [t for t in moments if not any(each.arrived[rank] <= t < each.end for each in inside)]
    return len(moments)


def _waited(job, rank, each):
    """How long the rank did nothing but wait, beyond the transfer."""
    idle = sum(job.states[rank][t] in ("gpu_comm", "python") for t in range(each.arrived[rank], each.end))
    return min(max(idle - each.transfer, 0), each.wait(rank))


def _nothing_else(job, rank, each):
    return all(job.states[rank][t] == "gpu_comm" for t in range(each.arrived[rank], each.end))


def _beyond(of_ranks, last):
    others = [each for rank, each in of_ranks.items() if rank != last]
    return of_ranks[last] - Fraction(sum(others), len(others))
