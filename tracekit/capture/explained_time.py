"""Where the time of a capture went, pass by pass: what `--explain-time` prints."""

from collections import Counter
from collections.abc import Iterator

from tracekit.run import Activity, Run, StageTime

_STAGES = {
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


def explained_time(run: Run) -> Iterator[str]:
    """A line for each pass, and one for all rounds of turns, each with what its processes did."""
    rows = [*_rows(run)]
    yield f"Where the time of this capture went: {sum(seconds for _, seconds, _ in rows):.1f} s in passes"
    width = max((len(label) for label, _, _ in rows), default=0)
    for label, seconds, activities in rows:
        parts = ", ".join(f"{activity} {took:.1f}" for activity, took in activities.items() if took >= _TOLD_S)
        yield f"  {label.ljust(width)}  {seconds:6.1f} s{f'  {parts}' if parts else ''}"


def _rows(run: Run) -> Iterator[tuple[str, float, dict[str, float]]]:
    for spent in run.spent:
        if spent.stage != "live":
            yield _STAGES.get(spent.stage, spent.stage), spent.seconds, _in_words(spent)
    again: list[StageTime] = []
    for variant in run.variants:
        for spent in variant.spent:
            if spent.round:
                again.append(spent)
            else:
                stage = _STAGES.get(spent.stage, spent.stage)
                yield f"{variant.name}: {stage}", spent.seconds, _in_words(spent)
    rounds = next((spent for spent in run.spent if spent.stage == "live"), None)
    if rounds is not None:
        yield f"{rounds.round} rounds of all variants", rounds.seconds, _of_rounds(rounds, again)


def _in_words(spent: StageTime) -> dict[str, float]:
    return {words: spent.activities[activity] for activity, words in _WORDS.items() if activity in spent.activities}


def _of_rounds(rounds: StageTime, passes: list[StageTime]) -> dict[str, float]:
    """Only one process at a time takes steps or a trace; the rest of the time, processes get ready."""
    totals: Counter[Activity] = Counter()
    for spent in passes:
        totals.update(spent.activities)
    measuring = totals["steps"] + totals["trace"]
    return {
        "making processes ready": max(rounds.seconds - measuring, 0.0),
        "timed steps": totals["steps"],
        "traces": totals["trace"],
    }
