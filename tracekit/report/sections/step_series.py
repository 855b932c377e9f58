"""Do the steps take the same time, or do some stand out?"""

from tracekit.engine import Attribution
from tracekit.profile.recording_words import has_steps
from tracekit.report.blocks import Line, Mark, Series
from tracekit.report.model import Report
from tracekit.report.registry import of_run
from tracekit.report.section import Contents


@of_run("step_series", "Step by step", rank=30, stage="lead")
def series(report: Report) -> Contents | None:
    """The steps of each variant one by one, after its cold start; wall time, where any variant can answer it."""
    if not any(map(has_steps, report.profiles)):
        return None
    view = "wall" if any(profile.views["wall"].known.any() for profile in report.profiles) else "host"
    return Contents((Series(view, tuple(lines(report, view))),))


def lines(report: Report, view: str) -> list[Line]:
    """A line for each variant, and one for its cold start, where that was captured."""
    each_line = []
    for profile in report.profiles:
        if profile.cold is not None:
            each_line.append(_line(f"{profile.name}, cold", profile.cold, view))
        each_line.append(_line(profile.name, profile.attribution, view))
    return each_line


def _line(name: str, attribution: Attribution, view: str) -> Line:
    step_view = attribution.views[view]
    is_known = step_view.known.tolist()
    return Line(
        name=name,
        steps=tuple(attribution.trace.steps.number),
        values=tuple(value if sure else None for value, sure in zip(step_view.step_ns.tolist(), is_known, strict=True)),
        marks=tuple(
            _mark(compiles, sure) for compiles, sure in zip(attribution.compiles.tolist(), is_known, strict=True)
        ),
    )


def _mark(compiles: bool, is_known: bool) -> Mark:
    return "compiles" if compiles else "" if is_known else "unknown"
