"""What was opened: the report, and what queries work out of its traces once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from tracekit.compare import Comparison
from tracekit.intervals import Bools
from tracekit.profile import Profile
from tracekit.report import Report
from tracekit.report.blocks import Sentences
from tracekit.report.outline import Outline, outline
from tracekit.report.owned import baselines, owned
from tracekit.report.owner_costs import OfVariant
from tracekit.sanitize import sanitize
from tracekit.tui.model.selection import Selection
from tracekit.tui.model.work import Work, work_of


@dataclass(frozen=True)
class Opened:
    """A report. Queries ask for the variants of a selection, and for the steps that it counts."""

    report: Report

    @property
    def variants(self) -> list[str]:
        """The names of those that were read, as the report has them."""
        return [profile.name for profile in self.report.profiles]

    @property
    def about(self) -> str:
        """What ran, and on what, where a run says so."""
        run = self.report.subject.run
        return sanitize(f"{run.recipe} on {run.device}") if run is not None else ""

    @cached_property
    def outline(self) -> Outline:
        """The report's chapters, every table with them."""
        return outline(self.report, fold=True)

    @cached_property
    def baselines(self) -> dict[str, str]:
        """For each variant the one that it is set against."""
        return baselines(self.report)

    @cached_property
    def owners(self) -> list[OfVariant]:
        """The variants of which it is known whose their time is."""
        return owned(self.report)

    @cached_property
    def _works(self) -> dict[str, Work]:
        return {}

    def work(self, profile: Profile) -> Work:
        """The work of a variant, event by event; worked out when it is first asked for."""
        if profile.name not in self._works:
            self._works[profile.name] = work_of(profile)
        return self._works[profile.name]

    def profile(self, name: str) -> Profile:
        """The variant of that name."""
        return next(profile for profile in self.report.profiles if profile.name == name)

    def chosen(self, selection: Selection) -> list[Profile]:
        """The variants to show: all, or one and what it is set against."""
        name = selection.of("variant")
        if name is None:
            return self.report.profiles
        wanted = {name, self.baselines.get(name, name)}
        return [profile for profile in self.report.profiles if profile.name in wanted]

    def narrowed(self, selection: Selection) -> "Opened":
        """The same with the variants of a selection alone."""
        profiles = self.chosen(selection)
        if len(profiles) == len(self.report.profiles):
            return self
        names = {profile.name for profile in profiles}
        subject = replace(
            self.report.subject, members=[each for each in self.report.subject.members if each.name in names]
        )
        comparisons: list[Comparison] = [each for each in self.report.comparisons if each.variant in names]
        report = Report(subject, self.report.baseline, comparisons)
        vars(report)["diagnoses"] = self.report.diagnoses
        return Opened(report)

    def sentences(self, chapter: str) -> Iterator[tuple[str, Sentences]]:
        """What the report says in words about a chapter: of which variants, and the sentences."""
        for each in self.outline.chapters:
            if each.id == chapter:
                for entry in each.entries:
                    yield from ((entry.of, block) for block in entry.blocks if isinstance(block, Sentences))

    def tables(self, analysis: str, profiles: Sequence[Profile]) -> dict[str, pa.Table]:
        """What an analysis says of these variants, those left out of which it says nothing."""
        answers = {p.name: answer.table for p, answer in self.report.answers if answer.analysis == analysis}
        return {p.name: answers[p.name] for p in profiles if p.name in answers and answers[p.name].num_rows}

    def against(self, baseline: str) -> "Opened":
        """The same variants against another of them."""
        turned = Opened(self.report.against(baseline))
        vars(turned)["_works"] = self._works
        return turned

    def next_baseline(self) -> str:
        """The variant after the present baseline, round and round."""
        names = self.variants
        return names[(names.index(self.report.baseline.name) + 1) % len(names)]


def steps_of(profile: Profile, selection: Selection) -> Bools:
    """The steps that figures are over: those selected, or else those that the report counts."""
    chosen = selection.of("steps")
    if chosen is None:
        return profile.counted
    numbers = np.array(profile.trace.steps.number, np.int64)
    inside: Bools = (numbers >= chosen[0]) & (numbers <= chosen[1])
    return inside
