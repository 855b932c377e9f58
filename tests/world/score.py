"""How often is tracekit right about worlds whose causes are known?"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

from tests.world.causes import Cause
from tests.world.worlds import World, world
from tracekit.findings import Diagnosis, Finding, diagnose
from tracekit.profile import open_subject

QUESTIONS = ("first", "culprit", "cost", "verdict", "quiet", "apart")
WORTH = 0.05  # of a step: a cause that saves less need not be found
NOTHING = 0.01  # of a step: where no cause saves more, nothing is wrong
_CLOSE = 0.10  # of the best saving: as good as the best
_UPPER = 1.25  # times the saving: what a finding may promise
_STARTS = 0.25  # of a step: a first step that start-up prolongs by more is no step like the others
_DECIDES = 0.25  # of a step: a cause that saves as much may be said to bind the step, whatever the rest of it does
_GPU_BOUND = ("gpu_bound", "cuda_graph_ok_gpu_bound")
_LOOPS = ("optimizer_loop", "zero_grad", "operator_loop")  # these take time of the host and of the GPU
_BINDS = {
    "gpu": ("gpu_bound_gemm", "gpu_bound_memory_bound", "gpu_bound_other", "cuda_graph_ok_gpu_bound", *_LOOPS),
    "host": (
        *("launch_bound", "dispatch_bound", "python_bound", "host_freeze", "cpu_compute", "preprocessing", "allocator"),
        *("garbage_collection", *_LOOPS),
    ),
    "sync": ("sync_stall",),
    "data": ("dataloader_bound",),
    "copy": ("h2d_pageable_copy",),
    "comm": ("exposed_comm", "late_rank"),
    "compile": ("compile_in_steps", "recompiles"),
    "start-up": ("cold_start",),
    "foreign": ("queued_not_started",),
}


@dataclass(frozen=True)
class Score:
    """What is right about one world; None where the question does not arise."""

    kind: str  # of the cause that weighs most
    first: bool | None = None
    culprit: bool | None = None
    cost: bool | None = None
    verdict: bool | None = None
    quiet: bool | None = None
    apart: bool | None = None
    said: str = ""


def judge(world: World) -> Score:
    """Let tracekit read the world's trace, and compare."""
    with tempfile.TemporaryDirectory() as folder:
        (member,) = open_subject([world.write(Path(folder))]).members
        diagnosis = diagnose(member)
        apart = bool(member.cold_steps) if world.start_up_ns > _STARTS * world.step_ns else None
    return replace(score(world, diagnosis), apart=apart)


def score(world: World, diagnosis: Diagnosis) -> Score:
    """Compare a diagnosis with the truth."""
    if not world.switches.gpu:
        first = diagnosis.findings[0] if diagnosis.findings else None
        missed = first is not None and first.id == "gpu_side_missing"
        return Score("GPU side missing", missed, verdict=diagnosis.verdict.id == "gpu_side_missing", said=str(first))
    step, savings, account = world.step_ns, world.savings, world.account
    best = max(savings.values(), default=0.0)
    cause = max(savings, key=lambda each: savings[each], default=None)
    every_step = [each for each in diagnosis.findings if not each.once]  # start-up is asked for apart
    every_step = [each for each in every_step if not _restates(diagnosis, each, cause)]
    first = next(iter(every_step), None)
    if first is not None and first.id.startswith(_GPU_BOUND):  # a finding about the kernel itself says more
        first = next((each for each in every_step[1:2] if cause is not None and each.id in cause.ids), first)
    binding = max(account.values())
    right = any(
        diagnosis.verdict.id in _BINDS[name] for name, saved in account.items() if saved >= binding * (1 - _CLOSE)
    )
    if not right and cause is not None and best >= _DECIDES * step:
        right = diagnosis.verdict.id in cause.ids
    said = _said(world, diagnosis, first)
    if cause is None or best < NOTHING * step:
        return Score("nothing wrong", verdict=right, quiet=first is None, said=said)
    kind = type(cause).__name__
    if best < WORTH * step:
        return Score(kind, verdict=right, said=said)
    near = [each for each in savings if savings[each] >= best * (1 - _CLOSE)]
    found = next((each for each in near if first is not None and _speaks_of(first, each)), None)
    if first is None or found is None:
        return Score(kind, False, None, None, right, said=said)
    ratio = (first.share or 0.0) / (savings[found] / step)
    cost = 1 - _CLOSE <= ratio <= (_UPPER if first.bound == "upper" else 1 + _CLOSE)
    return Score(kind, True, _named(world, found, first), cost, right, said=said)


def _speaks_of(finding: Finding, cause: Cause) -> bool:
    """Whether the finding is one of this cause; that the GPU's work takes its time is one of a kernel that it names."""
    return finding.id in cause.ids or (
        finding.id.startswith(_GPU_BOUND) and any(n in str(finding.where) for n in cause.kernels)
    )


def _restates(diagnosis: Diagnosis, finding: Finding, cause: Cause | None) -> bool:
    """Whether the finding only says again, as the verdict does, that the GPU's work takes its time: no cause that could
    be removed, unless it names a kernel that is at fault."""
    restates = finding.id == diagnosis.verdict.id and finding.id.startswith(_GPU_BOUND)
    return restates and not (cause is not None and _speaks_of(finding, cause))


def _named(world: World, cause: Cause, finding: Finding) -> bool | None:
    wanted = (*cause.kernels, *(cause.named if world.stacks else cause.plain))
    return any(name in str(finding.where) for name in wanted) if wanted else None


def _said(world: World, diagnosis: Diagnosis, first: Finding | None) -> str:
    step = world.step_ns
    truth = ", ".join(
        f"{type(c).__name__} {ns / step:.0%}" for c, ns in sorted(world.savings.items(), key=lambda i: -i[1])
    )
    free = max(world.account, key=lambda each: world.account[each])
    told = f"{first.id} {(first.cost_ns or 0) / step:.0%} [{first.where}]" if first else "nothing"
    return f"{truth or 'nothing'} · bound by {free} | {told} · verdict {diagnosis.verdict.id}"


def _judged(seed: int) -> tuple[int, Score]:
    return seed, judge(world(seed))


def rates(scores: Iterable[Score]) -> dict[str, dict[str, tuple[int, int]]]:
    """For each kind of cause and each question: how often right, of how many."""
    table: dict[str, dict[str, tuple[int, int]]] = {}
    for score in scores:
        for kind in (score.kind, "all"):
            row = table.setdefault(kind, dict.fromkeys(QUESTIONS, (0, 0)))
            for question in QUESTIONS:
                answer = getattr(score, question)
                if answer is not None:
                    right, asked = row[question]
                    row[question] = (right + answer, asked + 1)
    return table


def judged(seeds: Iterable[int], workers: int) -> dict[int, Score]:
    """The scores of the worlds with these seeds, from fresh processes: other tests may have left rules of their own."""
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        return dict(pool.map(_judged, seeds, chunksize=4))
