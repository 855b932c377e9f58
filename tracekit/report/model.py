"""Variants, each against its baseline, and everything that is worked out of them once."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tracekit.analyses import Answer, summaries
from tracekit.compare import Comparison, compare
from tracekit.errors import UnknownVariantError
from tracekit.findings import Diagnosis, diagnose
from tracekit.profile import Profile, Subject
from tracekit.report.blocks import Note
from tracekit.report.notes import notes
from tracekit.report.section import Section


@dataclass(frozen=True)
class Report:
    """Variants against baselines. All times are ns; means are over each variant's counted steps."""

    subject: Subject
    baseline: Profile  # the one that was named, or else the first variant's
    comparisons: list[Comparison]  # of every variant but the baselines, in order

    @property
    def profiles(self) -> list[Profile]:
        """The variants that were read, in the order given."""
        return self.subject.profiles

    @cached_property
    def answers(self) -> list[tuple[Profile, Answer]]:
        """Every analysis of every variant: analysis by analysis, so that variants stand side by side."""
        asked = [(profile, summaries(profile)) for profile in self.profiles]
        return [(profile, given[index]) for index in range(len(asked[0][1])) for profile, given in asked]

    @cached_property
    def diagnoses(self) -> dict[str, Diagnosis]:
        """What bounds each variant's step, and what the rules find, by variant."""
        return {profile.name: diagnose(profile) for profile in self.profiles}

    @cached_property
    def notes(self) -> list[Note]:
        """What was inferred, what cannot be answered, what is wrong with the traces; one note for each variant."""
        return notes(self)

    @cached_property
    def sections(self) -> list[Section]:
        """Everything there is to say, most valuable first."""
        from tracekit.report.sections import all_sections

        return all_sections(self)

    def against(self, baseline: str) -> "Report":
        """The same variants against another of them; what does not depend on it is taken over."""
        turned = report(self.subject, baseline)
        vars(turned).update({name: vars(self)[name] for name in ("answers", "diagnoses") if name in vars(self)})
        return turned

    def comparison(self, name: str) -> Comparison | None:
        """The comparison of that variant; None for a baseline."""
        return next((entry for entry in self.comparisons if entry.variant == name), None)

    def profile(self, name: str) -> Profile:
        """The variant of that name."""
        return next(profile for profile in self.profiles if profile.name == name)

    def base_of(self, profile: Profile) -> Profile:
        """What a variant is set against; a baseline against itself."""
        entry = self.comparison(profile.name)
        return self.profile(entry.baseline) if entry is not None else profile

    @cached_property
    def groups(self) -> list[tuple[Profile, list[Profile]]]:
        """Each baseline, and the variants that are set against it, itself among them."""
        members: dict[str, list[Profile]] = {}
        for profile in self.profiles:
            members.setdefault(self.base_of(profile).name, []).append(profile)
        return [(self.profile(name), group) for name, group in members.items()]


def report(subject: Subject, baseline: str | None = None) -> Report:
    """Each variant against the baseline named, else the first of its own run. Raises UnknownVariantError."""
    profiles = subject.profiles
    by_name = {profile.name: profile for profile in profiles}
    if baseline is not None and baseline not in by_name:
        raise UnknownVariantError(baseline, list(by_name))
    named = by_name[baseline] if baseline is not None else None
    comparisons = list(_comparisons(profiles, named))
    return Report(subject, named or profiles[0], comparisons)


def _comparisons(profiles: list[Profile], named: Profile | None) -> Iterator[Comparison]:
    first: dict[str, Profile] = {}
    for profile in profiles:
        base = named or first.setdefault(profile.run_name, profile)
        if profile is not base:
            yield compare(profile, base)
