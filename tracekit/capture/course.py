"""The time of a capture: while it runs, how long it has taken so far and how long what is left will take; at its end,
where the time went, pass by pass, which is what `--explain-time` prints.

A pass of one variant takes about as long as the same pass of another, but for compiling; so the first pass shows how
long the others will take, and how long compiling takes is known once a variant has been measured.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence

from tracekit.base.units import duration
from tracekit.capture.job import Stage
from tracekit.capture.options import Options, PlannedVariant
from tracekit.run import Activity, Run, StageTime

# As parts of how long the measured pass took: of what is no compiling, and of compiling, of which a part is in caches.
_SHARES: dict[Stage, tuple[float, float]] = {"measure": (1.0, 1.0), "profile": (0.9, 0.8), "check": (0.9, 0.25)}
_DOINGS = {
    "inspect": "preparing",
    "measure": "measuring",
    "profile": "taking traces",
    "check": "checking its losses",
    "train": "training",
}
_WORDS: dict[Activity, str] = {
    "start": "starting",
    "import": "importing",
    "set up": "setting up",
    "warm up": "warming up",
    "compile": "compiling",
    "wait": "waiting",
    "steps": "timed steps",
    "trace": "traces",
    "losses": "losses",
    "end": "ending",
}
_TOLD_S = 0.05


class Course:
    """The passes that are still to come, and how long the first ones took."""

    def __init__(self, variants: Sequence[PlannedVariant], stages: Sequence[Stage], options: Options) -> None:
        self._began = time.monotonic()
        self._coming = [(variant, stage) for variant in variants for stage in stages]
        self._variants, self._options = variants, options
        self._plain_s: float | None = None  # the first measured pass, without compiling
        self._compiling_s: dict[str, float] = {}  # of the variants that were measured

    def begins(self, name: str, stage: Stage) -> str:
        """` (12 s so far, about 95 s left)`, as a pass begins; the passes before it in the order have ended."""
        while self._coming and (self._coming[0][0].name, self._coming[0][1]) != (name, stage):
            self._coming.pop(0)
        gone = time.monotonic() - self._began
        if self._plain_s is None:
            return f" ({duration(round(gone * 1e9))} so far)" if gone >= 1 else ""
        first_s = self._plain_s * len(self._variants) + sum(self._compiling_s.values())
        seconds_left, unknown = self._options.seconds_for_rounds(len(self._variants), first_s), False
        for variant, coming in self._coming:
            plain, compiling = _SHARES[coming]
            compiling_s = self._compiling_s.get(variant.name)
            seconds_left += plain * self._plain_s + compiling * (compiling_s or 0.0)
            unknown = unknown or (variant.requested.compile and compiling_s is None)
        clause = ", and compiling" if unknown else ""
        return f" ({duration(round(gone * 1e9))} so far, about {duration(round(seconds_left * 1e9))} left{clause})"

    def measured(self, name: str, seconds: float, compiling_s: float) -> None:
        """Note how long the measured pass of that variant took, and how much of it was compiling."""
        self._compiling_s[name] = compiling_s
        self._plain_s = max(self._plain_s or 0.0, seconds - compiling_s)


def explained_time(run: Run) -> Iterator[str]:
    """A line for each pass, and one for all rounds of turns, each with what its processes did."""
    rows = [
        (_DOINGS.get(spent.stage, spent.stage), spent.seconds, _in_words(spent))
        for spent in run.spent
        if spent.stage != "live"
    ]
    in_rounds: Counter[Activity] = Counter()
    for variant in run.variants:
        for spent in variant.spent:
            if spent.round:
                in_rounds.update(spent.activities)
            else:
                label = f"{variant.name}: {_DOINGS.get(spent.stage, spent.stage)}"
                rows.append((label, spent.seconds, _in_words(spent)))
    rounds = next((spent for spent in run.spent if spent.stage == "live"), None)
    if rounds is not None:
        # Only one process at a time takes steps or a trace; the rest of the time, processes get ready.
        activities = {
            "making processes ready": max(rounds.seconds - (in_rounds["steps"] + in_rounds["trace"]), 0.0),
            "timed steps": in_rounds["steps"],
            "traces": in_rounds["trace"],
        }
        rows.append((f"{rounds.round} rounds of all variants", rounds.seconds, activities))
    yield f"Where the time of this capture went: {sum(seconds for _, seconds, _ in rows):.1f} s in passes"
    width = max((len(label) for label, _, _ in rows), default=0)
    for label, seconds, activities in rows:
        parts = ", ".join(f"{activity} {took:.1f}" for activity, took in activities.items() if took >= _TOLD_S)
        yield f"  {label.ljust(width)}  {seconds:6.1f} s{f'  {parts}' if parts else ''}"


def _in_words(spent: StageTime) -> dict[str, float]:
    return {words: spent.activities[activity] for activity, words in _WORDS.items() if activity in spent.activities}
