"""The rows of a trace as Kineto wrote them, and what must be true of them in every trace of a GPU."""

import gzip
import json
import re
from collections import Counter, defaultdict
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.gpu.claims import Claims

Row = dict[str, Any]
_LAUNCH = re.compile(r"LaunchKernel|GraphLaunch|MemcpyAsync|MemsetAsync")


class Rows:
    """The rows by category; times are in µs."""

    def __init__(self, path: Path) -> None:
        with gzip.open(path) as file:
            self.trace = json.load(file)
        self.by: dict[str, list[Row]] = defaultdict(list)
        for event in self.trace["traceEvents"]:
            if event.get("ph") == "X":
                self.by[event.get("cat", "")].append(event)

    @property
    def steps(self) -> list[Row]:
        """The profiler's steps."""
        return [
            row for row in self.by["user_annotation"] + self.by["cpu_op"] if row["name"].startswith("ProfilerStep#")
        ]

    @property
    def calls(self) -> list[Row]:
        """The calls of the runtime and of the driver."""
        return self.by["cuda_runtime"] + self.by["cuda_driver"]

    @property
    def activities(self) -> list[Row]:
        """The activities of the GPU."""
        return self.by["kernel"] + self.by["gpu_memcpy"] + self.by["gpu_memset"]

    def captures(self, at: float) -> bool:
        """Whether a stream is captured into a graph then: what is launched runs only when the graph does."""
        return sum(change for when, change in self._captures if when <= at) > 0

    @cached_property
    def _captures(self) -> list[tuple[float, int]]:
        changes = {"cudaStreamBeginCapture": 1, "cudaStreamEndCapture": -1}
        return [
            (row["ts"], change)
            for row in self.by["cuda_runtime"]
            for name, change in changes.items()
            if row["name"].startswith(name)
        ]

    def window(self) -> tuple[float, float]:
        """From the first step's start to the last one's end."""
        return min(row["ts"] for row in self.steps), max(row["ts"] + row["dur"] for row in self.steps)


def check_rows(claims: Claims, name: str, rows: Rows) -> None:
    """Claim that no activity is lost, begins before its launch, or has none."""
    low, high = rows.window()
    calls = {row["args"]["correlation"]: row for row in rows.calls if "correlation" in row.get("args", {})}
    there = {row["args"]["correlation"] for row in rows.activities}
    launches = [
        row
        for row in calls.values()
        if _LAUNCH.search(row["name"]) and low <= row["ts"] < high and not rows.captures(row["ts"])
    ]
    lost = [row for row in launches if row["args"]["correlation"] not in there]
    linked = [
        (row, calls[row["args"]["correlation"]]) for row in rows.activities if row["args"]["correlation"] in calls
    ]
    early = [row["ts"] - call["ts"] for row, call in linked if row["ts"] + 1 < call["ts"]]
    first = sorted((round(row["ts"] - low), row["name"]) for row in lost)[:2]
    claims.that(not lost, f"{name}: every launch has activities", launches=len(launches), lost=len(lost), first=first)
    claims.that(not early, f"{name}: nothing runs before its launch", early=len(early), worst_us=min(early, default=0))
    orphans = len(rows.activities) - len(linked)
    claims.that(orphans <= 1, f"{name}: every activity has its launch", orphans=orphans)


def counted(rows: list[Row]) -> dict[str, int]:
    """The number of rows by name."""
    return dict(Counter(row["name"] for row in rows))
