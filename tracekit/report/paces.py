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

_MAX_VARIANTS = 8  # variants: bars of more are no first glance
_ALIKE = 0.005  # of a ratio
_ONLY_LESS_WORK = "it is GPU-bound; only fewer, smaller or less precise operations make it faster."


def at_a_glance(report: Report, lines: tuple[str, ...]) -> Headline:
    """The sentences that lead the report, with the figures that they are about, as far as those are known.

    Times are unprofiled where each variant has such a time, and otherwise those of the traces: never both.
    """
    step_ns_of = unprofiled_ns if all(unprofiled_ns(member) for member in report.members) else profiled_ns
    timed = [member for _, group in report.groups for member in group if step_ns_of(member)]
    if not timed or len(report.members) > _MAX_VARIANTS:
        return Headline(lines, "lead")
    names = dict(zip((member.name for member in timed), short([member.name for member in timed], HEAD), strict=True))
    paces = tuple(
        Pace(
            names[member.name],
            step_ns_of(member) or 0.0,
            _against(report, member, step_ns_of) if len(timed) > 1 else "",
        )
        for member in timed
    )
    return Headline(
        lines,
        "lead",
        paces,
        _change(report, names, timed, step_ns_of),
        *_next_action(report, names, timed, step_ns_of),
    )


def unprofiled_ns(member: Member) -> float | None:
    """What a step takes without the profiler, ns; None where that was not measured."""
    return float(member.variant.measured.step_ns) if member.variant and member.variant.measured else None


def profiled_ns(member: Member) -> float | None:
    """The mean step of the trace, ns; None where it has none."""
    mean = member.means["wall"]
    return mean.step_ns if mean is not None else None


def faster(step_ns: float, base_step_ns: float) -> str:
    """`2.7 × faster`, `1.05 × slower`, `as fast`."""
    factor = base_step_ns / step_ns
    if abs(factor - 1) < _ALIKE:
        return "as fast"
    return f"{ratio(factor)} faster" if factor > 1 else f"{ratio(1 / factor)} slower"


Time = Callable[[Member], float | None]


def _against(report: Report, member: Member, step_ns_of: Time) -> str:
    base = report.base_of(member)
    step_ns, base_step_ns = step_ns_of(member), step_ns_of(base)
    if member is base or not step_ns or not base_step_ns:
        return "baseline" if member is base else ""
    if step_ns_of is unprofiled_ns and (contrast := contrast_of(member, base)) is not None:
        return compared(contrast)
    return f"{faster(step_ns, base_step_ns)}, {_doubt(report, member, step_ns_of)}"


def _doubt(report: Report, member: Member, step_ns_of: Time) -> str:
    """What speaks against a difference from the baseline; empty if nothing does."""
    if step_ns_of is unprofiled_ns and (contrast := contrast_of(member, report.base_of(member))) is not None:
        return contrast.doubt
    entry = report.comparison(member.name)
    noise = entry is not None and entry.wall is not None and entry.wall.delta_interval and entry.wall.is_noise()
    return "within noise" if noise else "one trace each"


def _change(report: Report, names: dict[str, str], timed: list[Member], step_ns_of: Time) -> str:
    """`2.58 → 0.96 ms a step: compiled is 2.7 × faster than eager`, of the fastest variant that is compared."""
    compared_members = [
        member for member in timed if report.base_of(member) is not member and step_ns_of(report.base_of(member))
    ]
    if not compared_members:
        return f"{duration(step_ns_of(timed[0]))} a step" if len(timed) == 1 else ""
    best = min(compared_members, key=lambda member: step_ns_of(member) or 0.0)
    base = report.base_of(best)
    before, after = step_ns_of(base) or 0.0, step_ns_of(best) or 0.0
    durations = [duration(value, like=max(before, after)) for value in (before, after)]
    verdict = faster(after, before)
    than = "as" if verdict == "as fast" else "than"
    times = f"{durations[0].rpartition(' ')[0]} → {durations[1]} a step"
    doubt = _doubt(report, best, step_ns_of)
    return f"{times}: {names[best.name]} is {verdict} {than} {names[base.name]}{f' ({doubt})' if doubt else ''}"


def _next_action(report: Report, names: dict[str, str], timed: list[Member], step_ns_of: Time) -> tuple[str, str]:
    """What to do next, and in which variant: with the fastest one, which is to be kept; nothing if there is only one,
    whose first finding says it."""
    best = min(timed, key=lambda member: step_ns_of(member) or 0.0)
    if len(timed) == 1 or isinstance(best, Untraced):
        return "", ""
    # That the GPU's work sets the pace is no cause: it is less to go by than any finding of one.
    diagnosis = report.diagnoses[best.name]
    findings = sorted(diagnosis.findings, key=lambda finding: of_the_gpu(finding.id))
    gpu_bound = any(of_the_gpu(finding.id) for finding in findings) or of_the_gpu(diagnosis.verdict.id)
    otherwise = _ONLY_LESS_WORK if gpu_bound else "nothing worth changing was found."
    return next((finding.do for finding in findings if finding.do), otherwise), names[best.name]
