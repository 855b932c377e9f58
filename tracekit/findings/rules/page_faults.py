"""Does the process give memory back in each step, and get it anew?"""

from collections.abc import Iterator

from tracekit.base.pages import Cure
from tracekit.base.units import count, duration, percent
from tracekit.findings import Finding, FindingPage, rule
from tracekit.findings.counted import stretch
from tracekit.profile import Profile

_MIN_SHARE_OF_STEP = 0.03  # of an unprofiled step
_LINK = "https://www.gnu.org/software/libc/manual/html_node/Malloc-Tunable-Parameters.html"

_PAGE = FindingPage(
    "page_faults",
    "Memory is returned to the system, and faulted in again",
    says="""The process of a step was given pages of memory anew (minor page faults, as `getrusage` counts them in the
        unprofiled passes), and at what a page costs on this machine, that takes 3 % or more of an unprofiled step.""",
    slow="""glibc returns a large block to the system when it is freed, and the top of the heap once enough of it is
        free. A training frees and allocates the same buffers in each step, so the system has to clear each of their
        pages again: 4 KiB at a time, in the middle of an operator.""",
    cost="""It has the number of faults in a step times what one costs, which the capture measures: it touches fresh
        pages for the first time and for the second.""",
    limits="""It is inferred: a fault in a training may cost more or less than in that measurement, with other caches
        and several threads, and memory that a data loader or the program itself needs anew is faulted in, too.""",
    cures=(
        Cure(
            """Let glibc keep what is freed: `MALLOC_TRIM_THRESHOLD_=1073741824 MALLOC_MMAP_THRESHOLD_=33554432
            python train.py`. The process then holds the most memory that it ever needed.""",
            "memory",
        ),
        Cure("Use an allocator that keeps pages: `LD_PRELOAD=libjemalloc.so.2` or `libtcmalloc.so.4`.", "memory"),
    ),
    links=(_LINK,),
)


@rule("page_faults", pages=(_PAGE,))
def page_faults(profile: Profile) -> Iterator[Finding]:
    """`page_faults`: what the unprofiled passes paid for them."""
    measured = profile.variant.measured if profile.variant is not None else None
    page_ns = profile.run.environment.get("page_fault_ns") if profile.run is not None else None
    mean = profile.means["wall"]
    if measured is None or mean is None or not isinstance(page_ns, int | float):
        return
    turns = [turn for timed_pass in measured.counted_passes for turn in timed_pass.turns]
    faults = [turn.minor_faults for turn in turns if turn.minor_faults is not None]
    if not faults or len(faults) < len(turns):
        return
    a_step = sum(faults) / sum(turn.steps for turn in turns)
    share = a_step * page_ns / measured.step_ns
    if not _MIN_SHARE_OF_STEP <= share < 1:
        return
    yield Finding(
        "page_faults",
        "Memory is given back and faulted in again in each step",
        cost_ns=a_step * page_ns * stretch(profile, mean.step_ns),
        why=f"The unprofiled passes met {count(round(a_step))} page faults a step, of about {duration(page_ns)} each "
        f"on this machine: {percent(share)} of a step.",
        do="Let the allocator keep what is freed: start the program with MALLOC_TRIM_THRESHOLD_=1073741824 "
        "MALLOC_MMAP_THRESHOLD_=33554432, or with jemalloc or tcmalloc (LD_PRELOAD).",
        link=_LINK,
        confidence="inferred",
    )
