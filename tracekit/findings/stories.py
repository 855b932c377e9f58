"""The known causes of a long hole: each story says how it is recognised, how it is worded, and what to do about it.

The first story that fits applies. Holes of one story make one finding, or one for each event to blame.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tracekit.findings.counted import counted_steps
from tracekit.findings.culprits import plain
from tracekit.findings.finding import Where
from tracekit.findings.holes import Hole
from tracekit.profile import Profile
from tracekit.trace.roles import PYTHON, RUNTIME
from tracekit.units import count, duration

_LAZY = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#lazy-loading"
_COMPILE = "https://docs.pytorch.org/docs/stable/generated/torch.compile.html"
_THREADS = "https://docs.pytorch.org/docs/stable/notes/cpu_threading_torchscript_inference.html"
_PROFILER = "https://docs.pytorch.org/docs/stable/profiler.html"
_MOVE_IT = "Move it out of the step, or do it elsewhere meanwhile: in another thread or process, or on the GPU."


@dataclass(frozen=True)
class Cases:
    """The holes that one finding is about, the longest first, and whose the longest is."""

    profile: Profile
    holes: list[Hole]
    where: Where

    @property
    def longest(self) -> Hole:
        """The one that the finding names."""
        return self.holes[0]

    @property
    def who(self) -> str:
        """What that one is blamed on."""
        return plain(self.longest.name)

    @property
    def at(self) -> str:
        """The user's line, where it is known, as the end of a clause."""
        return f" at {self.where.file}:{self.where.line}" if self.where.file else ""

    @property
    def meanwhile(self) -> str:
        """What that costs, as the end of a clause: on a CPU the time itself, and nothing else."""
        return ", and the GPU idles meanwhile" if self.profile.trace.device == "gpu" else ""

    @property
    def total(self) -> str:
        """How long they last together."""
        pieces = self.profile.cost.pieces
        return duration(int(sum(pieces.dur[each.piece] for each in self.holes)))

    @property
    def per_step(self) -> str:
        """The same of one step."""
        pieces = self.profile.cost.pieces
        return duration(sum(pieces.dur[each.piece] for each in self.holes) / counted_steps(self.profile))

    @property
    def at_most(self) -> str:
        """How long the longest lasts."""
        return duration(int(self.profile.cost.pieces.dur[self.longest.piece]))

    @property
    def times(self) -> str:
        """How many they are."""
        return "once" if len(self.holes) == 1 else f"{count(len(self.holes))} times"


@dataclass(frozen=True)
class Story:
    """One kind of thing that lasts; `id` is that of the finding."""

    id: str
    fits: Callable[[Hole], bool]
    title: Callable[[Cases], str]
    advice: str
    link: str
    together: bool = False  # whoever it hit: one finding


def _fuser_compiles(cases: Cases) -> str:
    return (
        f"TorchScript's fuser compiles in fallback_function, {cases.times}, for {cases.at_most} at most, and launches "
        "nothing meanwhile"
    )


def _first_calls(cases: Cases) -> str:
    names = [*dict.fromkeys(plain(each.name) for each in cases.holes)]
    others = f"; then {', '.join(names[1:4])}" if len(names) > 1 else ""
    idle = " keep the GPU idle for" if cases.meanwhile else " take"
    return f"First calls{idle} {cases.total}, of which {cases.who} takes {cases.at_most}{others}"


def _stands_still(cases: Cases) -> str:
    return (
        f"The host stands still {cases.times}, {cases.total} in all: {cases.who}{cases.at} takes {cases.at_most} where "
        f"it usually takes {duration(cases.longest.usual_ns)}{cases.meanwhile}"
    )


def _nobody_knows(cases: Cases) -> str:
    number = len(cases.holes)
    stretches = "one stretch" if number == 1 else f"{count(number)} stretches, the longest of {cases.at_most}"
    if not cases.meanwhile:
        return f"For {cases.total} nothing was recorded, in {stretches} {cases.longest.name}"
    return f"The GPU idles for {cases.total} in {stretches} {cases.longest.name}, and nothing was recorded meanwhile"


def _busy(who: str) -> Callable[[Cases], str]:
    def title(cases: Cases) -> str:
        doing = cases.at or (f" {cases.longest.name}" if cases.longest.row < 0 else f" in {cases.who}")
        busy = f"The GPU waits while {who} is" if cases.meanwhile else f"{who[:1].upper()}{who[1:]} is"
        return f"{busy} busy{doing}: {cases.per_step} a step, {cases.at_most} at a time"

    return title


def _is_first_call(hole: Hole) -> bool:
    if hole.kind == PYTHON or not hole.odd:
        return False
    return hole.first or (hole.kind == RUNTIME and hole.in_first_step)


STORIES = (
    Story(
        "compile_in_steps",
        lambda hole: hole.fused,
        _fuser_compiles,
        "Warm the scripted function up with every shape before it is measured, switch its fuser off "
        "(torch._C._jit_set_texpr_fuser_enabled(False)), or move to torch.compile.",
        _COMPILE,
        together=True,
    ),
    Story(
        "cold_start",
        _is_first_call,
        _first_calls,
        "This is paid once: leave the first steps out of what you measure, and warm up before a recording (the "
        "schedule's wait and warmup). It matters only where a run is short.",
        _LAZY,
        together=True,
    ),
    Story(
        "host_freeze",
        lambda hole: hole.odd and hole.usual_ns > 0 and not hole.often,
        _stands_still,
        "The host's thread did not run: look for more busy threads than cores (torch.set_num_threads, workers of "
        "loaders, other jobs), Python's garbage collector, or swapping.",
        _THREADS,
        together=True,
    ),
    Story(
        "idle_unexplained",
        lambda hole: hole.row < 0 and not hole.often and not hole.line_known,
        _nobody_knows,
        "Record with Python stacks (with_stack=True), or capture with tracekit, to see what the host did then.",
        _PROFILER,
        together=True,
    ),
    Story("python_bound", lambda hole: hole.row < 0 or hole.in_python, _busy("Python"), _MOVE_IT, _COMPILE),
    Story("dispatch_bound", lambda hole: True, _busy("the host"), _MOVE_IT, _COMPILE),
)


def story_of(hole: Hole) -> Story:
    """What a hole is a case of."""
    return next(story for story in STORIES if story.fits(hole))
