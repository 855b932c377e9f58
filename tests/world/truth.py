"""The truth about a trace that is damaged: what tracekit reports of it as it is and, for a world, what its simulation
says; and what may be claimed of it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from msgspec.structs import replace

from tests.world import causes as all_causes
from tests.world import damage
from tests.world.causes import HOST, Cause
from tests.world.damage import File
from tests.world.machine import Recording
from tests.world.worlds import RESOURCES, World
from tracekit.faces import Options
from tracekit.faces.shared.document import as_document
from tracekit.faces.text import draw as drawn_as_text
from tracekit.findings import diagnose
from tracekit.findings.verdict import VERDICTS, of_the_gpu
from tracekit.profile import open_subject
from tracekit.report import Report, report

FLOOR = 0.01  # of a step: what may be claimed of what does not exist
NEAR = 0.9  # of the cost of the first finding: as good as the first
_BUSY = ("gpu_compute", "gpu_comm", "gpu_copy")
GPU_BOUND, UNKNOWN = "gpu_bound", "idle_unexplained"
_HOST_BUCKETS = ("python", "dispatch", "guards", "kernel_launch", "alloc", "unrecorded")
_BUCKETS = {  # of which a finding about a real trace can claim no more than there is
    **dict.fromkeys(HOST, _HOST_BUCKETS),
    "sync_stall": ("sync_stall",),
    "dataloader_bound": ("dataload",),
    "exposed_comm": ("gpu_comm",),
    "allocator": ("alloc",),
}
UNNAMED_HOST = (
    *HOST,
    "host_freeze",
    "idle_unexplained",
    "backward_handover",
    "cpu_compute",
)  # host time of which nobody can say more than where it is
_FAMILIES = {each.ids for each in vars(all_causes).values() if isinstance(each, type) and issubclass(each, Cause)}
_WHAT_IF = {  # what a change spares at most, by what its name begins or ends with
    "batches were": "data",
    "the wait": "sync",
    "copies came": "copy",
    "the kernel": "host",
    "half of the launches": "host",
    "kernels took half": "gpu",
}


@dataclass(frozen=True)
class Told:
    """A report, and what is compared of it."""

    report: Report

    @cached_property
    def document(self) -> dict[str, Any]:
        return as_document(self.report)

    @cached_property
    def variants(self) -> list[dict[str, Any]]:
        return [each for each in self.document["variants"] if each["mean"] is not None]

    def findings(self, name: str) -> list[dict[str, Any]]:
        return [each for each in self.document["findings"] if each["variant"] == name]

    def mean(self, name: str) -> dict[str, float] | None:
        """What a step takes as people are told: without the profiler's own wait at the end, which by the contract is
        part of a recording that has no steps."""
        profile = next(each for each in self.report.profiles if each.name == name)
        wall, host = profile.means["wall"], profile.means["host"]
        if wall is None:
            return None
        return figures_of({"wall": wall.parts, "wall_ns": wall.step_ns, "host_ns": host.step_ns if host else None})

    def gains(self, name: str) -> dict[str, float]:
        """What each change that was replayed saves at best, as a share of the step."""
        found = {}
        for answer in self.document["answers"]:
            if answer["analysis"] == "what_if" and answer["variant"] == name:
                columns = [column["name"] for column in answer["columns"]]
                for values in answer["rows"]:
                    row = dict(zip(columns, values, strict=True))
                    found[_change(row["if"])] = row["gain"]
        return found

    @cached_property
    def lead(self) -> str:
        """The first sentences of the text face, which stand before the first empty line, on one line."""
        text = drawn_as_text(self.report, Options())
        return " ".join(text.partition("\n\n")[0].split())


@dataclass(frozen=True)
class Truth:
    """What may be claimed: by the report of the undamaged recording and, of a world, by what happened in it."""

    told: Told
    world: World | None = None
    span_ns: float = 0.0  # of the recording
    diagnoses: dict[tuple[int, ...], list[dict[str, Any]]] = field(default_factory=dict)  # by the steps they are of

    @cached_property
    def variant(self) -> dict[str, Any]:
        return self.told.variants[0]

    @cached_property
    def findings(self) -> list[dict[str, Any]]:
        return self.told.findings(self.variant["name"])

    @cached_property
    def causes(self) -> list[dict[str, Any]]:
        """The findings, with those that are too small to be told."""
        return [each.document() for each in self.told.report.diagnoses[self.variant["name"]].all_findings]

    def causes_over(self, numbers: Collection[int]) -> list[dict[str, Any]]:
        """The same of a real trace, as means over these steps only: other steps may be unlike them."""
        chosen = tuple(sorted(numbers))
        if self.world is not None or not chosen or chosen == tuple(sorted(self.variant["mean_over"])):
            return self.causes
        if chosen not in self.diagnoses:
            profile = self.told.report.profiles[0]
            is_chosen = np.isin(profile.trace.steps.number, chosen)
            # Of another name, since what is worked out of a profile is stored by that.
            part = replace(profile, name=f"{profile.name}, steps {chosen}")
            part.__dict__["answered"] = {name: mask & is_chosen for name, mask in profile.answered.items()}
            self.diagnoses[chosen] = [each.document() for each in diagnose(part).all_findings]
        return [*self.causes, *self.diagnoses[chosen]]

    @cached_property
    def savings(self) -> Mapping[Cause, float]:
        """Shares of a step."""
        if self.world is None:
            return {}
        return {cause: saved / self.world.step_ns for cause, saved in self.world.savings.items()}

    @cached_property
    def by_step(self) -> dict[int, dict[str, float]]:
        """What each numbered step took, as far as that is known."""
        return {each["step"]: figures_of(each) for each in steps_of(self.variant) if each["wall"] is not None}

    @cached_property
    def mean(self) -> dict[str, float] | None:
        """What the counted steps took."""
        mean = self.variant["mean"]
        return figures_of(mean) if mean["wall"] is not None else None

    @cached_property
    def whole(self) -> dict[str, float] | None:
        """What the whole recording took, start-up and what lies between and around its steps included."""
        known = [figures_of(each) for each in steps_of(self.variant) if each["wall"] is not None]
        if not known:
            return None
        took = {name: sum(row[name] for row in known) for name in known[0]}
        step = max(self.span_ns, took["step"])
        return {"step": step, "busy": took["busy"], "idle": step - took["busy"], "host": step}

    def of_steps(self, numbers: Collection[int]) -> dict[str, float] | None:
        """What these steps took in the mean; all counted ones, if they are not known one by one."""
        rows = [self.by_step[number] for number in numbers if number in self.by_step]
        if not rows or len(rows) < len({*numbers}):
            return self.mean
        return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]}

    def allowed(self, name: str, numbers: Collection[int]) -> tuple[float, float]:
        """What a finding of this kind may claim: a share of the step, and a cost."""
        causes = self.causes_over(numbers)
        same = [each for each in causes if each["id"] == name]
        alike = [each for each in causes if self.is_alike(each["id"], name)]
        shares = [each["share"] or 0.0 for each in alike] + [sum(each["share"] or 0.0 for each in same)]
        costs = [each["cost_ns"] or 0.0 for each in alike] + [sum(each["cost_ns"] or 0.0 for each in same)]
        saved = [self.saving(numbers, cause) for cause in self.savings if name in cause.ids]
        # What shares its time with a costlier finding is told by itself where that one is not.
        costlier = [each for each in self.findings if name in each["overlaps"]]
        shares += [each["share"] or 0.0 for each in costlier]
        costs += [each["cost_ns"] or 0.0 for each in costlier]
        if name == UNKNOWN and self.mean is not None:  # that nobody knows why it idles is no claim
            saved.append(self.mean["idle"] / max(self.mean["step"], 1))
        if name == "cold_start" and self.by_step:  # without its number, the first recorded step looks like the first
            first, *others = (each["step"] for _, each in sorted(self.by_step.items()))
            saved.append(max(first - median(others or [first]), 0.0) / sum((first, *others)))
        if name == "sync_stall":  # several waits that cannot be told apart any more
            saved += [gain for change, gain in self.told.gains(self.variant["name"]).items() if "the wait" in change]
        true = self.of_steps(numbers)
        if name.startswith((GPU_BOUND, "cuda_graph_ok")) and true is not None:
            saved.append(true["busy"] / max(true["step"], 1))
        if (self.world is None or name == "exposed_comm") and self.mean is not None:
            wall = self.variant["mean"]["wall"]
            saved.append(sum(wall[bucket] for bucket in _BUCKETS.get(name, ())) / max(self.mean["step"], 1))
        step_ns = true["step"] if true is not None else self.span_ns
        return max(shares + saved), max(costs + [share * step_ns for share in saved])

    def saving(self, numbers: Collection[int], removed: Cause | None = None, free: tuple[str, ...] = ()) -> float:
        """What a step takes less without a cause, or if resources are free, as a share: of all steps, or of these."""
        assert self.world is not None
        with_it, without = self.world.recording, self.world.run(removed, free)
        told = {*numbers} & {*range(len(with_it.begun))}
        shares = []
        for counted in (told, range(len(with_it.begun))):
            took, takes = (sum(_lasted(made, number) for number in counted) for made in (with_it, without))
            shares.append((took - takes) / max(took, 1))
        return max(*shares, self.savings[removed] if removed is not None else 0.0)

    def spared(self, change: str, numbers: Collection[int]) -> float:
        """What a change that is replayed saves at most, as a share of the step."""
        resource = next((name for part, name in _WHAT_IF.items() if part in change), "host")
        before = self.told.gains(self.variant["name"])
        if self.world is not None:
            return max(before.get(change, 0.0), self.saving(numbers, free=RESOURCES[resource]))
        true = self.of_steps(numbers)
        if true is None or (change in before and true == self.mean):
            return before.get(change, 0.0)
        spared = true["busy"] / 2 if resource == "gpu" else true["idle"]
        return max(before.get(change, 0.0), spared / max(true["step"], 1))

    def is_alike(self, one: str, other: str) -> bool:
        """Whether two kinds of finding may be about one cause: one of the world's or, of a real trace, any."""
        if one == other or (one.startswith(GPU_BOUND) and other.startswith(GPU_BOUND)):
            return True
        families = {cause.ids for cause in self.world.causes} if self.world is not None else _FAMILIES
        return any(one in ids and other in ids for ids in (*families, HOST))

    def first(self, near: float = NEAR) -> set[str]:
        """The kinds of finding that may be the first: those that cost so much of what the costliest does."""
        findings = self.findings
        best = max((each["cost_ns"] or 0.0 for each in findings), default=0.0)
        allowed = {each["id"] for each in findings if each is findings[0] or (each["cost_ns"] or 0.0) >= near * best}
        if findings and findings[0]["id"].startswith(GPU_BOUND):
            allowed |= {each["id"] for each in findings[1:2]}
        most = max(self.savings.values(), default=0.0)
        for cause, saved in self.savings.items():
            if saved >= max(NEAR * most, FLOOR) or any(name in cause.ids for name in allowed):
                allowed |= {*cause.ids}
        if self.world is not None and self.saving((), free=RESOURCES["gpu"]) >= NEAR * most:
            allowed |= {name for name in VERDICTS if of_the_gpu(name)}
        if self.world is None:
            allowed |= {name for ids in _FAMILIES if findings and findings[0]["id"] in ids for name in ids}
        if allowed & {*HOST}:
            allowed |= {*UNNAMED_HOST}
        return allowed


def steps_of(variant: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The steps, annotated or inferred; the whole recording, if there are none."""
    steps: list[dict[str, Any]] = (variant["iterations"] or variant)["steps"]
    return steps


def figures_of(row: Mapping[str, Any]) -> dict[str, float]:
    wall = row["wall"]
    busy = sum(wall[name] for name in _BUSY)
    return {"step": row["wall_ns"], "busy": busy, "idle": row["wall_ns"] - busy, "host": row["host_ns"] or 0.0}


def _lasted(made: Recording, number: int) -> float:
    return float(made.done[number] - max([made.begun[number], *made.done[:number]]))


def _change(name: str) -> str:
    """The name of a change without numbers and plurals."""
    return re.sub(r"[\d.,]+ |s\b", "", name)


def truth_of(path: Path, world: World | None = None) -> Truth:
    """The truth about a trace file or a folder of such files."""
    told = Told(report(open_subject([path])))
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    spans = [damage.span(File.read(each)) for each in files]
    return Truth(told, world, 1_000 * max(end - start for start, end in spans))
