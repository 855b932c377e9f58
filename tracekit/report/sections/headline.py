"""The headline: how long a step takes, how that compares with the baseline, what makes the difference, and what these
figures are based on. And step by step: do all take the same time, or do some stand out?
"""

import re
from collections.abc import Callable

from tracekit.base.names import HEAD, cut_off, sanitize, short
from tracekit.base.units import count, duration, many, percent, ratio
from tracekit.engine import Attribution
from tracekit.engine.buckets import BUCKETS
from tracekit.findings.verdict import of_the_gpu
from tracekit.profile import Member, Profile, Untraced
from tracekit.profile.compare import Comparison, Difference
from tracekit.profile.rare_work import rare_work
from tracekit.profile.recording_words import has_steps, of_the_recording
from tracekit.profile.run_facts import break_even_doubt, break_even_steps, contrast_of, differs
from tracekit.profile.start_up import cold_steps_sentence
from tracekit.profile.subject import device_name
from tracekit.ranks.matching import missing
from tracekit.report.blocks import Headline, Line, Pace, Sentences, Series
from tracekit.report.comparability import Contradiction, contradiction, unlike
from tracekit.report.model import Report
from tracekit.report.section import Contents, of_run
from tracekit.run import Ledger
from tracekit.run.contrast import compared, compiling_cost
from tracekit.statistics.typical_step import typical_step
from tracekit.trace.facts.coverage import device_side_missing

_MAX_VARIANTS = 8  # variants: bars of more are no first glance
_SAME_RATIO = 0.005  # of a ratio
_ABOUT_IT = re.compile(r"\w+ it\b")  # advice that only the finding's headline makes clear: "Move it out of the step"
_LONGEST_HEADLINE = 160  # letters
_ONLY_LESS_WORK = "it is GPU-bound; only fewer, smaller or less precise operations make it faster."
Time = Callable[[Member], float | None]
_MAX_CONTRIBUTIONS = 4  # contributions a sentence can carry
_WORTH = 0.05  # of all that changed
OPERATORS = "operators"  # in place of what computes on the CPU, where a device was not recorded
MIN_UNKNOWN_SHARE = 0.01  # of what was recorded
_LATE = 0.1  # of a step: a rank that delays the others by less is not told before all else, unless nothing costs more
APART = 0.1  # of the median: a mean that is so far from it describes no step
_CONTRADICTIONS: dict[Contradiction, str] = {
    "": "",
    "opposite": " The traces and the unprofiled step times disagree on which is faster: trust the latter.",
    "unsure": "",  # both sentences say what they rest on
    "smaller": " Without the profiler, the difference is smaller: trust that.",
    "larger": " Without the profiler, the difference is larger: trust that.",
}


def at_a_glance(report: Report, lines: tuple[str, ...]) -> Headline:
    """The sentences that lead the report, with the figures that they are about, as far as those are known."""
    step_ns_of, timed = _timed(report)
    if not timed or len(report.members) > _MAX_VARIANTS:
        return Headline(lines, "lead")
    names = dict(zip((member.name for member in timed), short([member.name for member in timed], HEAD), strict=True))
    paces = []
    for member in timed:
        base, against = report.base_of(member), ""
        step_ns, base_step_ns = step_ns_of(member) or 0.0, step_ns_of(base)
        if member is base and any(report.base_of(other) is member is not other for other in timed):
            against = "baseline"
        elif member is not base and base_step_ns:
            contrast = contrast_of(member, base) if step_ns_of is unprofiled_ns else None
            in_traces = f"{faster(step_ns, base_step_ns)}, {_doubt(report, member, step_ns_of)}"
            against = compared(contrast) if contrast is not None else in_traces
        paces.append(Pace(names[member.name], step_ns, against))
    change = _change(report, names, timed, step_ns_of)
    return Headline(lines, "lead", tuple(paces), change, *_next_action(report, names, timed, step_ns_of))


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
    if abs(factor - 1) < _SAME_RATIO:
        return "as fast"
    return f"{ratio(factor)} faster" if factor > 1 else f"{ratio(1 / factor)} slower"


def _timed(report: Report) -> tuple[Time, list[Member]]:
    """How to tell what a step takes, and the variants of which that is known. Unprofiled where each variant has such a
    time, and otherwise in the traces: never both."""
    step_ns_of: Time = unprofiled_ns if all(unprofiled_ns(member) for member in report.members) else profiled_ns
    return step_ns_of, [member for _, group in report.groups for member in group if step_ns_of(member)]


def _fastest(members: list[Member], step_ns_of: Time) -> Member:
    return min(members, key=lambda member: step_ns_of(member) or 0.0)


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
        return f"{duration(step_ns_of(timed[0]))} a step{_threads(timed[0])}" if len(timed) == 1 else ""
    best = _fastest(compared_members, step_ns_of)
    base = report.base_of(best)
    before, after = step_ns_of(base) or 0.0, step_ns_of(best) or 0.0
    durations = [duration(value, like=max(before, after)) for value in (before, after)]
    times = f"{durations[0].rpartition(' ')[0]} → {durations[1]} a step{_threads(best)}"
    contrast = contrast_of(best, base) if step_ns_of is unprofiled_ns else None
    if contrast is not None and contrast.says_nothing:  # the times themselves say as little
        return f"{names[best.name]} is {compared(contrast, names[base.name])}"
    if contrast is not None:  # of pairs of passes, as everywhere else
        before, after = 1.0, contrast.ratio
    doubt = _doubt(report, best, step_ns_of)
    certainty = f" ({doubt})" if doubt else ""
    differing = differs(best, base)  # without computing the same, a pace is worth nothing
    but = f", {'but' if after < before else 'and'} {differing}" if differing else ""
    return f"{times}: {names[best.name]} is {_faster_than(after, before)} {names[base.name]}{certainty}{but}"


def _threads(member: Member) -> str:
    """` with 1 thread (--threads)` where the capture was told so: the program itself may take another number."""
    requested = member.run.environment.get("threads_requested") if member.run is not None else None
    return f" with {many(requested, 'thread')} (--threads)" if isinstance(requested, int) else ""


def _next_action(report: Report, names: dict[str, str], timed: list[Member], step_ns_of: Time) -> tuple[str, str]:
    """What to do next, and in which variant: with the fastest one, which is to be kept; nothing if there is only one,
    whose first finding says it."""
    best = _fastest(timed, step_ns_of)
    if len(timed) == 1 or isinstance(best, Untraced):
        return "", ""
    # That the GPU's work sets the pace is no cause: it is less to go by than any finding of one.
    diagnosis = report.diagnoses[best.name]
    findings = sorted(diagnosis.findings, key=lambda finding: of_the_gpu(finding.id))
    gpu_bound = any(of_the_gpu(finding.id) for finding in findings) or of_the_gpu(diagnosis.verdict.id)
    otherwise = _ONLY_LESS_WORK if gpu_bound else "nothing worth changing was found."
    first = next((finding for finding in findings if finding.do), None)
    action = otherwise if first is None else first.do_first or first.do
    for attempt in report.attempts[best.name]:
        if action.startswith(attempt.sentence) and attempt.next_do:  # there is no other advice: mend what was tried
            return attempt.next_do, names.get(attempt.variant, attempt.variant)
    if first is not None and _ABOUT_IT.match(action):
        return f"{cut_off(first.headline, _LONGEST_HEADLINE)}. {action}", names[best.name]
    return action[0].lower() + action[1:], names[best.name]


def headline(report: Report) -> list[str]:
    """Which rank delays a job; one sentence about each variant and its baseline, or about a baseline that nothing is
    compared with; and what rare steps of the fastest of several do."""
    sentences = []
    for name, diagnosis in report.diagnoses.items():
        late = next((finding for finding in diagnosis.findings if finding.id == "late_rank"), None)
        if late is not None and (late.id == diagnosis.verdict.id or (late.share or 0.0) >= _LATE):
            job = f"{sanitize(name)}: " if len(report.members) > 1 else ""
            sentences.append(f"{job}{sanitize(late.title)}.")
    for base, group in report.groups:
        entries = [(member, entry) for member in group if (entry := report.comparison(member.name)) is not None]
        sentences += [
            _never_compiled(member) or _against(report, member, base, entry) + _cold(member, base) + _gave_up(member)
            for member, entry in entries
        ] or [_single_variant(report, base)]
    # What the longer steps of the fastest of several variants do: those of the others mostly do the same.
    step_ns_of, timed = _timed(report)
    best = _fastest(timed, step_ns_of) if len(timed) > 1 else None
    if isinstance(best, Profile) and (rare := rare_work(best)) is not None:
        sentences.append(f"In {sanitize(best.name)}, {rare.in_words}.")
    stepless = report.profiles == report.members and not any(map(has_steps, report.profiles))
    return [*map(of_the_recording, sentences)] if stepless else sentences


def _single_variant(report: Report, member: Member) -> str:
    name, wall, host = sanitize(member.name), member.means["wall"], member.means["host"]
    if isinstance(member, Untraced):
        pace, why = duration(unprofiled_ns(member)), sanitize(f"{member.outcome}: {member.reason}")
        return f"{name} takes {pace} a step unprofiled. Without a trace, it is unknown where its time goes ({why})."
    if wall is None:
        if host is None:
            return f"{name}: neither wall nor host time is known."
        takes = f"the host takes {duration(host.step_ns)} a step: {largest_parts(host.parts, member)}"
        return f"{name}: where the wall time went is unknown; {takes}."
    # Where the median of the steps that the mean covers is another, no step may be like the mean.
    walls = member.views["wall"].step_ns[member.counted]
    typical = typical_step(walls.tolist(), member.pattern)
    apart = abs(float(walls.mean()) / typical.step_ns - 1) > APART
    median = f" on average (median {duration(typical.step_ns)})" if typical.alike and apart else ""
    measured = unprofiled_ns(member)
    unprofiled = f" under the profiler ({duration(measured)} without it)" if measured is not None else ""
    parts, unknown_ns = member.parts, member.unknown_ns
    if unknown_ns > MIN_UNKNOWN_SHARE * sum(parts.values()):
        parts = {**member.known_parts, "unknown": unknown_ns}
    # Where a rank is late, what is lost to it is told apart from communication.
    rank, matched = member.captures[0].rank, report.collectives.get(member.name)
    if matched is not None and not matched.unmatched.get(rank, 1) and report.straggler(member.name) is not None:
        communication_ns = parts.get("gpu_comm", 0.0)
        waits_ns = min(matched.lost_by_ns(rank) / max(len(matched.steps), 1), communication_ns)
        parts = {**parts, "gpu_comm": communication_ns - waits_ns, "waiting for late ranks": waits_ns}
    rare = rare_work(member)
    rarely = f" {rare.in_words}." if rare is not None else ""
    pace = f"{duration(wall.step_ns)} a step{median}{unprofiled}"
    return f"{name} takes {pace}: {largest_parts(parts, member)}.{rarely}{_left_out(member)}"


def _against(report: Report, member: Member, base: Member, entry: Comparison) -> str:
    name, base_name, wall = sanitize(member.name), sanitize(base.name), entry.wall
    mean, base_mean = member.means["wall"], base.means["wall"]
    contrast = contrast_of(member, base)
    if contrast is not None:
        takes = f"{name} takes {duration(unprofiled_ns(member))} a step unprofiled, "
        elsewhere = ", measured in another capture" if contrast.covers == "passes" else ""
        verdict = compared(contrast, base_name)
        text = f"{f'{name} is ' if contrast.says_nothing else takes}{verdict}{elsewhere}.{unlike(member, base)}"
        if wall is None:
            return f"{text} Where the difference comes from is unknown."
        if (change := report.calibrated_difference(entry)) is not None:
            return (
                f"{text} Without the profiler's own time (an estimate), a step changes by "
                f"{duration(change.delta_ns, signed=True)} compared with {base_name}: {_changes(change, wall)}."
            )
        caveat = _CONTRADICTIONS[contradiction(report, entry)]
        return f"{text} Profiled steps are {_traced(wall)}: {_changes(wall, wall)}.{caveat}"
    if wall is None or mean is None or base_mean is None:
        return f"{name} and {base_name}: the wall time of a step cannot be compared."
    noise = ", within noise" if wall.delta_interval is not None and wall.is_noise() else ""
    takes = duration(mean.step_ns, like=max(mean.step_ns, base_mean.step_ns))
    pace = f"{_faster_than(mean.step_ns, base_mean.step_ns)} {base_name}{noise or ', from one trace each'}"
    text = f"{name} takes {takes} a step, {pace}: {_changes(wall, wall)}.{unlike(member, base)}"
    return text + _left_out(member)


def _left_out(member: Member) -> str:
    """What the mean leaves out: the recording's own end, the recorded steps that compile, and first steps in which
    something starts up."""
    if isinstance(member, Untraced):
        return ""
    view, text = member.views["wall"], ""
    compiling = view.known & member.attribution.compiles & ~member.counted
    if cost := int(view.totals[compiling, view.keys.index("compile")].sum()):
        steps = f"{count(int(compiling.sum()))} of its {count(int(view.known.sum()))} steps"
        text = f" Compiling takes another {duration(cost)}, in {steps}."
    is_whole = view.known & member.trace.unknown.whole(len(member.trace.steps))
    starts, lasting = view.starts_ns[is_whole], view.step_ns[is_whole]
    known_ns, unseen_ns = int(lasting.sum()), int(member.unseen.within(starts, starts + lasting).sum())
    if unseen_ns and unseen_ns >= MIN_UNKNOWN_SHARE * known_ns:
        text += (
            f" For {duration(unseen_ns)} of the {duration(known_ns)} recorded, it is unknown what the GPU did: the "
            "recording lacks work, began later or ended earlier."
        )
    done_ns, end_ns = member.trace.steps.own_end
    if end_ns - done_ns >= MIN_UNKNOWN_SHARE * max(known_ns, 1):
        text += f" The profiler's own wait at the end, {duration(end_ns - done_ns)}, is left out."
    if member.cold_steps:
        text += f" Left out of the mean: {sanitize(cold_steps_sentence(member))}."
    return text


def _never_compiled(member: Member) -> str:
    """A sentence if a variant should have been compiled but ran eagerly: its pace says nothing about the compiler."""
    why = member.variant.effective.ran_eagerly if member.variant else None
    return f"{sanitize(member.name)} ran eagerly: {sanitize(why)}." if why else ""


def _gave_up(member: Member) -> str:
    names = given_up(member.variant.ledger) if member.variant else []
    if not names:
        return ""
    gave_up = ", ".join(names[:_MAX_CONTRIBUTIONS])
    return f" The compiler gave up on {gave_up} at the recompile limit: from then on, that code ran eagerly."


def given_up(ledger: Ledger) -> list[str]:
    """The functions that reached the recompile limit, each once."""
    return [*dict.fromkeys(sanitize(limit.name or "a frame") for limit in ledger.limits)]


def _cold(member: Member, base: Member) -> str:
    cost, steps = compiling_cost(member.variant), break_even_steps(member, base)
    if cost and (doubt := break_even_doubt(member, base)):
        return f" Compiling cost {cost}; whether it ever pays off is unknown: {doubt}."
    if not cost or steps is None or member.variant is None or not member.variant.requested.compile:
        return ""
    return f" {pays_off(cost, steps)}"


def pays_off(cost: str, steps: float) -> str:
    """A sentence that says after how many steps compiling has paid off."""
    if steps == float("inf"):
        return f"Compiling cost {cost}, which never pays off."
    if not round(steps):  # the baseline was compiled as well, and its start was no shorter
        return f"Compiling cost {cost}, with a start no slower than the baseline's: it pays off from the first step on."
    return f"Compiling cost {cost}: it breaks even after {count(round(steps))} steps."


def _faster_than(step_ns: float, base_step_ns: float) -> str:
    if not step_ns or not base_step_ns:
        return "not comparable with"
    pace = faster(step_ns, base_step_ns)
    return f"{pace} {'as' if pace == 'as fast' else 'than'}"


def _changes(change: Difference, wall: Difference) -> str:
    """The largest parts of a change. Where pairs of traces were compared, those within noise in the difference of the
    wall time are no changes."""
    changed = sum(abs(part) for part in change.parts.values())
    largest = sorted(change.parts.items(), key=lambda item: -abs(item[1]))
    worth = [(key, part) for key, part in largest if part and abs(part) >= _WORTH * changed][:_MAX_CONTRIBUTIONS]
    within_noise = {key for key in change.parts if wall.pairs and wall.is_noise(key)}
    sure = [(key, part) for key, part in worth if key not in within_noise]
    if worth and not sure:
        return "no large part of it is beyond noise"
    others = {key for key, part in largest if part} - dict(sure).keys()
    rest = ", the rest within noise" if others and others <= within_noise else ""
    like = max(abs(change.delta_ns), *(abs(part) for part in change.parts.values()))
    contributions = [f"{duration(part, signed=True, like=like)} {BUCKETS[key].noun}" for key, part in sure]
    return (", ".join(contributions) or "nothing changed") + rest


def largest_parts(parts: dict[str, float], member: Profile) -> str:
    """The largest parts of a step. Operators that submit work to a device that was not recorded do not compute it."""
    total = sum(parts.values())
    largest = sorted(parts.items(), key=lambda item: -item[1])
    worth = [(key, part) for key, part in largest if part and part >= _WORTH * total][:_MAX_CONTRIBUTIONS]
    nouns = {key: BUCKETS[key].noun if key in BUCKETS else key for key, _ in worth}
    if "cpu_compute" in nouns and device_side_missing(member.trace) is not None:
        nouns["cpu_compute"] = OPERATORS
    contributions = [f"{duration(part, like=total)} {nouns[key]} ({percent(part / total)})" for key, part in worth]
    return ", ".join(contributions) or "nothing"


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


@of_run("headline", "Summary", rank=0, stage="lead")
def summary(report: Report) -> Contents:
    """The headline, and one line about what it is based on."""
    return Contents((at_a_glance(report, tuple(headline(report))), Sentences((basis(report),), "quiet")))


def basis(report: Report) -> str:
    """What ran on which device, and over how many steps the means are."""
    devices = dict.fromkeys(filter(None, map(device_name, report.members)))
    recipes = dict.fromkeys(
        f"{run.recipe}, {run.data}" if run.data else run.recipe for run in report.subject.runs.values()
    )
    means: dict[str, list[str]] = {}  # `mean of 14 steps`, and the variants for which it holds
    for profile in report.profiles:
        recorded_ranks = {capture.rank for capture in profile.captures}
        columns = report.ranks.get(profile.name, [])
        ranks = max(len(columns), len(recorded_ranks))
        means.setdefault(_mean_of(profile, ranks, len(missing(columns))), []).append(profile.name)
    steps = [text if len(means) == 1 else f"{', '.join(names)}: {text}" for text, names in means.items()]
    clauses = ["; ".join(recipes), ", ".join(devices), "; ".join(steps) or "no trace"]
    return " · ".join(filter(None, clauses))


def _mean_of(profile: Profile, ranks: int, missing_ranks: int) -> str:
    """What the mean is over; a variant whose trace cannot answer has none."""
    total = len(profile.trace.steps)
    if not total:
        return "no steps"
    counted = int(profile.counted.sum())
    timed_twice = profile.variant is not None and profile.variant.measured is not None  # without the profiler, too
    kind = "inferred " if profile.trace.steps.inferred else "profiled " if timed_twice else ""
    steps = f"{kind}step{'' if total == 1 else 's'}"
    if not any(steps.any() for steps in profile.answered.values()):
        return f"{total} {steps}, none of which could be timed"
    total_text = "" if counted == total else f" of {total}"
    compiling = ", without those that compile" if profile.attribution.compiles[~profile.counted].any() else ""
    text = (
        f"mean of {counted}{total_text} {steps}{compiling}"
        if total > 1
        else "one step"
        if has_steps(profile)
        else "one recording"
    )
    if ranks == 1:
        return text
    but = f"; {missing_ranks} {'is' if missing_ranks == 1 else 'are'} missing" if missing_ranks else ""
    return f"{text} of rank {profile.captures[0].rank} (of {ranks + missing_ranks} ranks{but})"


@of_run("step_series", "Step by step", rank=30, stage="lead")
def series(report: Report) -> Contents | None:
    """The steps of each variant one by one, after its cold start; wall time, where any variant can answer it."""
    if not any(map(has_steps, report.profiles)):
        return None
    view = "wall" if any(profile.views["wall"].known.any() for profile in report.profiles) else "host"
    return Contents((Series(view, tuple(step_lines(report, view))),))


def step_lines(report: Report, view: str) -> list[Line]:
    """A line for each variant, and one for its cold start, where that was captured."""
    lines = []
    for profile in report.profiles:
        if profile.cold is not None:
            lines.append(_line(f"{profile.name}, cold", profile.cold, view))
        lines.append(_line(profile.name, profile.attribution, view))
    return lines


def _line(name: str, attribution: Attribution, view: str) -> Line:
    step_view = attribution.views[view]
    is_known = (step_view.known & attribution.trace.unknown.whole(len(attribution.trace.steps))).tolist()
    return Line(
        name=name,
        steps=tuple(attribution.trace.steps.number),
        values=tuple(value if sure else None for value, sure in zip(step_view.step_ns.tolist(), is_known, strict=True)),
        marks=tuple(
            "compiles" if compiles else "" if sure else "unknown"
            for compiles, sure in zip(attribution.compiles.tolist(), is_known, strict=True)
        ),
    )
