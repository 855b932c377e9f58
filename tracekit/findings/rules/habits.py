"""Known habits that keep the host busy: gradients zeroed or parameters updated one by one, garbage collected."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tracekit.engine.buckets import SLOW_HOST
from tracekit.findings import Finding, Where, evidence, rule
from tracekit.findings.one_by_one import one_by_one
from tracekit.findings.where import where_of_buckets
from tracekit.intervals import Bools, Ints, Union
from tracekit.profile import Profile
from tracekit.trace.enclosing import enclosing
from tracekit.units import count, duration

_LEAST_LAUNCHES = 20  # a step, inside the span: as many parameters as make a loop


@dataclass(frozen=True)
class _Habit:
    """A span that is known by its name, and what is to be done about it."""

    id: str
    name: re.Pattern[str]
    said: str
    advice: str
    link: str
    one_by_one: bool  # a fault only where each parameter launches by itself


ONE_BY_ONE = re.compile(r"Optimizer\.(?:step|zero_grad)#.*", re.DOTALL)
GARBAGE = re.compile(r"Python GC|<built-in (?:function|method) collect\b.*", re.DOTALL)
_HABITS = (
    _Habit(
        "optimizer_loop",
        re.compile(r"Optimizer\.step#.*", re.DOTALL),
        "The optimizer updates parameters one by one",
        "Construct it with foreach=True or fused=True, which update all parameters in a few kernels.",
        "https://docs.pytorch.org/docs/stable/optim.html",
        True,
    ),
    _Habit(
        "zero_grad",
        re.compile(r"Optimizer\.zero_grad#.*", re.DOTALL),
        "Gradients are set to zero one by one",
        "Call zero_grad(set_to_none=True), the default since torch 2.0, which launches nothing.",
        "https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html",
        True,
    ),
    _Habit(
        "garbage_collection",
        GARBAGE,
        "Python collects garbage inside steps",
        "Turn it off in the loop (gc.disable(), gc.freeze()) and collect between epochs, so that it never runs while "
        "the GPU waits.",
        "https://docs.python.org/3/library/gc.html",
        False,
    ),
)


@rule("habits")
def habits(profile: Profile) -> Iterator[Finding]:
    """`optimizer_loop`, `zero_grad`, `garbage_collection`: the time in them during which the GPU idles, and that of the
    kernels that a single one would replace."""
    if profile.means["wall"] is None or profile.trace.device != "gpu":
        return
    for habit in _HABITS:
        yield from _findings_of(profile, habit)


def _findings_of(profile: Profile, habit: _Habit) -> Iterator[Finding]:
    trace, pieces = profile.trace, profile.attribution.pieces
    if not trace.census.any(lambda roles: roles.host & roles.named(habit.name)):
        return
    spans = trace.where(lambda part: part.process & part.roles.named(habit.name) & part.lasting)
    launches = _launches(profile, spans) / profile.counted_steps if habit.one_by_one else 0
    spans = spans[_in_counted_steps(profile, spans)]
    if not len(spans) or (habit.one_by_one and launches < _LEAST_LAUNCHES):
        return
    events = trace.events_at(spans)
    inside = Union.of(events.ts_ns, events.end_ns)
    idle = pieces.union(pieces.of(*SLOW_HOST))
    claim = one_by_one(profile, inside) if habit.one_by_one else inside.common(idle)
    line, _ = where_of_buckets(profile, "python")
    calls = f"{count(round(launches))} launches and " if habit.one_by_one else ""
    location = Where(operator=trace.names[trace.name_codes[spans[0]]]) if habit.one_by_one else line
    took = trace.dur_ns[spans].sum() / profile.counted_steps
    yield Finding(
        habit.id,
        f"{habit.said}{location.at}",
        why=f"That is {calls}{duration(took)} of the host's time per step.",
        do=habit.advice,
        where=location,
        evidence=evidence(profile, spans),
        link=habit.link,
        claim=claim,
        host=inside,
    )


def _launches(profile: Profile, spans: Ints) -> int:
    """How many launch calls of counted steps are made inside those spans."""
    trace = profile.trace
    calls = trace.where(lambda part: part.roles.launch & part.process)
    calls = calls[_in_counted_steps(profile, calls)]
    return int((enclosing(trace, calls, lambda part: part.among(spans)) >= 0).sum())


def _in_counted_steps(profile: Profile, rows: Ints) -> Bools:
    """Which of these events start in a counted step."""
    return profile.in_counted(profile.trace.steps.of(profile.trace.ts_ns[rows]))
