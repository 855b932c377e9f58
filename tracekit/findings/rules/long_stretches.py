"""Which single thing on the host keeps the GPU idle, or the CPU from computing, for a millisecond or more? The known
causes of such holes: how each is recognised, how it is worded, and what to do about it. The first that fits applies;
its holes make one finding, or one for each event to blame.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
from msgspec import Struct

from tracekit.base.intervals import Ints, distinct
from tracekit.base.pages import Cure
from tracekit.base.units import count, duration, times
from tracekit.findings import Finding, FindingPage, Where, evidence, rule, time_of_rules
from tracekit.findings.compiler_advice import can_compile, is_compiled
from tracekit.findings.culprits import plain, where_of_event, where_of_piece
from tracekit.findings.holes import OFTEN, Holes, LongStretch
from tracekit.profile import Profile
from tracekit.trace.facts.coverage import device_side_missing
from tracekit.trace.roles import DATALOAD, OPERATOR, PYTHON, RUNTIME
from tracekit.trace.rows import enclosing

_LAZY = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#lazy-loading"
_COMPILE = "https://docs.pytorch.org/docs/stable/generated/torch.compile.html"
_THREADS = "https://docs.pytorch.org/docs/stable/notes/cpu_threading_torchscript_inference.html"
_PROFILER = "https://docs.pytorch.org/docs/stable/profiler.html"
# What PyTorch's own Python is doing when it works on the step itself.
_OF_THE_STEP = re.compile(
    r"(?:.*[/\\])?torch[/\\](?:autograd|optim|nn|amp|_dynamo|_functorch|_inductor|_tensor\.py|_compile\.py)"
    r"|<built-in method run_backward\b",
    re.DOTALL,
)
_LISTED = 3  # places
_MOVE_IT = "Move it out of the step, or do it in parallel: in another thread or process{gpu}."


class StretchGroup(Struct, frozen=True):
    """The holes that one finding is about, the longest first, and where the longest is."""

    profile: Profile
    holes: list[LongStretch]
    location: Where

    @property
    def longest(self) -> LongStretch:
        """The hole that the finding names."""
        return self.holes[0]

    @property
    def culprit(self) -> str:
        """The name of the event that the longest stretch is blamed on."""
        return plain(self.longest.name)

    @property
    def meanwhile(self) -> str:
        """What that costs beside the time itself, as the end of a clause; nothing on a CPU."""
        return ", and the GPU idles meanwhile" if self.profile.trace.device == "gpu" else ""

    @property
    def total(self) -> str:
        """How long the stretches last together."""
        return duration(sum(hole.lasts_ns for hole in self.holes))

    @property
    def per_step(self) -> str:
        """How long the stretches last together in a counted step, on average."""
        return duration(sum(hole.lasts_ns for hole in self.holes) / self.profile.counted_steps)

    @property
    def steps(self) -> int:
        """In how many steps they are."""
        pieces = self.profile.attribution.pieces
        return len({int(pieces.step[hole.piece]) for hole in self.holes})

    @property
    def seldom(self) -> bool:
        """Whether they are in so few steps that a mean over all would describe none of them."""
        return self.steps < OFTEN * self.profile.counted_steps

    @property
    def at_most(self) -> str:
        """How long the longest lasts."""
        return duration(self.longest.lasts_ns)

    @property
    def may_be_loading(self) -> bool:
        """Whether nothing was recorded in any of them, neither a loader nor anything else, and each lies before the
        first operator of its step."""
        trace, pieces = self.profile.trace, self.profile.attribution.pieces
        if any(hole.row >= 0 or hole.line_known for hole in self.holes):
            return False
        if trace.census.any(lambda roles: roles.annotation & roles.named(DATALOAD)):
            return False
        operators = trace.where(lambda part: (part.roles.kind == OPERATOR) & ~part.roles.annotation & part.lasting)
        step_of = trace.steps.of(trace.ts_ns[operators])
        first_ns = np.full(len(trace.steps), np.iinfo(np.int64).max)
        np.minimum.at(first_ns, step_of[step_of >= 0], trace.ts_ns[operators[step_of >= 0]])
        return all(pieces.end[hole.piece] <= first_ns[pieces.step[hole.piece]] for hole in self.holes)

    @property
    def in_backward(self) -> bool:
        """Whether the longest is in an operator of backward."""
        return bool(enclosing(self.profile.trace, self._row, lambda part: part.roles.backward_node)[0] >= 0)

    @property
    def launches(self) -> bool:
        """Whether the event that the longest is blamed on submits work to the GPU."""
        trace = self.profile.trace
        callers = enclosing(trace, trace.links.launches.astype(np.int64), lambda part: part.among(self._row))
        return bool((callers >= 0).any())

    @property
    def _row(self) -> Ints:
        return np.array([self.longest.row], np.int64)

    @property
    def places(self) -> dict[str, int]:
        """What the holes are blamed on, that with most time first, and how many on each."""
        lasting = Counter[str]()
        for hole in self.holes:
            lasting[plain(hole.name)] += hole.lasts_ns
        numbers = Counter(plain(hole.name) for hole in self.holes)
        return {name: numbers[name] for name, _ in lasting.most_common()}

    @property
    def times(self) -> str:
        """How many there are."""
        return times(len(self.holes))


class Cause(Struct, frozen=True):
    """One cause of long holes; `id` is that of the finding."""

    id: str
    fits: Callable[[LongStretch], bool]
    headline: Callable[[StretchGroup], str]
    why: Callable[[StretchGroup], str]
    advice: Callable[[StretchGroup], str]
    link: str
    together: bool = False  # one finding for all of its holes, whatever they are blamed on


def _first_calls(cases: StretchGroup) -> str:
    names = [*dict.fromkeys(plain(hole.name) for hole in cases.holes)]
    next_clause = f"; next come {', '.join(names[1:4])}" if len(names) > 1 else ""
    idle = "keep the GPU idle for" if cases.meanwhile and not any(hole.unseen for hole in cases.holes) else "take"
    return f"First calls {idle} {cases.total}, of which {cases.culprit} takes {cases.at_most}{next_clause}."


def _stalls(cases: StretchGroup) -> str:
    instead = f"{cases.at_most} instead of the usual {duration(cases.longest.usual_ns)}{cases.meanwhile}"
    if len(cases.holes) == 1:
        return f"Once, it takes {instead}."
    places = cases.places
    listed = ", ".join(f"{name} {times(number)}" for name, number in [*places.items()][:_LISTED])
    ellipsis = ", …" if len(places) > _LISTED else ""
    place_clause = f"at {count(len(places))} places ({listed}{ellipsis})" if len(places) > 1 else "there"
    return f"It does so {cases.times} {place_clause}, for {cases.total} in all; the longest takes {instead}."


def _busy(subject: str) -> Callable[[StretchGroup], str]:
    def headline(cases: StretchGroup) -> str:
        position = cases.location.at
        doing = f" in {cases.culprit}{position}" if cases.longest.row >= 0 else position or f" {cases.longest.name}"
        return (
            f"The GPU waits for {subject}{doing}"
            if cases.meanwhile
            else f"{subject[:1].upper()}{subject[1:]} is busy{doing}"
        )

    return headline


def _how_long(cases: StretchGroup) -> str:
    guess = " Nothing was recorded then, before the first operator of a step: it may be loading (a guess)."
    loading = guess if cases.may_be_loading else ""
    if cases.seldom:
        steps = f"{count(cases.steps)} of {count(cases.profile.counted_steps)} steps"
        return f"It takes {cases.total} in all, in only {steps}.{loading}"
    return f"It takes {cases.per_step} a step, up to {cases.at_most} at a time.{loading}"


def _doing_it_elsewhere(cases: StretchGroup) -> str:
    """Only Python and operators that compute on the CPU can be moved, the latter to a GPU where there is one; what
    PyTorch does to take the step cannot."""
    hole = cases.longest
    if cases.may_be_loading:
        return (
            "Find out what the loop does before the first operator, with Python stacks (with_stack=True) or a capture. "
            "If it loads the batch, load in other processes: DataLoader(num_workers=…, persistent_workers=True)."
        )
    if hole.row < 0 or (hole.kind == PYTHON and not _OF_THE_STEP.match(hole.name)):
        return _MOVE_IT.format(gpu=", or on the GPU" if cases.meanwhile else "")
    if hole.kind == RUNTIME:
        return (
            "Find out what the call waits for: the driver, a lock, another process on the GPU, or a core that other "
            "work holds. Its thread does nothing else meanwhile."
        )
    if hole.kind == OPERATOR and not cases.in_backward and not cases.launches:
        return (
            "Let it work on the GPU (create its tensors with device=...), or do it ahead of the step, in a worker of "
            "the data loader."
        )
    return (
        "Run every size once before you measure, and look at what else the machine does: nothing that was recorded "
        f"inside the {'function' if hole.kind == PYTHON else 'operator'} explains its time."
    )


def _always(advice: str) -> Callable[[StretchGroup], str]:
    return lambda _: advice


CAUSES = (
    Cause(
        "compile_in_steps",
        lambda hole: hole.fused,
        lambda cases: f"TorchScript's fuser compiles inside steps: fallback_function{cases.location.at}",
        lambda cases: (
            f"This happens {cases.times}, for {'up to ' if len(cases.holes) > 1 else ''}{cases.at_most}"
            f"{cases.meanwhile}."
        ),
        lambda cases: (
            "Turn its fuser off (torch._C._jit_set_texpr_fuser_enabled(False))"
            + (", or switch to torch.compile" if can_compile(cases.profile) and not is_compiled(cases.profile) else "")
            + ". If every shape occurs in the first steps, it is enough to leave those out of what you measure."
        ),
        _COMPILE,
        together=True,
    ),
    Cause(
        "cold_start",
        lambda hole: hole.first and hole.is_outlier and hole.kind != PYTHON,
        lambda cases: f"One-time start-up: {cases.culprit}{cases.location.at}",
        _first_calls,
        _always(
            "Leave the first steps out of what you measure, and warm up before recording (wait and warmup of the "
            "profiler's schedule): this happens once, and matters only in a short run."
        ),
        _LAZY,
        together=True,
    ),
    Cause(
        "backward_handover",
        lambda hole: hole.handover,
        lambda cases: f"Backward: autograd's thread starts late{cases.location.at}",
        lambda cases: (
            "Autograd runs backward in a thread of its own; nothing was recorded until it took over from the other: "
            f"{cases.per_step} a step, up to {cases.at_most} at a time{cases.meanwhile}."
        ),
        _always(
            "Leave a core free for autograd's thread: fewer threads (torch.set_num_threads), fewer data loader workers "
            "or other jobs, and no thread of yours that keeps Python's lock."
        ),
        _THREADS,
        together=True,
    ),
    Cause(
        "host_freeze",
        lambda hole: hole.is_outlier and hole.usual_ns > 0 and not hole.in_most_steps and hole.kind != PYTHON,
        lambda cases: (
            f"The host stalls{', most of all' if len(cases.places) > 1 else ''} "
            f"in {cases.culprit if cases.longest.row >= 0 else f'the time {cases.longest.name}'}{cases.location.at}"
        ),
        _stalls,
        lambda cases: (
            "Leave the thread a core: other threads of this process work at the same time. Use fewer of them "
            "(torch.set_num_threads, data loader workers)."
            if cases.longest.other_threads_are_busy
            else "Look at what else the machine does: more busy threads and jobs than cores, swapping, Python's "
            "garbage collector. The recording does not show what kept the host; ignore it unless it recurs."
        ),
        _THREADS,
        together=True,
    ),
    Cause(
        "idle_unexplained",
        lambda hole: hole.row < 0 and not hole.in_most_steps and not hole.line_known,
        lambda cases: (
            "The GPU idles, and nothing was recorded meanwhile"
            if cases.meanwhile
            else "Nothing was recorded for a while"
        ),
        lambda cases: (
            f"{'The GPU idles for' if cases.meanwhile else 'Nothing was recorded for'} {cases.total} in "
            + (
                "one stretch"
                if len(cases.holes) == 1
                else f"{count(len(cases.holes))} stretches, the longest ({cases.at_most})"
            )
            + f" {cases.longest.name}."
        ),
        _always(
            "Record with Python stacks (with_stack=True), or capture with tracekit, to see what the host did meanwhile."
        ),
        _PROFILER,
        together=True,
    ),
    Cause(
        "python_bound",
        lambda hole: hole.row < 0 or hole.in_python,
        _busy("Python"),
        _how_long,
        _doing_it_elsewhere,
        _COMPILE,
    ),
    Cause("dispatch_bound", lambda hole: True, _busy("the host"), _how_long, _doing_it_elsewhere, _COMPILE),
)


_FREEZE_PAGE = FindingPage(
    "host_freeze",
    "The host stalls now and then",
    says="""An event takes at least 20 times the median of the others of its name at the same line (of operators, of
        those with the same input sizes), keeps the GPU waiting for a millisecond or more, and does so in fewer than
        half of the steps. Nothing recorded inside it explains that.""",
    slow="""Something took the core away from the thread, or made it wait: more busy threads than cores, swapping,
        Python's garbage collector, a lock. The code at the named place is seldom at fault: it is where the stall
        happened.""",
    cost="It claims these stretches, and the cost is their mean over all counted steps.",
    limits="""The first call with a rare size looks the same if sizes were not recorded. The finding says whether other
        threads of the process worked at the time; of other processes the trace knows nothing.""",
    cures=(
        Cure(
            """Leave the main thread a core: fewer workers, and `torch.set_num_threads` below the number of cores.
            Workers draw random numbers of their own.""",
            "results",
        ),
        Cure("Look at what else the machine does, and ignore what does not recur.", "changes nothing"),
        Cure("Collect garbage between epochs (`gc.disable()`, `gc.collect()`).", "memory"),
    ),
    links=(_THREADS,),
)
_HANDOVER_PAGE = FindingPage(
    "backward_handover",
    "Backward starts late in autograd's thread",
    says="""Backward runs in a thread of autograd's own. Between the call of `backward()` and the first operator there,
        or between the last one and the return, nothing is recorded for a millisecond or more.""",
    slow="""A thread that wakes up needs a core and, for Python hooks and functions, Python's lock. If workers or other
        threads hold them, backward waits, and the GPU runs dry.""",
    cost="It claims these stretches, and shorter ones of the same kind where they occur in most steps.",
    limits="""That the thread waited for a core is not recorded; it may as well have waited for Python's lock. After
        backward, the stretch counts only where the line that called it is known.""",
    cures=(
        Cure(
            """Leave a core free: fewer data loader workers, and `torch.set_num_threads` below the number of cores.
            Workers draw random numbers of their own.""",
            "results",
        ),
        Cure("Keep other Python threads from working during backward.", "changes nothing"),
    ),
    links=(_THREADS,),
)


@rule("long_stretches", timed=True, pages=(_FREEZE_PAGE, _HANDOVER_PAGE))
def long_stretches(profile: Profile) -> Iterator[Finding]:
    """`cold_start`, `host_freeze`, `backward_handover`, `idle_unexplained`, `compile_in_steps`, `python_bound`,
    `dispatch_bound`."""
    if device_side_missing(profile.trace) is not None:
        return
    groups: dict[tuple[str, str], tuple[Cause, list[LongStretch]]] = {}
    pieces = profile.attribution.pieces
    long_holes = Holes(profile, time_of_rules(profile, "pageable_copies", "allocator", "host_compute"))
    # What else has a rule of its own still shows what recurs.
    is_explained = time_of_rules(
        profile, "preprocessing", "recorded_graphs", "prepared_graphs", "graph_building"
    ).covers(pieces.start)
    for hole in long_holes:
        cause = next(cause for cause in CAUSES if cause.fits(hole))
        if is_explained[hole.piece] or hole.outlier or (hole.unseen and cause.id != "cold_start"):
            continue
        blamed = str(_location(profile, hole)) if hole.row < 0 else hole.name
        _, holes = groups.setdefault((cause.id, "" if cause.together else blamed), (cause, []))
        holes.append(hole)
    for cause, holes in groups.values():
        holes.sort(key=lambda hole: -hole.lasts_ns)
        longest = holes[0]
        cases = StretchGroup(profile, holes, _location(profile, longest))
        events = [row for hole in holes for row in ([hole.row] if hole.row >= 0 else hole.near)]
        is_claimed = np.zeros(len(pieces.start), bool)
        is_claimed[[hole.piece for hole in holes]] = True
        if longest.in_most_steps:
            is_claimed |= long_holes.shorter(longest)
        yield Finding(
            cause.id,
            cause.headline(cases),
            why=cause.why(cases),
            do=cause.advice(cases),
            where=cases.location,
            evidence=evidence(profile, distinct(np.array(events, np.int64))),
            link=cause.link,
            confidence="measured" if longest.row >= 0 else "inferred",
            claim=pieces.union(is_claimed).minus(profile.waits_in_collectives),
        )


def _location(profile: Profile, hole: LongStretch) -> Where:
    if hole.fused:
        return where_of_event(profile, hole.row, "fallback_function")
    if hole.row >= 0:
        return where_of_event(profile, hole.row, plain(hole.name))
    line = where_of_piece(profile, hole.piece)
    return line if line != Where() else Where(operator=hole.name)
