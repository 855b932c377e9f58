"""Is every nanosecond of the time that a tool divides in one part, and in the right one?"""

from pathlib import Path
from typing import Any

from tests.compare.reference import Reference, read, total_ns, uncovered_ns, union

_NO_CAUSE = {"other", "unrecorded"}


def judged(files: list[Path], answers: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """For each way in which a tool was asked, its breakdowns of all ranks held against the files; every time is in ns.

    `recording`: the wall time of the steps. `outside`: how much of it the tool does not look at. `sum_off`: its parts
    together, minus the time that it looks at: what it counts twice or, if negative, loses. `busy_off`: the time in
    which, it says, the GPU works, minus that in which it does. `idle`: how long the GPU idles in that time.
    """
    references = [read(file) for file in files]
    return [
        _added([_judged(reference, dict(each[way])) for reference, each in zip(references, answers, strict=True)])
        for way in range(len(answers[0]))
    ]


def _judged(reference: Reference, said: dict[str, Any]) -> dict[str, Any]:
    windows = [(start, end) for start, end in said["windows"]]
    looked_at = total_ns(union(windows))
    busy = reference.busy_ns(windows)
    return {
        "settings": said["settings"],
        "recording": total_ns([reference.recording]),
        "looked_at": looked_at,
        "outside": uncovered_ns(reference.recording, windows),
        "sum_off": round(sum(said["parts"].values()) - looked_at),
        "busy_off": round(sum(said["parts"][name] for name in said["busy"]) - busy),
        "idle": looked_at - busy,
        "gpu": bool(reference.gpu),
        "causes": {name: round(took) for name, took in said["causes"].items() if round(took)},
    }


def _added(ranks: list[dict[str, Any]]) -> dict[str, Any]:
    total = dict(ranks[0])
    for rank in ranks[1:]:
        for name, value in rank.items():
            if isinstance(value, int) and not isinstance(value, bool):
                total[name] += value
        total["causes"] = {
            name: total["causes"].get(name, 0) + rank["causes"].get(name, 0)
            for name in total["causes"] | rank["causes"]
        }
    return total


def named(causes: dict[str, int]) -> int:
    """How much of the time that is blamed on something has a name, in ns."""
    return sum(took for name, took in causes.items() if name.lower() not in _NO_CAUSE)
