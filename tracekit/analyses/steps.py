"""How long does each step take, and does the host or the GPU set the pace?"""

import numpy as np
import pyarrow as pa

from tracekit.analyses import Answer, analysis, table
from tracekit.base.intervals import NO_INTS
from tracekit.base.units import count, duration, percent
from tracekit.engine.buckets import BUCKETS, HOST, ON_THE_GPU, WALL, Bound, by_bound
from tracekit.profile import Profile
from tracekit.profile.rare_work import rare_work
from tracekit.profile.recording_words import has_steps
from tracekit.statistics.typical_step import typical_step
from tracekit.trace.schema import column

STEPS = pa.schema(
    [
        column("step", pa.int64(), "the N of ProfilerStep#N", role="identity"),
        column("start_ns", pa.int64(), "start of its work, on the trace's clock", "clock", role="plumbing"),
        column("wall_ns", pa.int64(), "wall time, until its work is done", "ns"),
        column("host_ns", pa.int64(), "time until the host had issued it", "ns"),
        column("ahead_ns", pa.int64(), "how far the host was ahead of the work when it had issued the step", "ns"),
        column("steady", pa.bool_(), "whether nothing is compiled in the step"),
        column("busy", pa.float64(), "share of the wall time in which the GPU worked", "share"),
        column(
            "most",
            pa.string(),
            "bucket with most of the wall time, or of the host time where the wall time is unknown",
            title="mostly",
        ),
        column("most_ns", pa.int64(), "time in that bucket", "ns", title="of which"),
    ]
)
_BUSY_BUCKETS = [WALL.index(key) for key in ON_THE_GPU]
_MIN_SHARE_TO_REPORT = 0.01  # of the host's time: shorter waits are not told
_GPU_BOUND = 0.9  # of a step
# What a GPU does that is not busy, by what would bound a step in which it did nothing else.
IDLES: dict[Bound, str] = {
    "host": "waits for the host",
    "syncs": "idles because the host waits for it",
    "data": "waits for the next batch",
    "compiling": "waits while something is compiled",
    "code loading": "waits while its code is loaded",
    "profiler": "waits while the profiler works",
    "gaps": "idles although work is queued",
    "unrecorded": "waits for what was not recorded",
}


@analysis("steps", rank=10)
def answer(profile: Profile) -> Answer:
    """One row per step."""
    attribution, steps = profile.attribution, profile.trace.steps
    answered = "wall" not in attribution.cannot_answer
    keys, parts = (WALL, attribution.wall) if answered else (HOST, attribution.host)
    largest = parts.argmax(axis=1) if len(steps) else NO_INTS
    busy = attribution.wall[:, _BUSY_BUCKETS].sum(axis=1) / np.maximum(attribution.wall_ns, 1)
    wall_known = attribution.wall_known & profile.trace.unknown.whole(len(steps))
    busy_known = wall_known if profile.trace.device == "gpu" else np.zeros(len(steps), bool)
    step_known = wall_known if answered else attribution.host_known
    summary = table(
        STEPS,
        {
            "step": steps.number,
            "start_ns": steps.begin,
            "wall_ns": pa.array(attribution.wall_ns, mask=~wall_known),
            "host_ns": pa.array(attribution.host_ns, mask=~attribution.host_known),
            "ahead_ns": pa.array(steps.done - steps.returned, mask=~wall_known),
            "steady": ~attribution.compiles,
            "busy": pa.array(busy, mask=~busy_known),
            "most": pa.array([BUCKETS[keys[bucket]].label for bucket in largest.tolist()], mask=~step_known),
            "most_ns": pa.array(parts[np.arange(len(steps)), largest], mask=~step_known),
        },
    )
    counted = profile.counted & busy_known
    sentence = _sentence(profile, float(busy[counted].mean()) if counted.any() else None)
    rare = rare_work(profile)
    sentence += f" {rare.in_words}." if rare is not None else ""
    return Answer("steps", "Steps", sentence, summary, worth=rare.share if rare is not None else 0.0)


def _sentence(profile: Profile, busy: float | None) -> str:
    attribution, counted = profile.attribution, profile.counted
    if not len(counted):
        return "Every step in the trace has zero duration."
    single = int(counted.sum()) == 1
    # A single step cannot be seen to be steady.
    noun = f"{'' if profile.all_compile or single else 'steady '}step{'' if single else 's'}"
    host, issued = profile.means["host"], ""
    if host is not None:  # waiting in syncs is no issuing
        work, waits = "its work" if not has_steps(profile) else "it" if single else "one", host.parts["sync"]
        wait_clause = f" and waits {duration(waits)} in syncs" if waits >= _MIN_SHARE_TO_REPORT * host.step_ns else ""
        issued = f"the host takes {duration(host.step_ns - waits)} to issue {work}{wait_clause}"
    if not profile.answered["wall"].any():
        extent = (
            f"{count(len(counted))} step{'' if len(counted) == 1 else 's'}" if has_steps(profile) else "the recording"
        )
        return f"How long {extent} took is unknown{f'; {issued}' if issued else ''}."
    walls = attribution.wall_ns[counted]
    subject = f"{count(len(walls))} {noun} take{'s' if single else ''}" if has_steps(profile) else "The recording takes"
    text = f"{subject} {duration(float(walls.mean()))}"
    text += "" if single else " on average"
    if len(walls) > 1:
        typical = typical_step(walls.tolist(), profile.pattern)
        middle = f"median {duration(typical.step_ns)}, " if typical.alike else ""
        text += f" ({middle}{duration(int(walls.min()))} to {duration(int(walls.max()))})"
    if profile.all_compile:
        text += "; all of them compile"
    if busy is None:
        return f"{text}."
    mean = profile.means["wall"]
    times = by_bound(mean.parts if mean is not None else {})
    idles = IDLES[max(IDLES, key=lambda bound: times[bound])]  # what most of the GPU's idle time is spent on
    pace = ": GPU-bound" if busy >= _GPU_BOUND else f"; otherwise, it mostly {idles}"
    return f"{text}; {f'{issued}, and ' if issued else ''}the GPU is busy {percent(busy)} of the time{pace}."
