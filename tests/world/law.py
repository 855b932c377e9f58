"""The law of damage: no report of a damaged recording claims more than the truth allows.

Idle time, cost, saving, share and certainty are at most those of the truth (and a tenth), or are said to be unknown.
The first finding is that of the undamaged recording, or is withheld and the first two lines name the damage. The truth
is what tracekit reports of the undamaged trace and, for a world, what its simulation says.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from tests.world import causes as all_causes
from tests.world import damage
from tests.world.causes import HOST, Cause
from tests.world.damage import KINDS, File
from tests.world.machine import Recording
from tests.world.worlds import RESOURCES, World, world
from tracekit.errors import TracekitError
from tracekit.faces import Options
from tracekit.faces.shared.document import as_document
from tracekit.faces.text import draw as drawn_as_text
from tracekit.findings import diagnose
from tracekit.findings.verdict import VERDICTS, of_the_gpu
from tracekit.profile import open_subject
from tracekit.report import Report, report

MORE = 1.1  # times the truth: what may be claimed
FLOOR = 0.01  # of a step: what may be claimed of what does not exist
NEAR = 0.9  # of the cost of the first finding: as good as the first
_BUSY = ("gpu_compute", "gpu_comm", "gpu_copy")
_TOUCHED_BY = {  # by the figures that a law says it touches: those that are not stated as known then
    "step": {"steps", "gpu work", "gpu idle"},
    "idle": {"steps", "gpu work", "gpu idle"},
    "busy": {"gpu work"},
    "host": {"steps", "host time"},
}
_GPU_BOUND, _UNKNOWN = "gpu_bound", "idle_unexplained"
_HOST_BUCKETS = ("python", "dispatch", "guards", "kernel_launch", "alloc", "unrecorded")
_BUCKETS = {  # of which a finding about a real trace can claim no more than there is
    **dict.fromkeys(HOST, _HOST_BUCKETS),
    "sync_stall": ("sync_stall",),
    "dataloader_bound": ("dataload",),
    "exposed_comm": ("gpu_comm",),
    "allocator": ("alloc",),
}
_WITHHELD = ("too_little_recorded", "empty", "gpu_side_missing", "host_side_missing")  # verdicts that claim nothing
_UNNAMED_HOST = (
    *HOST,
    "host_freeze",
    "idle_unexplained",
    "backward_handover",
    "cpu_compute",
)  # host time of which nobody can say more than where it is
_FAMILIES = {each.ids for each in vars(all_causes).values() if isinstance(each, type) and issubclass(each, Cause)}
_SPREAD = ("cold_start", "recompiles", "compile_in_steps")  # costs of few steps that are spread over all there are
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
        return _figures({"wall": wall.parts, "wall_ns": wall.step_ns, "host_ns": host.step_ns if host else None})

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
    runs: dict[tuple[Cause | None, tuple[str, ...]], Recording] = field(default_factory=dict)
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
        return {each["step"]: _figures(each) for each in _steps(self.variant) if each["wall"] is not None}

    @cached_property
    def mean(self) -> dict[str, float] | None:
        """What the counted steps took."""
        mean = self.variant["mean"]
        return _figures(mean) if mean["wall"] is not None else None

    @cached_property
    def whole(self) -> dict[str, float] | None:
        """What the whole recording took, start-up and what lies between and around its steps included."""
        known = [_figures(each) for each in _steps(self.variant) if each["wall"] is not None]
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
        if name == _UNKNOWN and self.mean is not None:  # that nobody knows why it idles is no claim
            saved.append(self.mean["idle"] / max(self.mean["step"], 1))
        if name == "cold_start" and self.by_step:  # without its number, the first recorded step looks like the first
            first, *others = (each["step"] for _, each in sorted(self.by_step.items()))
            saved.append(max(first - median(others or [first]), 0.0) / sum((first, *others)))
        if name == "sync_stall":  # several waits that cannot be told apart any more
            saved += [gain for change, gain in self.told.gains(self.variant["name"]).items() if "the wait" in change]
        true = self.of_steps(numbers)
        if name.startswith((_GPU_BOUND, "cuda_graph_ok")) and true is not None:
            saved.append(true["busy"] / max(true["step"], 1))
        if (self.world is None or name == "exposed_comm") and self.mean is not None:
            wall = self.variant["mean"]["wall"]
            saved.append(sum(wall[bucket] for bucket in _BUCKETS.get(name, ())) / max(self.mean["step"], 1))
        step_ns = true["step"] if true is not None else self.span_ns
        return max(shares + saved), max(costs + [share * step_ns for share in saved])

    def saving(self, numbers: Collection[int], removed: Cause | None = None, free: tuple[str, ...] = ()) -> float:
        """What a step takes less without a cause, or if resources are free, as a share: of all steps, or of these."""
        assert self.world is not None
        with_it, without = self.world.recording, self._run(removed, free)
        told = {*numbers} & {*range(len(with_it.begun))}
        shares = []
        for counted in (told, range(len(with_it.begun))):
            took, takes = (sum(_lasted(made, number) for number in counted) for made in (with_it, without))
            shares.append((took - takes) / max(took, 1))
        return max(*shares, self.savings[removed] if removed is not None else 0.0)

    def _run(self, removed: Cause | None, free: tuple[str, ...]) -> Recording:
        assert self.world is not None
        if (removed, free) not in self.runs:
            self.runs[removed, free] = self.world.run(removed, free)
        return self.runs[removed, free]

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
        if one == other or (one.startswith(_GPU_BOUND) and other.startswith(_GPU_BOUND)):
            return True
        families = {cause.ids for cause in self.world.causes} if self.world is not None else _FAMILIES
        return any(one in ids and other in ids for ids in (*families, HOST))

    def first(self, near: float = NEAR) -> set[str]:
        """The kinds of finding that may be the first: those that cost so much of what the costliest does."""
        findings = self.findings
        best = max((each["cost_ns"] or 0.0 for each in findings), default=0.0)
        allowed = {each["id"] for each in findings if each is findings[0] or (each["cost_ns"] or 0.0) >= near * best}
        if findings and findings[0]["id"].startswith(_GPU_BOUND):
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
            allowed |= {*_UNNAMED_HOST}
        return allowed


def _steps(variant: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The steps, annotated or inferred; the whole recording, if there are none."""
    steps: list[dict[str, Any]] = (variant["iterations"] or variant)["steps"]
    return steps


def _figures(row: Mapping[str, Any]) -> dict[str, float]:
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


def broken(told: Told, truth: Truth, lost: Collection[str] = (), renamed: Mapping[str, str] | None = None) -> list[str]:
    """What the report of a damaged recording claims beyond the truth, a line each. `lost` are the kinds of finding that
    can be told only as time of the host any more, by inference, because the file looks like one of a recorder that
    never writes what was lost."""
    if not truth.told.variants or (truth.world is None and truth.mean is None):
        return []  # nobody knows what would be true
    # Where a damaged file falls apart into ranks, the truth is about the first one.
    variants = [each for each in told.variants if each["name"] == "rank0"] or told.variants
    return [line for variant in variants for line in _broken(told, variant, truth, lost, renamed or {})]


def _broken(
    told: Told, variant: dict[str, Any], truth: Truth, lost: Collection[str], renamed: Mapping[str, str]
) -> Iterator[str]:
    mean = told.mean(variant["name"])
    annotated = variant["steps_from"] == "annotations"
    numbers, host_numbers, same = variant["mean_over"], variant["host_mean_over"], annotated
    if not annotated:  # as many inferred steps as there are in truth are the same ones, by their order
        mine, true_ones = ([each["step"] for each in _steps(of)] for of in (variant, truth.variant))
        same = variant["iterations"] is not None and len(mine) == len(true_ones)
        number_of = dict(zip(mine, true_ones, strict=True)) if same else {}
        numbers, host_numbers = ([number_of[each] for each in over if same] for over in (numbers, host_numbers))
    true = truth.of_steps(numbers)
    step_ns = true["step"] if true is not None else truth.span_ns
    scale = 1.0
    if not annotated and variant["iterations"] is None:
        # Figures are about the whole recording, and those of the truth perhaps about a step of it.
        scale = max(truth.span_ns / max(step_ns, 1), 1.0)
        true = truth.whole
    host = truth.of_steps(host_numbers) if same else None
    if host is not None and true is not None:
        true = {**true, "host": max(true["host"], host["host"])}
    if true is not None and mean is not None:
        yield from _stated("a step", mean, true, variant)
    for each in variant["steps"] if annotated else ():
        if each["wall"] is not None and each["step"] in truth.by_step:
            yield from _stated(f"step {each['step']}", _figures(each), truth.by_step[each["step"]], variant)
    findings = told.findings(variant["name"])
    vague = [truth.allowed(name, numbers) for name in {each["id"] for each in truth.findings} & {*lost}]
    recorded_ns = sum(each["wall_ns"] or 0.0 for each in variant["steps"])
    fewer = max(_known(truth.variant) / max(_known(variant), 1), truth.span_ns / max(recorded_ns, 1), 1.0)
    part = fewer if not annotated and variant["iterations"] is None else 1.0  # of a recording that ends early
    for finding in findings:
        name, allowed = finding["id"], truth.allowed(finding["id"], numbers)
        if name in renamed:
            allowed = tuple(map(max, zip(allowed, truth.allowed(renamed[name], numbers), strict=True)))
        is_guess = finding["confidence"] == "inferred" or finding["where"]["function"] or name != "python_bound"
        # By the contract, what a host does right after a wait counts as the wait, unless it is known to load.
        if (name in _UNNAMED_HOST and is_guess) or (name == "sync_stall" and "dataloader_bound" in lost):
            allowed = tuple(map(sum, zip(allowed, *vague, strict=True)))
        more = MORE * (fewer if name in _SPREAD else 1.0)
        share, cost = part * more * allowed[0] + FLOOR, scale * (more * allowed[1] + FLOOR * step_ns)
        if (finding["share"] or 0.0) > share:
            yield f"finding {name}: {finding['share']:.1%} of a step, allowed {share:.1%} ({finding['headline']})"
        elif (finding["cost_ns"] or 0.0) > cost:
            yield f"finding {name}: {_ms(finding['cost_ns'])}, allowed {_ms(cost)} ({finding['headline']})"
    yield from _certainty(findings, truth)
    verdict = variant["verdict"]["id"]
    unnamed = sum(share for share, _ in vague)
    yield from _verdict(variant, truth, numbers, unnamed, renamed, fewer if verdict in _SPREAD else part)
    yield from _changes(told.gains(variant["name"]), truth, numbers)
    yield from _first(told, variant, findings, truth, lost, renamed, part)


def _known(variant: Mapping[str, Any]) -> int:
    return sum(each["wall"] is not None for each in _steps(variant))


def _stated(
    what: str, said: Mapping[str, float], true: Mapping[str, float], variant: Mapping[str, Any]
) -> Iterator[str]:
    for name, value in said.items():
        if value > MORE * true[name] + FLOOR * true["step"] and not _is_doubted(name, variant):
            yield f"{what}: {name} {_ms(value)}, truth {_ms(true[name])}"


def _is_doubted(figure: str, variant: Mapping[str, Any]) -> bool:
    return any(_TOUCHED_BY[figure] & {*entry.get("touches", _TOUCHED_BY[figure])} for entry in _grave(variant))


def _grave(variant: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [entry for entry in variant["health"] if entry.get("severity", "note") != "note"]


def _certainty(findings: Iterable[Mapping[str, Any]], truth: Truth) -> Iterator[str]:
    before: dict[str, set[str]] = {}
    for finding in truth.findings:
        before.setdefault(finding["id"], set()).add(finding["confidence"])
    for finding in findings:
        if finding["confidence"] == "measured" and before.get(finding["id"]) == {"inferred"}:
            yield f"finding {finding['id']}: measured, was inferred"


def _verdict(
    variant: Mapping[str, Any],
    truth: Truth,
    numbers: Collection[int],
    vague: float,
    renamed: Mapping[str, str],
    part: float,
) -> Iterator[str]:
    verdict, before = variant["verdict"], truth.variant["verdict"]
    names = verdict["id"], renamed.get(verdict["id"], verdict["id"])
    allowed = part * max(truth.allowed(name, numbers)[0] for name in names)
    if verdict["id"] in _UNNAMED_HOST:
        allowed += vague
    if truth.is_alike(before["id"], verdict["id"]) or (vague and verdict["id"] in _UNNAMED_HOST):
        allowed = max(allowed, before["share"] or 0.0)
    if verdict["id"] in _WITHHELD:
        return
    if (verdict["share"] or 0.0) > MORE * allowed + FLOOR and not _grave(variant):
        yield f"verdict {verdict['id']}: {verdict['share']:.1%}, allowed {allowed:.1%} (was {before['id']})"


def _changes(gains: Mapping[str, float], truth: Truth, numbers: Collection[int]) -> Iterator[str]:
    for change, gain in gains.items():
        allowed = truth.spared(change, numbers)
        if gain > MORE * allowed + FLOOR:
            yield f"what if {change}: {gain:.1%} saved, truth {allowed:.1%}"


def _first(
    told: Told,
    variant: Mapping[str, Any],
    findings: list[dict[str, Any]],
    truth: Truth,
    lost: Collection[str],
    renamed: Mapping[str, str],
    part: float,
) -> Iterator[str]:
    first = findings[0] if findings else None
    if first is None and not truth.findings:
        return
    if first is not None and truth.first(NEAR / part) & {first["id"], renamed.get(first["id"])}:
        return
    if first is not None and truth.findings and truth.findings[0]["id"] in lost and first["id"] in _UNNAMED_HOST:
        return
    if first is None or first["cost_ns"] is None or first["id"] == _UNKNOWN:
        named = [entry["message"] for entry in _grave(variant)] + ([first["headline"]] if first else [])
        if variant["verdict"]["id"] in _WITHHELD:
            named.append(variant["verdict"]["sentence"])
        if any(_begins(sentence) in told.lead for sentence in named):
            return
    was = truth.findings[0]["id"] if truth.findings else "nothing"
    if first is None:
        yield f"first finding: withheld without a word about the damage, was {was}"
    elif (first["share"] or 0.0) > FLOOR or first["cost_ns"] is None:
        yield f"first finding: {first['id']}, was {was} ({first['headline']})"


def _begins(sentence: str) -> str:
    """So much of a sentence as a line about it repeats."""
    return " ".join(sentence.split())[:40].rstrip(".")


def _ms(ns: float) -> str:
    return f"{ns / 1e6:.3f} ms"


# What recorders that write less look like: these findings become time of the host, of which nobody knows more.
_VAGUE = {
    "frames": ("garbage_collection", "preprocessing", "cpu_compute", "operator_loop", "optimizer_loop", "zero_grad"),
    "loader_events": ("dataloader_bound",),
    "operators": ("operator_loop", "optimizer_loop", "zero_grad", "cpu_compute", "allocator", *_SPREAD),
}
# What a file still shows of a cause by another name: the loader that works in the loop itself prepares data there, and
# the products of attention are products like others where no operator says what they are for.
_RENAMED = {
    "loader_events": {"preprocessing": "dataloader_bound"},
    "operators": {"unaligned_products": "unfused_attention"},
}


@dataclass(frozen=True)
class Judged:
    """One damaged recording: what was claimed beyond the truth, and whether anything was told at all."""

    seed: int
    kinds: tuple[str, ...]
    claims: tuple[str, ...]
    refused: bool = False  # by an error with a sentence
    doubted: bool = False  # its health says so, of a figure or of all
    withheld: bool = False  # no finding is left, although there was one
    error: str = field(default="", compare=False)

    @property
    def kept(self) -> bool:
        return not self.claims and not self.error


def judge(files: list[Path], truth: Truth, names: tuple[str, ...], seed: int, folder: Path) -> Judged | None:
    """Damage the files, of which each is a rank, into a folder, and compare; None if nothing can be damaged."""
    draw = random.Random(f"damage {seed} {' '.join(names)}")
    made = []
    for path in files:
        file = damage.damaged(File.read(path), names, draw)
        if file is None:
            return None
        name = path.name.removesuffix(".gz")
        made.append(file.write(folder / name))
    return judged_file(folder if len(made) > 1 else made[0], truth, names, seed)


def judged_file(path: Path, truth: Truth, names: tuple[str, ...], seed: int) -> Judged:
    """Compare the report of a damaged file, or of a folder of them, with the truth."""
    lost = [each for name in names for each in _VAGUE.get(name, ())]
    renamed = {told: true for name in names for told, true in _RENAMED.get(name, {}).items()}
    try:
        told = Told(report(open_subject([path])))
        claims = broken(told, truth, lost, renamed)
    except TracekitError:
        return Judged(seed, names, (), refused=True)
    except Exception as error:  # whatever it is, it is none that a reader may see
        return Judged(seed, names, (f"{type(error).__name__}: {error}",))
    doubted = any(_grave(variant) for variant in told.variants)
    return Judged(seed, names, tuple(claims), False, doubted, bool(truth.findings) and not told.document["findings"])


TRIES = 60  # worlds, until one has what a kind damages


def case(number: int) -> tuple[int, tuple[str, ...]]:
    """The seed of the world and the kinds of damage of a numbered case; the kinds take turns, singly and in pairs."""
    draw = random.Random(f"case {number}")
    first = [*KINDS][number % len(KINDS)]
    pair = (number // len(KINDS)) % 2 == 1
    second = (draw.choice([name for name in KINDS if name != first]),) if pair else ()
    return number, (first, *second)


def judged_case(number: int, keep: Path | None = None) -> Judged:
    """Damage the first world of the case to which its kinds apply."""
    first, names = case(number)
    for seed in count(first, 1_000):
        if seed - first >= 1_000 * TRIES:
            return Judged(seed, (), ())
        with tempfile.TemporaryDirectory() as folder:
            made = world(seed)
            whole, broke = Path(folder) / "whole", keep or Path(folder) / "damaged"
            path = made.write(whole)
            broke.mkdir(exist_ok=True, parents=True)
            files = sorted(path.iterdir()) if path.is_dir() else [path]
            if not _applies(files, names, seed):
                continue
            found = judge(files, truth_of(path, made), names, seed, broke)
            if found is not None:
                return found
    raise AssertionError


def _applies(files: list[Path], names: tuple[str, ...], seed: int) -> bool:
    draw = random.Random(f"damage {seed} {' '.join(names)}")
    return all(damage.damaged(File.read(path), names, draw) is not None for path in files)


def judged(numbers: Iterable[int], workers: int) -> list[Judged]:
    """The cases of these numbers, from fresh processes."""
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        return [*pool.map(judged_case, numbers, chunksize=4)]


def judged_trace(path: Path) -> list[Judged]:
    """A real trace with every kind of damage that applies to it, one at a time."""
    truth, found = truth_of(path), []
    for name in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            found.append(judge([path], truth, (name,), 0, Path(folder)))
    return [each for each in found if each is not None]


def judged_traces(paths: Iterable[Path], workers: int) -> dict[str, list[Judged]]:
    """These traces with every kind of damage, from fresh processes."""
    ordered = sorted(paths, key=lambda path: -path.stat().st_size)
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        return {path.name: found for path, found in zip(ordered, pool.map(judged_trace, ordered), strict=True)}


def table(found: Iterable[Judged]) -> dict[str, dict[str, int]]:
    """For each kind, by itself or one of two: how many cases, and how many keep the law."""
    rows: dict[str, dict[str, int]] = {}
    for each in found:
        for name in (*each.kinds, "all"):
            row = rows.setdefault(name, dict.fromkeys(("cases", "kept", "refused", "doubted", "withheld"), 0))
            row["cases"] += 1
            for column in ("kept", "refused", "doubted", "withheld"):
                row[column] += getattr(each, column)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="How often is the law of damage kept, by kind of damage?")
    parser.add_argument("--worlds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first case")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kind", default="", help="only cases with this kind of damage")
    parser.add_argument("--missed", action="store_true", help="show what is claimed beyond the truth")
    parser.add_argument("--floors", action="store_true", help="print damage.toml for these cases")
    parser.add_argument("--write", type=Path, help="a folder for the damaged traces of the cases that were missed")
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.worlds)
    chosen = [number for number in numbers if not options.kind or options.kind in case(number)[1]]
    found = dict(zip(chosen, judged(chosen, options.workers), strict=True))
    rows = table(found.values())
    if options.floors:
        print("\n".join(f"{name} = {100 * row['kept'] // row['cases']}" for name, row in sorted(rows.items())))
        return
    print(f"{'':28}{'cases':>8}{'kept':>8}{'':>6}{'refused':>9}{'doubted':>9}{'withheld':>10}")
    for name, row in sorted(rows.items(), key=lambda item: item[1]["kept"] / item[1]["cases"]):
        share = f"{row['kept'] / row['cases']:.0%}"
        columns = f"{row['refused']:>9}{row['doubted']:>9}{row['withheld']:>10}"
        print(f"{name:28}{row['cases']:>8}{row['kept']:>8}{share:>6}{columns}")
    for number, each in found.items():
        if each.kept:
            continue
        if options.missed:
            print(f"\ncase {number}: {' + '.join(each.kinds)} (world {each.seed})")
            print("\n".join(f"  {claim}" for claim in each.claims))
        if options.write:
            judged_case(number, options.write / str(number))
