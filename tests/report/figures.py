"""Holds the figures of sentences against the attribution: which of them contradict the bucket table?

What is true is summed up anew from the rows of the attribution; of tracekit's own sentences only the words are used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tracekit.engine.buckets import BUCKETS
from tracekit.profile import Profile
from tracekit.report import Report
from tracekit.report.blocks import Cards, Sentences

_UNITS = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}
_NUMBER = r"\d[\d,]*(?:\.\d+)?"
_TIME = rf"{_NUMBER} (?:ns|µs|ms|s)\b"
_SHARE = rf"(?:<0\.1|{_NUMBER}) %"
_WHOLE = r"(?:a step|in all)"
PART_OF = re.compile(rf"(?P<part>{_TIME}) of (?P<whole>{_TIME}) {_WHOLE}(?: \((?P<share>{_SHARE})\))?")
SHARE_OF = re.compile(rf"(?P<share>{_SHARE}) of (?P<whole>{_TIME}) {_WHOLE}")
OF_BUCKET = re.compile(rf"(?P<part>{_TIME}) (?P<noun>[A-Za-z][\w ]*?) \((?P<share>{_SHARE})\)")
BUSY = re.compile(rf"GPU is busy (?P<share>{_SHARE}) of the time")
PACE = re.compile(rf"GPU-bound[^:]*: (?P<share>{_SHARE}) of (?P<whole>{_TIME})")
IDLES = re.compile(rf"GPU (?:then )?idles for (?P<part>{_TIME})(?P<per> (?:of {_TIME} )?{_WHOLE})?")
IDLES_IN_ALL = re.compile(rf"GPU idles (?P<part>{_TIME}) of {_TIME} a step:")
ANY_SHARE = re.compile(rf"({_NUMBER}) %")
_NOUNS = {bucket.noun: bucket.key for bucket in BUCKETS.values()}
_ON_THE_GPU = ("gpu_compute", "gpu_copy", "gpu_comm")


@dataclass(frozen=True)
class Figure:
    """A number as written, and by how much it may be off, because it is rounded."""

    value: float
    off: float

    @staticmethod
    def of(text: str) -> Figure:
        number, _, unit = text.replace(",", "").partition(" ")
        if number == "<0.1":
            return Figure(0.0005, 0.0005)
        scale = _UNITS.get(unit, 0.01)
        decimals = len(number.partition(".")[2])
        return Figure(float(number) * scale, 0.501 * 10**-decimals * scale)

    def fits(self, truth: float) -> bool:
        return abs(self.value - truth) <= self.off + 1e-6 * abs(truth)


class Truth:
    """What the attribution of a profile says about a counted step, ns."""

    def __init__(self, profile: Profile) -> None:
        made = profile.attribution
        self.every: list[float] = []  # what may be called a step: counted ones, all, and without what is unseen
        counted = profile.counted
        for name in ("wall", "host"):
            view = made.views[name]
            chosen = view.known & counted
            if chosen.any():
                self.every.append(float(view.step_ns[chosen].mean()))
            if view.known.any():
                self.every.append(float(view.step_ns[view.known].mean()))
        self.steps = max(int((made.views["wall"].known & counted).sum()), 1)
        self.parts = self._parts(profile, "wall") or self._parts(profile, "host")
        self.step = sum(self.parts.values())
        known = made.views["wall"].known & counted
        self.unseen = profile.unseen.total() / self.steps if known.any() else 0.0
        self.every += [self.step - self.unseen]
        busy = made.wall[:, [made.views["wall"].keys.index(key) for key in _ON_THE_GPU]].sum(axis=1)
        self.busy_shares = busy[known] / np.maximum(made.wall_ns[known], 1)

    def _parts(self, profile: Profile, name: str) -> dict[str, float]:
        view = profile.attribution.views[name]
        chosen = view.known & profile.counted
        rows = view.totals[chosen]
        return {key: float(rows[:, k].mean()) for k, key in enumerate(view.keys)} if chosen.any() else {}

    def is_whole(self, figure: Figure) -> bool:
        return any(map(figure.fits, self.every))


def wrong(profile: Profile, sentence: str) -> Iterator[str]:
    """What the sentence says that the attribution does not."""
    truth = Truth(profile)
    for match in ANY_SHARE.finditer(sentence):
        if Figure.of(match[0]).value > 1.0005:
            yield f"{match[0]}: more than all"
    for match in PART_OF.finditer(sentence):
        part, whole = Figure.of(match["part"]), Figure.of(match["whole"])
        if not truth.is_whole(whole):
            yield f"{match[0]}: no step takes that"
        if part.value > whole.value + part.off + whole.off:
            yield f"{match[0]}: a part is longer than the whole"
    for match in SHARE_OF.finditer(sentence):
        if not truth.is_whole(Figure.of(match["whole"])):
            yield f"{match[0]}: no step takes that"
    for match in (each for each in PART_OF.finditer(sentence) if each["share"]):
        part, share = Figure.of(match["part"]), Figure.of(match["share"])
        fitting = (each for each in truth.every if each)
        if not any(abs(share.value - part.value / each) <= share.off + part.off / each for each in fitting):
            yield f"{match[0]}: is no such share of a step"
    for match in PACE.finditer(sentence):
        work = truth.parts.get("gpu_compute", 0.0) + truth.parts.get("gpu_copy", 0.0)
        judged = truth.step - truth.unseen
        if not Figure.of(match["share"]).fits(work / judged if judged else 0.0):
            yield f"{match[0]}: the GPU works for {work / judged:.1%}"
    for match in BUSY.finditer(sentence):
        if not Figure.of(match["share"]).fits(float(truth.busy_shares.mean())):
            yield f"{match[0]}: it is busy for {truth.busy_shares.mean():.1%}"
    for match in IDLES.finditer(sentence):
        idle = (truth.step - sum(truth.parts.get(key, 0.0) for key in _ON_THE_GPU)) * (
            1 if match["per"] else truth.steps
        )
        part = Figure.of(match["part"])
        if part.value - part.off > idle * (1 + 1e-6):
            yield f"{match[0]}: it idles for {idle / 1e6:.3f} ms"
    for match in IDLES_IN_ALL.finditer(sentence):
        idle = truth.step - sum(truth.parts.get(key, 0.0) for key in (*_ON_THE_GPU, "gpu_gap"))
        part = Figure.of(match["part"])
        if not 0.97 * idle <= part.value + part.off or part.value - part.off > idle * (1 + 1e-6):
            yield f"{match[0]} it idles for {idle / 1e6:.3f} ms, gaps between queued work apart"


def wrong_buckets(profile: Profile, sentence: str) -> Iterator[str]:
    """The same of the buckets that a headline names."""
    for match in OF_BUCKET.finditer(sentence):
        key = _NOUNS.get(match["noun"])
        if key is None:
            continue
        spent, known = (parts.get(key, 0.0) for parts in (profile.parts, profile.known_parts))
        hosts = profile.attribution.views["host"]
        chosen = hosts.known & profile.counted
        by_host = float(hosts.totals[chosen][:, hosts.keys.index(key)].mean()) if key in hosts.keys else 0.0
        if not any(map(Figure.of(match["part"]).fits, (spent, known, by_host))):
            yield f"{match[0]}: it takes {spent / 1e6:.3f} ms"


def said(report: Report) -> Iterator[tuple[Profile, str]]:
    """Every sentence of a report of one variant: those of its sections, and of findings that are too small for them."""
    (profile,) = report.profiles
    for section in report.sections:
        for block in section.blocks:
            if isinstance(block, Sentences):
                yield from ((profile, line) for line in block.lines)
            if isinstance(block, Cards):
                yield from ((profile, cost) for card in block.cards for _, cost in card.costs)
    diagnosis = report.diagnoses[profile.name]
    yield profile, diagnosis.verdict.sentence
    for finding in diagnosis.all_findings:
        yield profile, f"{finding.title}. {finding.advice}"


def contradictions(report: Report) -> list[str]:
    """What sentences say that the attribution does not."""
    found = []
    for profile, sentence in said(report):
        complaints = [*wrong(profile, sentence)]
        if " takes " in sentence.partition(":")[0]:
            complaints += wrong_buckets(profile, sentence.partition(". ")[0])
        found += [f"{complaint}  in: {sentence}" for complaint in complaints]
    return found
