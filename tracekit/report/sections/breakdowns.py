"""Where does the time of a step go, bucket by bucket, what differs from the baseline, and how is that without the time
that recording takes?
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from tracekit.base.names import sanitize
from tracekit.base.units import duration, percent, ratio
from tracekit.engine.buckets import BUCKETS, HOST, WALL
from tracekit.engine.replay import EventKind
from tracekit.profile import Profile
from tracekit.profile.calibration import Calibration
from tracekit.profile.run_facts import contrast_of
from tracekit.report.blocks import Block, Sentences, Table
from tracekit.report.breakdown import Breakdown, Part, breakdown
from tracekit.report.comparability import contradiction
from tracekit.report.model import Report
from tracekit.report.section import Contents, of_run
from tracekit.report.sections.headline import APART, MIN_UNKNOWN_SHARE, OPERATORS, largest_parts
from tracekit.trace.facts.coverage import device_side_missing
from tracekit.trace.schema import column

TITLES = {"wall": "Where the wall time of a step goes", "host": "What the host does during a step"}
_MIN_SYNC_SHARE = 0.05  # of a step: as long waits in syncs are explained
_MAX_LOST_SHARE = 0.2  # of such waits: that is little to lose
_MAIN_SHARE = 0.5  # of such waits
_HOST_IS_WALL = "Without a GPU, the host's time is the wall time, so it is not shown again."
PACE = pa.schema(
    [
        column("variant", pa.string(), "the variant", title=""),
        column("steps", pa.int64(), "how many steps the means cover"),
        column("mean_ns", pa.float64(), "mean wall time of these", "ns"),
        column("median_ns", pa.float64(), "median wall time of these", "ns"),
        column("least_ns", pa.int64(), "the shortest", "ns", title="shortest"),
        column("most_ns", pa.int64(), "the longest", "ns", title="longest"),
    ]
)
_KEYS = {"wall": WALL, "host": HOST}
_TITLE = "The wall time of a step without the profiler's own time (estimate)"
_EVENTS: dict[EventKind, str] = {"operator": "an operator", "frame": "a Python frame", "call": "a runtime call"}


def every_part(view: str) -> list[Part]:
    """The buckets of a view, as parts of the whole."""
    buckets = [BUCKETS[key] for key in _KEYS[view]]
    return [Part(bucket.key, bucket.label, bucket.colour, bucket.meaning) for bucket in buckets]


def of_view(report: Report, view: str) -> Breakdown | None:
    """One view of every variant that can answer it; None where none can."""
    means = {profile.name: profile.means[view] for profile in report.profiles}
    return breakdown(
        name=view,
        title=TITLES[view],
        parts=_parts(report, view),
        means={name: mean.parts for name, mean in means.items() if mean is not None},
        baselines=report.baselines,
        differences={entry.variant: entry.views[view] for entry in report.comparisons},
        unanswered={p.name: p.why_unanswered(view) for p in report.profiles if means[p.name] is None},
        contradicted=dict(_contradicted(report)) if view == "wall" else {},
    )


def _parts(report: Report, view: str) -> list[Part]:
    """The buckets of a view, called what they are where no device was recorded: operators that submit work to one do
    not compute it."""
    if any(profile.trace.device == "gpu" or device_side_missing(profile.trace) is None for profile in report.profiles):
        return every_part(view)
    meaning = "operators run; what they submitted to the device was not recorded"
    return [
        replace(part, label=OPERATORS, meaning=meaning) if part.key == "cpu_compute" else part
        for part in every_part(view)
    ]


def _contradicted(report: Report) -> Iterator[tuple[str, str]]:
    """The variants whose traced difference the unprofiled passes contradict, and what these say instead."""
    for entry in report.comparisons:
        contrast = contrast_of(report.member(entry.variant), report.member(entry.baseline))
        if contrast is None or entry.wall is None:
            continue
        match contradiction(report, entry):
            case "opposite":
                yield entry.variant, "slower" if contrast.ratio > 1 else "faster"
            case "unsure":
                yield entry.variant, "untested" if contrast.interval is None else "noise"
            case "smaller" | "larger" as verdict:
                yield entry.variant, verdict


@of_run("wall", TITLES["wall"], rank=20, stage="lead")
def wall(report: Report) -> Contents | None:
    """Wall time."""
    numbers = of_view(report, "wall")
    if numbers is None:
        return None
    blocks: list[Block] = [numbers]
    rows: list[dict[str, Any]] = []
    quiet = []
    for profile in report.profiles:
        walls = profile.views["wall"].step_ns[profile.answered["wall"]]  # of the steps that the means cover
        if len(walls) > 1 and walls.all():
            times = {"mean_ns": float(walls.mean()), "median_ns": float(np.median(walls))}
            times |= {"least_ns": walls.min(), "most_ns": walls.max()}
            rows.append({"variant": profile.name, "steps": len(walls), **times})
        # Communication on a CPU, for which there is no bucket.
        waited = profile.parts.get("gpu_comm", 0.0) - (profile.mean.parts.get("gpu_comm", 0.0) if profile.mean else 0.0)
        if waited:
            text = f"{duration(waited)} a step, mostly of Python, is the host's waiting in collectives (inferred)."
            quiet.append(_of_several(report, profile) + text)
        if profile.unknown_ns > MIN_UNKNOWN_SHARE * sum(profile.parts.values()):
            quiet.append(_of_several(report, profile) + _as_the_host(profile))
    if rows:
        alike = all(abs(row["mean_ns"] / row["median_ns"] - 1) <= APART for row in rows)
        blocks.append(Table.of("pace", rows, PACE, detail=alike, exported=False))
    if _views_agree(report):
        quiet.append(_HOST_IS_WALL)
    if quiet:
        blocks.append(Sentences(tuple(quiet), "quiet"))
    return Contents(tuple(blocks))


def _as_the_host(profile: Profile) -> str:
    """How the table counts the time of which it is unknown what the GPU did."""
    unknown = {key: ns - profile.known_parts[key] for key, ns in profile.parts.items()}
    return (
        f"For {duration(profile.unknown_ns)} a step, it is unknown what the GPU did: the table has what the host did "
        f"then, {largest_parts(unknown, profile)}."
    )


def _of_several(report: Report, profile: Profile) -> str:
    return f"{sanitize(profile.name)}: " if len(report.profiles) > 1 else ""


@of_run("host", TITLES["host"], rank=25, stage="lead")
def host(report: Report) -> Contents | None:
    """Host time; where it equals the wall time, the section of the wall time says so. Where the host waits in syncs for
    long and the step loses little, why the two tables differ so much."""
    numbers = of_view(report, "host")
    if numbers is None or _views_agree(report):
        return None
    syncs = []
    for profile in report.profiles:
        wall, host = profile.means["wall"], profile.means["host"]
        if wall is None or host is None:
            continue
        lost_ns, waited_ns = wall.parts["sync_stall"], host.parts["sync"]
        if waited_ns >= _MIN_SYNC_SHARE * host.step_ns and lost_ns <= _MAX_LOST_SHARE * waited_ns:
            loss = f"A step loses only {duration(lost_ns)}" if lost_ns else "A step loses nothing"
            # While the host waits, the GPU works, lags behind its queue, or idles because of the wait.
            working_ns = waited_ns - lost_ns - wall.parts["gpu_gap"]
            meanwhile = ", mostly while the GPU works" if working_ns >= _MAIN_SHARE * waited_ns else ""
            syncs.append(
                f"{_of_several(report, profile)}{loss} ({BUCKETS['sync_stall'].label}), although the host waits in "
                f"syncs for {duration(waited_ns)} a step{meanwhile}."
            )
    return Contents((numbers, Sentences(tuple(syncs), "quiet")) if syncs else (numbers,))


def _views_agree(report: Report) -> bool:
    """Whether each variant's host view equals its wall view."""
    return all(
        profile.means["wall"] is not None
        and profile.means["host"] is not None
        and _holding(profile.means["wall"].parts) == _holding(profile.means["host"].parts)
        for profile in report.profiles
    )


def _holding(parts: dict[str, float]) -> dict[str, float]:
    return {key: value for key, value in parts.items() if value}


def _costs(calibration: Calibration) -> str:
    return ", ".join(f"{duration(ns)} for {_EVENTS[kind]}" for kind, ns in calibration.overhead.items() if ns >= 1)


def _otherwise(calibration: Calibration) -> str:
    """The other costs that explain the variants as well, with the bucket that they change most; empty without any."""
    other = calibration.other
    if other is None:
        return ""
    key = max(other.wall, key=lambda key: abs(other.wall[key] - calibration.wall[key]))
    return (
        f" Two variants cannot tell the kinds of events apart: {_costs(other)} would explain them as well, and "
        f"{BUCKETS[key].label} would then take {duration(other.wall[key])} of the step in place of "
        f"{duration(calibration.wall[key])}."
    )


@of_run("calibrated", "Without the profiler's own time", rank=21, stage="lead")
def calibrated(report: Report) -> Contents | None:
    """The steps of variants that recording stretches, as they would be unprofiled."""
    stretched = {name: calibration for name, calibration in report.calibrated.items() if calibration.stretched}
    if not stretched:
        return None
    numbers = breakdown(
        "calibrated",
        _TITLE,
        every_part("wall"),
        means={name: calibration.wall for name, calibration in report.calibrated.items()},
        baselines=report.baselines,
        differences={entry.variant: report.calibrated_difference(entry) for entry in report.comparisons},
        unanswered={name: estimate.why_not for name, estimate in report.calibrations.items() if estimate.why_not},
    )
    lines = []
    for name, calibration in stretched.items():
        mean = report.member(name).means["wall"]
        assert mean is not None
        recording = duration(mean.step_ns - sum(calibration.wall[key] for key in WALL))
        lines.append(
            f"{sanitize(name)}: traced steps take {ratio(1 + calibration.stretch)} as long as unprofiled ones. Of "
            f"them, {recording} a step is recording ({_costs(calibration)}). The costs of findings leave this out. "
            f"From the other variants alone, the step would come out {percent(abs(calibration.error))} "
            f"{'too long' if calibration.error > 0 else 'too short'}.{_otherwise(calibration)}"
        )
    sentences = Sentences(tuple(lines), "quiet")
    return Contents((sentences, numbers) if numbers is not None else (sentences,))
