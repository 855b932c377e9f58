"""Is the work there that was launched, and are the launches there of the work?"""

from collections.abc import Iterator

import numpy as np

from tracekit.base.intervals import Ints
from tracekit.base.units import count, many, percent
from tracekit.trace.facts.coverage import time_of_lost_work
from tracekit.trace.facts.law import Broken, law
from tracekit.trace.facts.laws.sides import why_calls_unknown
from tracekit.trace.model import Trace

_MAX_LOST_SHARE = 0.02  # of the activities of a step, or of a recording: losing fewer changes no figure that matters
_LISTED_STEPS = 6
_MIN_LISTED_SHARE = 0.5  # of a step's activities: where fewer are lost in each, the steps are not listed
_MIN_UNLAUNCHED_SHARE = 0.02  # of the activities


@law("lost_work", "doubt", touches=("gpu work", "gpu idle"))
def lost_work(trace: Trace) -> Iterator[Broken]:
    """Launches without work: the profiler lost kernels, and the GPU seems idle while it worked.

    Holds: Each launch of a kernel, and each copy, has its work in the trace, unless a CUDA graph took it in.
    Breaks: More than 2 % of a step's activities are missing, or 2 % of all; fewer are a note. Replays of a graph lack
        nodes that other replays of it have.
    Then: From such a launch until its stream is seen to go on, it is unknown whether the GPU worked: that time is
        neither busy nor idle.
    Do: Record fewer steps, or without stacks and shapes, so that the profiler's buffers suffice.
    """
    coverage = trace.coverage
    if not coverage.is_incomplete.any() or trace.impossible.two_clocks:
        return
    expected, missing = coverage.by_step(len(trace.steps))
    steps = np.flatnonzero(missing > _MAX_LOST_SHARE * expected)
    unknown = time_of_lost_work(trace, coverage)
    begin, done = trace.steps.begin, trace.steps.done
    spoiled = np.union1d(steps, np.flatnonzero(unknown.within(begin, done) > _MAX_LOST_SHARE * (done - begin)))
    is_grave = len(spoiled) or coverage.missing.sum() > _MAX_LOST_SHARE * (coverage.present + coverage.missing).sum()
    lost, partial = coverage.lost, int((coverage.is_incomplete & ~coverage.is_lost).sum())
    lacking, have = [], "has" if lost == 1 else "have"
    if lost:
        lacking.append(f"{count(lost)} of {count(len(coverage.calls))} launches {have} no work in the trace")
    if partial:
        lacking.append(f"{many(partial, 'replay')} of CUDA graphs {'lacks' if partial == 1 else 'lack'} nodes")
    yield Broken(
        f"{', and '.join(lacking)}{_where(trace, steps, expected, missing)}: whether the GPU worked then is unknown.",
        int(coverage.missing.sum()),
        int(coverage.calls[coverage.is_incomplete][0]),
        gpu=unknown,
        steps=tuple(spoiled.tolist()),
        severity=None if is_grave else "note",
    )


def _where(trace: Trace, steps: Ints, expected: Ints, missing: Ints) -> str:
    """The steps that lack work, where they can be listed."""
    if not trace.steps.annotated or not 0 < len(steps) < len(trace.steps):
        return ""
    numbers = [str(trace.steps.number[step]) for step in steps[:_LISTED_STEPS].tolist()]
    rest_clause = f" and {count(len(steps) - _LISTED_STEPS)} more" if len(steps) > _LISTED_STEPS else ""
    share = missing[steps].sum() / expected[steps].sum()
    share_clause = "" if share > _MIN_LISTED_SHARE else f" ({percent(share)} of theirs)"
    return f", in step{'s' if len(steps) > 1 else ''} {', '.join(numbers)}{rest_clause}{share_clause}"


@law("lost_launches", "doubt", touches=("gpu work", "gpu idle", "steps", "lines"))
def lost_launches(trace: Trace) -> Iterator[Broken]:
    """Work without a launch, although calls before and after it were recorded: calls were lost.

    Holds: Work of the GPU has the call that launched it.
    Breaks: More than 2 % of the activities have no launch, although calls with smaller and larger correlations were
        recorded; or none has one.
    Then: Why the GPU idles before such work is unknown, and so is the line of it.
    Do: Record fewer steps at a time, and the whole process in one file.
    """
    if trace.device != "gpu" or trace.impossible.two_clocks:
        return
    ids = trace.correlation[trace.where(lambda part: part.roles.runtime & part.process & (part.correlation > 0))]
    rows = trace.where(lambda part: part.roles.gpu & (part.correlation > 0))
    if len(rows) and not trace.census.any(lambda roles: roles.launch) and not why_calls_unknown(trace):
        yield Broken("No launch of the GPU's work was recorded: why it idles is unknown.", len(rows), int(rows[0]))
        return
    if not len(ids) or not len(rows):
        return
    unlinked = np.setdiff1d(rows[trace.links.launch(rows) < 0], trace.impossible.before_call)
    within = unlinked[(trace.correlation[unlinked] > ids.min()) & (trace.correlation[unlinked] < ids.max())]
    if not len(within):
        return
    foreign_calls = trace.where(lambda part: part.roles.runtime & ~part.process)
    # Unless another process of the file may have submitted them.
    if not np.isin(trace.correlation[within], trace.correlation[foreign_calls]).any():
        yield Broken(
            f"{count(len(within))} of {count(len(rows))} GPU activities {'has' if len(within) == 1 else 'have'} no "
            "launch call, although calls around it were recorded: why the GPU idles before such work is unknown.",
            len(within),
            int(within[0]),
            severity=None if len(within) > _MIN_UNLAUNCHED_SHARE * len(rows) else "note",
        )


@law("graph_recording", "note")
def graph_recording(trace: Trace) -> Iterator[Broken]:
    """Launches that a graph being recorded took in run nothing: they are no lost kernels.

    Holds: A launch runs something, unless it is recorded into a CUDA graph.
    Breaks: Launches lie between the beginning and the end of a graph's recording on their thread.
    Then: They are not counted as lost kernels.
    Do: Nothing: this is as it should be.
    """
    captured = trace.coverage.captured
    if len(captured):
        yield Broken(
            f"{many(len(captured), 'launch', 'launches')} recorded into CUDA graphs: what is recorded runs later.",
            len(captured),
            int(captured[0]),
        )
