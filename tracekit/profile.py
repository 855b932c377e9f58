"""One variant, read and attributed: what every analysis asks its question of."""

import os
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from pathlib import Path

import numpy as np

from tracekit import run as runs
from tracekit.engine import Attribution
from tracekit.engine.buckets import HOST, WALL
from tracekit.engine.cached import attributed
from tracekit.errors import NoTraceInRunError, TracekitError
from tracekit.intervals import Bools
from tracekit.trace import Trace
from tracekit.trace.reading.convert import Watch
from tracekit.trace.reading.inputs import STDIN, is_address, traces_in
from tracekit.units import duration


@dataclass(frozen=True)
class Profile:
    """A named variant: its steady trace, attributed, and what its run says of it (None for a bare trace)."""

    name: str
    cost: Attribution
    variant: runs.Variant | None = None
    cold: Attribution | None = None
    detail_path: Path | None = None

    @property
    def trace(self) -> Trace:
        """The trace that all figures come from."""
        return self.cost.trace

    @cached_property
    def answered(self) -> dict[str, Bools]:
        """Of each view the steps that its means are over: steady ones, or all where none is, that can be answered."""
        wanted = np.ones(len(self.cost.steady), bool) if self.none_steady else self.cost.steady
        return {"wall": wanted & self.cost.wall_known, "host": wanted & self.cost.host_known}

    @cached_property
    def counted(self) -> Bools:
        """The steps that figures per step are of: those of the wall view; of the host's, where that has none."""
        found = [steps for steps in self.answered.values() if steps.any()]
        return found[0] if found else np.ones(len(self.cost.steady), bool)

    @property
    def none_steady(self) -> bool:
        """Whether every step compiles, so that the means are over steps that do."""
        return len(self.cost.steady) > 0 and not self.cost.steady.any()

    def mean(self) -> dict[str, object]:
        """Means per step, ns; a view that cannot be answered is None."""
        cost, wall, host = self.cost, self.answered["wall"], self.answered["host"]
        return {
            "wall_ns": float(cost.wall_ns[wall].mean()) if wall.any() else None,
            "host_ns": float(cost.host_ns[host].mean()) if host.any() else None,
            "wall": _means(WALL, cost.wall[wall]) if wall.any() else None,
            "host": _means(HOST, cost.host[host]) if host.any() else None,
        }


def _means(keys: tuple[str, ...], rows: np.ndarray) -> dict[str, float]:
    return dict(zip(keys, (rows.sum(axis=0) / len(rows)).tolist(), strict=True))


@dataclass(frozen=True)
class Subject:
    """What was opened: one profile per variant, and the run they belong to, if they do."""

    profiles: list[Profile]
    run: runs.Run | None = None
    problems: tuple[str, ...] = ()  # variants that could not be read or were not captured, one sentence each


def open_subject(paths: list[Path], watch: Watch | None = None) -> Subject:
    """Open runs and traces side by side; every variant gets a name of its own. Raises TracekitError."""
    profiles: list[Profile] = []
    problems: list[str] = []
    opened: list[runs.Run] = []
    failure: TracekitError | None = None
    for path in _each(paths):
        if os.path.isfile(path) and runs.is_run(path):
            run = runs.read(path)
            opened.append(run)
            found, missing = _of_run(path, run, watch)
            profiles += found
            problems += missing
            continue
        try:
            profiles.append(Profile(_stem(path), attributed(Trace.load(path, watch=watch))))
        except TracekitError as error:
            if path in paths:  # named by the user; one that a folder brought along is told, and the others are read
                raise
            failure = error
            problems.append(f"{_stem(path)}: {error}")
    if not profiles and failure is not None:
        raise failure
    return Subject(_distinctly(profiles), opened[0] if len(opened) == 1 == len(paths) else None, tuple(problems))


def _each(paths: list[Path]) -> list[Path]:
    """What was given, with the traces of a folder in its place: each is reported apart."""
    found: list[Path] = []
    for path in paths:
        found += traces_in(path) if os.path.isdir(path) and not is_address(path) else [path]
    return found


def _of_run(path: Path, run: runs.Run, watch: Watch | None) -> tuple[list[Profile], list[str]]:
    profiles: list[Profile] = []
    problems: list[str] = []
    for variant in run.variants:
        steady = run.trace_path(path, variant, "steady")
        if variant.error:
            problems.append(f"{variant.name}: {variant.outcome}: {variant.error}")
        if steady is None:
            continue
        try:
            cold = run.trace_path(path, variant, "cold")
            profiles.append(
                Profile(
                    name=variant.name,
                    cost=attributed(Trace.load(steady, watch=watch)),
                    variant=variant,
                    cold=attributed(Trace.load(cold, watch=watch)) if cold else None,
                    detail_path=run.trace_path(path, variant, "detail"),
                )
            )
        except TracekitError as error:
            problems.append(f"{variant.name}: {error}")
    if not profiles:
        paces = [
            f"{each.name} takes {duration(each.measured.step_ns)} a step" for each in run.variants if each.measured
        ]
        raise NoTraceInRunError(path, problems[0] if problems else "no variant has one", paces)
    return profiles, problems


def _stem(path: Path) -> str:
    if str(path) == STDIN:
        return "stdin"
    name = path.name
    for ending in (".tmp", ".gz", ".zst", ".json", ".trace", ".pt"):
        name = name.removesuffix(ending)
    # A file's name may be no text: spelled out it fits into every table.
    return (name or path.name).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _distinctly(profiles: list[Profile]) -> list[Profile]:
    given = {profile.name for profile in profiles}
    named: dict[str, Profile] = {}
    for profile in profiles:
        others = (f"{profile.name} ({number})" for number in count(2))
        free = profile.name if profile.name not in named else next(n for n in others if n not in given | named.keys())
        named[free] = replace(profile, name=free)
    return list(named.values())
