"""Does the GPU idle although work is queued, for longer than any submission takes?"""

import re
from collections.abc import Iterator

import numpy as np

from tracekit.base.intervals import Ints, distinct
from tracekit.base.pages import Cure
from tracekit.base.units import count, duration, many, percent, ratio
from tracekit.findings import Finding, FindingPage, Where, evidence, rule
from tracekit.findings.kernels import QueueWaits, operator_names, queue_waits, time_of
from tracekit.profile import Profile
from tracekit.trace.rereading import arguments
from tracekit.trace.roles import OVERHEAD
from tracekit.trace.rows import BEFORE
from tracekit.vocabulary.kernel_names import kernel_in_prose

_SLOWER = 1.3  # than equal kernels elsewhere: the clock has dropped, or something else uses the GPU at the same time
_MIN_SHARE_OF_WAITS = 0.5  # of the waits, or of their time
_LOOKED_AT = 16  # waits whose contexts are looked up
_HOST_FUNCTION = re.compile(r"(?:cuda|hip|cu)(?:LaunchHostFunc|StreamAddCallback)")
_STREAM_WAIT = re.compile(r"(?:cuda|hip|cu)(?:StreamWaitEvent|StreamWaitValue(?:32|64)?)")
_LINK = "https://docs.nvidia.com/deploy/nvidia-smi/index.html"


_PAGE = FindingPage(
    "queued_not_started",
    "Queued work does not start",
    says="""Work was queued, and nothing of this process ran on the GPU, for longer than any submission takes (30 µs).
        The finding says what the trace shows for each possible reason, and what it rules out.""",
    slow="""Something else holds the GPU: mostly another process, whose kernels are not in your trace, such as a
        display, another job, or a second worker. Other reasons are a function on the host that the stream waits for,
        an event of another stream, the loading of a kernel's code, a switch between contexts, or the profiler.""",
    cost="It claims these waits: gaps in the bucket `gpu_gap` of 30 µs or more.",
    limits="""A trace holds one process, so that another one is suspected only because nothing else explains the wait.
        Where the profiler lost kernels, such time is unknown, and not claimed.""",
    cures=(
        Cure("See who else uses the GPU (`nvidia-smi`), and measure when nobody does.", "changes nothing"),
        Cure(
            "Follow the clue that the finding names: shorten the host function, record the event earlier, warm up.",
            "changes nothing",
        ),
    ),
    links=(_LINK,),
)


@rule("queued_not_started", device="gpu", pages=(_PAGE,))
def queued_not_started(profile: Profile) -> Iterator[Finding]:
    """`queued_not_started`: neither work nor launch latency, nor the gap between two kernels of a stream."""
    if (mean := profile.means["wall"]) is None:
        return
    waits = queue_waits(profile)
    if not len(waits.start):
        return
    location, ended_by = _ended_by(profile, waits)
    longest = duration(int((waits.end - waits.start).max()))
    clues, excluded = _clues(profile, waits)
    suspects = " ".join(clues) or "Nothing in this recording explains it."
    first = "Rule out what the recording names, then look" if clues else "Look"
    yield Finding(
        "queued_not_started",
        f"Queued work does not start{ended_by}",
        why=f"The GPU idles for {duration(waits.step_ns, like=mean.step_ns)} of {duration(mean.step_ns)} a step, in "
        f"{many(len(waits.start), 'wait')} of up to {longest}. {suspects} Ruled out: {'; '.join(excluded)}.",
        do=f"{first} for another process on the GPU (nvidia-smi), such as a display or another job.",
        where=location,
        evidence=evidence(profile, waits.after[waits.after >= 0]),
        link=_LINK,
        claim=profile.attribution.pieces.union(waits.piece_mask),
    )


def _ended_by(profile: Profile, waits: QueueWaits) -> tuple[Where, str]:
    """The kernel or copy that is waited for longest, and that in words."""
    trace, has_next = profile.trace, waits.after >= 0
    if not has_next.any():
        return Where(), ""
    rows, lasting = waits.after[has_next], (waits.end - waits.start)[has_next]
    codes, inverse = np.unique(trace.name_codes[rows], return_inverse=True)
    row = rows[inverse == np.bincount(inverse, lasting).argmax()][0]
    maker = int(operator_names(profile, np.array([row]))[0])
    name = trace.name(row)
    location = Where(kernel=name, operator=trace.names[maker] if maker >= 0 else None)
    return location, f", {'before' if len(codes) == 1 else 'longest before'} {kernel_in_prose(name)}"


def _clues(profile: Profile, waits: QueueWaits) -> tuple[list[str], list[str]]:
    """What the trace says for each possible cause: sentences about what it shows, and what it rules out."""
    clues, excluded, trace = [], [], profile.trace
    threshold = _MIN_SHARE_OF_WAITS * len(waits.start)
    if profile.variant is not None and (others := profile.variant.gpu_neighbours):
        clues.append(
            f"{many(others, 'other process', 'other processes')} had this GPU open while steps were timed: if they "
            "computed, queued work waited for theirs. Capture when nothing else uses it."
        )
    if not trace.coverage.is_incomplete.any():
        excluded.append("unrecorded work of this process (every launch has its kernel)")
    overhead = time_of(profile, trace.where(lambda part: part.roles.kind == OVERHEAD))
    share = float(overhead.within(waits.start, waits.end).sum() / (waits.end - waits.start).sum())
    if share >= _MIN_SHARE_OF_WAITS:
        clues.append(f"The profiler's own work covers {percent(share)} of them: record fewer steps at a time.")
    activities = trace.where(lambda part: part.roles.gpu)
    firsts = activities[np.unique(trace.name_codes[activities], return_index=True)[1]]
    if (first := int(np.isin(waits.after[waits.after >= 0], firsts).sum())) >= threshold:
        clues.append(
            f"{count(first)} of {count(len(waits.start))} end with the first run of a kernel: its code may have "
            "been loaded then. That happens once; warm up before you measure."
        )
    if (callbacks := _calls_before(profile, waits, _HOST_FUNCTION)) >= threshold:
        clues.append(f"Before {count(callbacks)}, the stream was told to run a function on the host: make it shorter.")
    if (awaited := _calls_before(profile, waits, _STREAM_WAIT)) >= threshold:
        clues.append(f"Before {count(awaited)}, the stream was told to wait for another: record that event earlier.")
    contexts = _contexts(profile, waits)
    if contexts > 0:
        clues.append(f"{count(contexts)} of them lie between work of two contexts: keep to one process and context.")
    elif contexts == 0:
        excluded.append("a switch between contexts of this process (all work is of one)")
    slower = _slower(profile, waits)
    if slower is not None and slower >= _SLOWER:
        clues.append(
            f"Kernels after a wait take {ratio(slower)} their usual time: the clock drops, or something else uses the "
            "GPU (nvidia-smi -q -d PERFORMANCE)."
        )
    elif slower is not None:
        excluded.append("a throttled clock (kernels after a wait are as fast as others)")
    excluded.append("priorities among its streams (none of them runs meanwhile)")
    return clues, excluded


def _calls_before(profile: Profile, waits: QueueWaits, name: re.Pattern[str]) -> int:
    """How many waits have a call of such a name between the launch of the work before and that of the work after."""
    trace = profile.trace
    calls = trace.where(lambda part: part.roles.runtime & part.roles.named(name, runtime=True))
    starts = np.sort(trace.ts_ns[calls])

    def launched(rows: Ints) -> Ints:
        """When the call that submitted each activity began, ns; `BEFORE` for −1, or without a known call."""
        calls = np.full(len(rows), -1, np.int64)
        calls[rows >= 0] = trace.links.launch(rows[rows >= 0])
        return np.where(calls >= 0, trace.ts_ns[np.maximum(calls, 0)], BEFORE)

    low, high = launched(waits.before), launched(waits.after)
    return int((np.searchsorted(starts, high) > np.searchsorted(starts, low)).sum())


def _contexts(profile: Profile, waits: QueueWaits) -> int:
    """How many of the longest waits lie between work of different contexts; −1 where contexts are unknown."""
    bounded = np.flatnonzero((waits.before >= 0) & (waits.after >= 0))
    longest = bounded[np.argsort(waits.start[bounded] - waits.end[bounded], kind="stable")][:_LOOKED_AT]
    pairs = waits.before[longest], waits.after[longest]
    call_arguments = arguments(profile.trace, np.concatenate(pairs))
    contexts = [
        [call_arguments[row].context if row in call_arguments else None for row in rows.tolist()] for rows in pairs
    ]
    context_pairs = [
        (before, after) for before, after in zip(*contexts, strict=True) if before is not None and after is not None
    ]
    return sum(before != after for before, after in context_pairs) if context_pairs else -1


def _slower(profile: Profile, waits: QueueWaits) -> float | None:
    """How many times as long as usual kernels after a wait take (median); None where no other has their names."""
    trace = profile.trace
    after = waits.after[waits.after >= 0]
    activities = trace.where(lambda part: part.roles.gpu & part.lasting)
    ratios = []
    for code in distinct(trace.name_codes[after]).tolist():
        delayed = after[trace.name_codes[after] == code]
        undelayed = np.setdiff1d(activities[trace.name_codes[activities] == code], delayed)
        if len(undelayed):
            ratios += (trace.dur_ns[delayed] / np.median(trace.dur_ns[undelayed])).tolist()
    return float(np.median(ratios)) if ratios else None
