"""The headline: how long a step takes, how that compares with the baseline, and what makes the difference."""

from collections.abc import Iterator

from tracekit.compare import Comparison, Difference
from tracekit.engine.buckets import BUCKETS
from tracekit.profile import Member, Profile, Untraced
from tracekit.profile.missing_device import device_side_missing
from tracekit.profile.recording_words import has_steps, of_the_recording
from tracekit.profile.start_up import cold_said
from tracekit.report.contradictions import Contradiction, contradiction
from tracekit.report.likeness import unlike
from tracekit.report.model import Report
from tracekit.report.paces import faster, unprofiled_ns
from tracekit.run_facts import break_even_doubt, break_even_steps, contrast_of
from tracekit.sanitize import sanitize
from tracekit.typical_step import typical_step
from tracekit.units import count, duration, percent
from tracekit.unprofiled import compared, compiling_cost

_MAX_CONTRIBUTIONS = 4  # contributions a sentence can carry
_WORTH = 0.05  # of all that changed
_MIN_UNKNOWN_SHARE = 0.01  # of what was recorded
_LATE = 0.1  # of a step: a rank that delays the others by less is not told before all else, unless nothing costs more
APART = 0.1  # of the median: a mean that is so far from it describes no step
_CONTRADICTIONS: dict[Contradiction, str] = {
    "": "",
    "opposite": " The traces and the unprofiled step times disagree on which is faster: trust the latter.",
    "unsure": "",  # both sentences say what they rest on
    "smaller": " Without the profiler, the difference is smaller: trust that.",
    "larger": " Without the profiler, the difference is larger: trust that.",
}


def headline(report: Report) -> list[str]:
    """Which rank delays a job; one sentence about each variant and its baseline, or about a baseline that nothing is
    compared with."""
    sentences = [
        *_late_ranks(report),
        *(sentence for base, group in report.groups for sentence in _of_group(report, base, group)),
    ]
    stepless = report.profiles == report.members and not any(map(has_steps, report.profiles))
    return [*map(of_the_recording, sentences)] if stepless else sentences


def _late_ranks(report: Report) -> Iterator[str]:
    for name, diagnosis in report.diagnoses.items():
        late = next((finding for finding in diagnosis.findings if finding.id == "late_rank"), None)
        if late is not None and (late.id == diagnosis.verdict.id or (late.share or 0.0) >= _LATE):
            yield (
                f"{sanitize(name)}: {sanitize(late.title)}." if len(report.members) > 1 else f"{sanitize(late.title)}."
            )


def _of_group(report: Report, base: Member, group: list[Member]) -> list[str]:
    entries = [(member, entry) for member in group if (entry := report.comparison(member.name)) is not None]
    if not entries:
        return [_single_variant(base)]
    return [
        _never_compiled(member) or _against(report, member, base, entry) + _cold(member, base) + _gave_up(member)
        for member, entry in entries
    ]


def _single_variant(member: Member) -> str:
    name, wall, host = sanitize(member.name), member.means["wall"], member.means["host"]
    if isinstance(member, Untraced):
        pace, why = duration(unprofiled_ns(member)), sanitize(f"{member.outcome}: {member.reason}")
        return f"{name} takes {pace} a step unprofiled. Without a trace, it is unknown where its time goes ({why})."
    if wall is not None:
        pace = f"{duration(wall.step_ns)} a step{_median(member)}{_unprofiled(member)}"
        return f"{name} takes {pace}: {_largest(member.parts, member)}." + _left_out(member)
    if host is not None:
        return f"{name}: where the wall time went is unknown; the host spends {_largest(host.parts, member)} a step."
    return f"{name}: neither wall nor host time is known."


def _against(report: Report, member: Member, base: Member, entry: Comparison) -> str:
    name, base_name, wall = sanitize(member.name), sanitize(base.name), entry.wall
    mean, base_mean = member.means["wall"], base.means["wall"]
    contrast = contrast_of(member, base)
    if contrast is not None:
        takes = f"{name} takes {duration(unprofiled_ns(member))} a step unprofiled"
        elsewhere = ", measured in another capture" if contrast.covers == "passes" else ""
        text = f"{takes}, {compared(contrast, base_name)}{elsewhere}.{unlike(member, base)}"
        if wall is None:
            return f"{text} Where the difference comes from is unknown."
        if (change := report.calibrated_difference(entry)) is not None:
            return (
                f"{text} Without the profiler's own time (an estimate), a step changes by "
                f"{duration(change.delta_ns, signed=True)} compared with {base_name}: {_changes(change)}."
            )
        caveat = _CONTRADICTIONS[contradiction(report, entry)]
        return f"{text} Profiled steps are {_traced(wall)}: {_changes(wall)}.{caveat}"
    if wall is None or mean is None or base_mean is None:
        return f"{name} and {base_name}: the wall time of a step cannot be compared."
    noise = ", within noise" if wall.delta_interval is not None and wall.is_noise() else ""
    takes = duration(mean.step_ns, like=max(mean.step_ns, base_mean.step_ns))
    pace = f"{_faster(mean.step_ns, base_mean.step_ns)} {base_name}{noise or ', from one trace each'}"
    text = f"{name} takes {takes} a step, {pace}: {_changes(wall)}.{unlike(member, base)}"
    return text + _left_out(member)


def _median(member: Member) -> str:
    """The median of the steps that the mean covers, where it is another: then no step may be like the mean."""
    if isinstance(member, Untraced):
        return ""
    walls = member.views["wall"].step_ns[member.counted]
    typical = typical_step(walls.tolist())
    apart = abs(float(walls.mean()) / typical.step_ns - 1) > APART
    return f" on average (median {duration(typical.step_ns)})" if typical.alike and apart else ""


def _left_out(member: Member) -> str:
    """What the mean leaves out: the recorded steps that compile, and first steps in which something starts up."""
    if isinstance(member, Untraced):
        return ""
    view, text = member.views["wall"], ""
    compiling = view.known & member.attribution.compiles & ~member.counted
    if cost := int(view.totals[compiling, view.keys.index("compile")].sum()):
        steps = f"{count(int(compiling.sum()))} of its {count(int(view.known.sum()))} steps"
        text = f" Compiling takes another {duration(cost)}, in {steps}."
    known_ns, unseen_ns = int(view.step_ns[view.known].sum()), member.unseen.total()
    if unseen_ns and unseen_ns >= _MIN_UNKNOWN_SHARE * known_ns:
        text += (
            f" Of the {duration(known_ns)} recorded, {duration(unseen_ns)} lie before the first or after the last "
            "recorded work of the GPU: what it did then is unknown."
        )
    if member.cold_steps:
        text += f" Left out of the mean: {sanitize(cold_said(member))}."
    return text


def _never_compiled(member: Member) -> str:
    """A sentence if a variant should have been compiled but ran eagerly: its pace says nothing about the compiler."""
    why = member.variant.effective.ran_eagerly if member.variant else None
    return f"{sanitize(member.name)} ran eagerly: {sanitize(why)}." if why else ""


def _gave_up(member: Member) -> str:
    limits = member.variant.ledger.limits if member.variant else []
    names = [*dict.fromkeys(sanitize(limit.name or "a frame") for limit in limits)]
    if not names:
        return ""
    gave_up = ", ".join(names[:_MAX_CONTRIBUTIONS])
    return f" The compiler gave up on {gave_up} at the recompile limit: from then on, that code ran eagerly."


def _cold(member: Member, base: Member) -> str:
    cost, steps = compiling_cost(member.variant), break_even_steps(member, base)
    if cost and (doubt := break_even_doubt(member, base)):
        return f" Compiling cost {cost}; whether it ever pays off is unknown: {doubt}."
    if not cost or steps is None or member.variant is None or not member.variant.requested.compile:
        return ""
    if steps == float("inf"):
        return f" Compiling cost {cost}, which never pays off."
    return f" Compiling cost {cost}: it breaks even after {count(round(steps))} steps."


def _faster(step_ns: float, base_step_ns: float) -> str:
    if not step_ns or not base_step_ns:
        return "not comparable with"
    pace = faster(step_ns, base_step_ns)
    return f"{pace} {'as' if pace == 'as fast' else 'than'}"


def _changes(wall: Difference) -> str:
    changed = sum(abs(part) for part in wall.parts.values())
    largest = sorted(wall.parts.items(), key=lambda item: -abs(item[1]))
    worth = [(key, part) for key, part in largest if part and abs(part) >= _WORTH * changed][:_MAX_CONTRIBUTIONS]
    like = max(abs(wall.delta_ns), *(abs(part) for part in wall.parts.values()))
    contributions = [f"{duration(part, signed=True, like=like)} {BUCKETS[key].noun}" for key, part in worth]
    return ", ".join(contributions) or "nothing changed"


def _largest(parts: dict[str, float], member: Profile) -> str:
    """The largest parts of a step. Operators that submit work to a device that was not recorded do not compute it."""
    total = sum(parts.values())
    largest = sorted(parts.items(), key=lambda item: -item[1])
    worth = [(key, part) for key, part in largest if part and part >= _WORTH * total][:_MAX_CONTRIBUTIONS]
    nouns = {key: BUCKETS[key].noun for key, _ in worth}
    if "cpu_compute" in nouns and device_side_missing(member.trace) is not None:
        nouns["cpu_compute"] = "operators"
    contributions = [f"{duration(part, like=total)} {nouns[key]} ({percent(part / total)})" for key, part in worth]
    return ", ".join(contributions) or "nothing"


def _unprofiled(member: Member) -> str:
    measured = unprofiled_ns(member)
    return f" under the profiler ({duration(measured)} without it)" if measured is not None else ""


def _traced(wall: Difference) -> str:
    """`29.4 ms shorter (one trace each; −31.9 ms … −26.9 ms over 5 pairs of traces)`; where the one trace is unlike
    the pairs, the pairs come first."""
    if not wall.pairs or wall.delta_interval is None:
        return f"{_longer(wall.delta_ns)} (one trace each)"
    like = max(map(abs, wall.delta_interval))
    ends = " … ".join(duration(end, signed=True, like=like) for end in wall.delta_interval)
    interval = f"{ends} over {wall.pairs} pairs of traces"
    if wall.is_outside():
        return (
            f"{_longer(sum(wall.delta_interval) / 2)} ({interval}), but {_longer(wall.delta_ns)} in the longest traces"
        )
    return f"{_longer(wall.delta_ns)} (one trace each; {interval})"


def _longer(delta_ns: float) -> str:
    return f"{duration(abs(delta_ns))} {'longer' if delta_ns > 0 else 'shorter'}" if delta_ns else "as long"
