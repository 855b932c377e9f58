"""How long does a step take, how does that compare with the baseline, and what are these figures based on?"""

from tracekit.profile import Profile
from tracekit.profile.device import device_name
from tracekit.profile.recording_words import has_steps
from tracekit.report.blocks import Sentences
from tracekit.report.headline import headline
from tracekit.report.model import Report
from tracekit.report.paces import at_a_glance
from tracekit.report.registry import of_run
from tracekit.report.section import Contents


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
    clauses = ["; ".join(recipes), ", ".join(devices), _steps(report)]
    return " · ".join(filter(None, clauses))


def _steps(report: Report) -> str:
    """`mean of 14 steps`, once where it holds for every variant; a variant whose trace cannot answer has no mean."""
    if not report.profiles:
        return "no trace"
    means: dict[str, list[str]] = {}
    for profile in report.profiles:
        ranks = max(
            len(report.subject.ranks.get(profile.name, ())), len({capture.rank for capture in profile.captures})
        )
        means.setdefault(_mean_of(profile, ranks), []).append(profile.name)
    if len(means) == 1:
        return next(iter(means))
    return "; ".join(f"{', '.join(names)}: {text}" for text, names in means.items())


def _mean_of(profile: Profile, ranks: int) -> str:
    total = len(profile.trace.steps)
    if not total:
        return "no steps"
    counted = int(profile.counted.sum())
    steps = f"{'inferred ' if profile.trace.steps.inferred else ''}step{'' if total == 1 else 's'}"
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
    return f"{text} of rank {profile.captures[0].rank} (of {ranks} ranks)" if ranks > 1 else text
