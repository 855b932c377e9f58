"""How long does a step of each variant take, how does that compare, and what is to be done next? For a first glance."""

from collections.abc import Callable

from tracekit.findings.verdict import of_the_gpu
from tracekit.names import HEAD, short
from tracekit.profile import Member, Untraced
from tracekit.report.blocks import Headline, Pace
from tracekit.report.model import Report
from tracekit.run_facts import contrast_of
from tracekit.units import duration, ratio
from tracekit.unprofiled import compared

_MOST = 8  # variants: bars of more are no first glance
_ALIKE = 0.005  # of a ratio
_ONLY_LESS_WORK = "it is GPU-bound; only fewer, smaller or less precise operations make it faster."


def at_a_glance(report: Report, lines: tuple[str, ...]) -> Headline:
    """The sentences that lead the report, with the figures that they are about, as far as those are known.

    Times are unprofiled where each variant has such a time, and otherwise those of the traces: never both.
    """
    of = unprofiled_ns if all(unprofiled_ns(member) for member in report.members) else profiled_ns
    timed = [member for _, group in report.groups for member in group if of(member)]
    if not timed or len(report.members) > _MOST:
        return Headline(lines, "lead")
    shown = dict(zip((each.name for each in timed), short([each.name for each in timed], HEAD), strict=True))
    paces = tuple(
        Pace(shown[each.name], of(each) or 0.0, _against(report, each, of) if len(timed) > 1 else "") for each in timed
    )
    return Headline(lines, "lead", paces, _change(report, shown, timed, of), *_next(report, shown, timed, of))


def unprofiled_ns(member: Member) -> float | None:
    """What a step takes without the profiler, ns; None where that was not measured."""
    return float(member.variant.measured.step_ns) if member.variant and member.variant.measured else None


def profiled_ns(member: Member) -> float | None:
    """The mean step of the trace, ns; None where it has none."""
    mean = member.means["wall"]
    return mean.step_ns if mean is not None else None


def faster(ours: float, theirs: float) -> str:
    """`2.7 × faster`, `1.05 × slower`, `as fast`."""
    factor = theirs / ours
    if abs(factor - 1) < _ALIKE:
        return "as fast"
    return f"{ratio(factor)} faster" if factor > 1 else f"{ratio(1 / factor)} slower"


Time = Callable[[Member], float | None]


def _against(report: Report, member: Member, of: Time) -> str:
    base = report.base_of(member)
    ours, theirs = of(member), of(base)
    if member is base or not ours or not theirs:
        return "baseline" if member is base else ""
    if of is unprofiled_ns and (contrast := contrast_of(member, base)) is not None:
        return compared(contrast)
    return f"{faster(ours, theirs)}, {_doubt(report, member, of)}"


def _doubt(report: Report, member: Member, of: Time) -> str:
    """What speaks against a difference from the baseline; empty if nothing does."""
    if of is unprofiled_ns and (contrast := contrast_of(member, report.base_of(member))) is not None:
        return contrast.doubt
    entry = report.comparison(member.name)
    noise = entry is not None and entry.wall is not None and entry.wall.delta_interval and entry.wall.is_noise()
    return "within noise" if noise else "one trace each"


def _change(report: Report, shown: dict[str, str], timed: list[Member], of: Time) -> str:
    """`2.58 → 0.96 ms a step: compiled is 2.7 × faster than eager`, of the fastest variant that is compared."""
    others = [member for member in timed if report.base_of(member) is not member and of(report.base_of(member))]
    if not others:
        return f"{duration(of(timed[0]))} a step" if len(timed) == 1 else ""
    best = min(others, key=lambda member: of(member) or 0.0)
    base = report.base_of(best)
    before, after = of(base) or 0.0, of(best) or 0.0
    said = [duration(value, like=max(before, after)) for value in (before, after)]
    verdict = faster(after, before)
    than = "as" if verdict == "as fast" else "than"
    times = f"{said[0].rpartition(' ')[0]} → {said[1]} a step"
    doubt = _doubt(report, best, of)
    return f"{times}: {shown[best.name]} is {verdict} {than} {shown[base.name]}{f' ({doubt})' if doubt else ''}"


def _next(report: Report, shown: dict[str, str], timed: list[Member], of: Time) -> tuple[str, str]:
    """What to do next, and in which variant: with the fastest one, which is to be kept; nothing if there is only one,
    whose first finding says it."""
    best = min(timed, key=lambda member: of(member) or 0.0)
    if len(timed) == 1 or isinstance(best, Untraced):
        return "", ""
    # That the GPU's work sets the pace is no cause: it is less to go by than any finding of one.
    findings = sorted(report.diagnoses[best.name].findings, key=lambda each: of_the_gpu(each.id))
    gpu_bound = any(of_the_gpu(each.id) for each in findings) or of_the_gpu(report.diagnoses[best.name].verdict.id)
    otherwise = _ONLY_LESS_WORK if gpu_bound else "nothing worth changing was found."
    return next((each.do for each in findings if each.do), otherwise), shown[best.name]
