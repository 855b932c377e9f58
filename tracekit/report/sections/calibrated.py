"""Where does the time of a step go without the time that recording takes?"""

from collections.abc import Iterator

from tracekit.engine.buckets import WALL
from tracekit.engine.retiming import EventKind
from tracekit.profile.calibration import Calibration
from tracekit.report.blocks import Block, Sentences
from tracekit.report.breakdown import breakdown
from tracekit.report.model import Report
from tracekit.report.registry import of_run
from tracekit.report.section import Contents
from tracekit.report.sections.breakdowns import every_part
from tracekit.sanitize import sanitize
from tracekit.units import duration, percent, ratio

_TITLE = "The wall time of a step without the profiler's own time (estimate)"
_EVENTS: dict[EventKind, str] = {"operator": "an operator", "frame": "a Python frame", "call": "a runtime call"}


@of_run("calibrated", "Without the profiler's own time", rank=21, stage="lead")
def calibrated(report: Report) -> Contents | None:
    """The steps of variants that recording stretches, as they would be unprofiled."""
    stretched = {name: calibration for name, calibration in report.calibrated.items() if calibration.stretched}
    if not stretched:
        return None
    blocks: list[Block] = [Sentences(tuple(_sentences(report, stretched)), "quiet")]
    means = {name: calibration.wall for name, calibration in report.calibrated.items()}
    differences = {entry.variant: report.calibrated_difference(entry) for entry in report.comparisons}
    unanswered = {name: calibration.why_not for name, calibration in report.calibrations.items() if calibration.why_not}
    numbers = breakdown(
        "calibrated",
        _TITLE,
        every_part("wall"),
        means=means,
        baselines=report.baselines,
        differences=differences,
        unanswered=unanswered,
    )
    blocks += [numbers] if numbers is not None else []
    return Contents(tuple(blocks))


def _sentences(report: Report, stretched: dict[str, Calibration]) -> Iterator[str]:
    for name, calibration in stretched.items():
        costs = ", ".join(f"{duration(ns)} for {_EVENTS[kind]}" for kind, ns in calibration.overhead.items() if ns >= 1)
        mean = report.member(name).means["wall"]
        assert mean is not None
        recording = duration(mean.step_ns - sum(calibration.wall[key] for key in WALL))
        yield (
            f"{sanitize(name)}: traced steps take {ratio(1 + calibration.stretch)} as long as unprofiled ones. Of "
            f"them, {recording} a step is recording ({costs}). The costs of findings leave this out. "
            f"From the other variants alone, the step would come out {percent(abs(calibration.error))} "
            f"{'too long' if calibration.error > 0 else 'too short'}."
        )
