"""Variants, each with its baseline, and everything that is computed from them once; what concerns a variant by itself
is worked out once for all reports that share it.
"""

from collections.abc import Callable, Collection
from functools import cached_property
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from tracekit.analyses import Answer, summaries
from tracekit.base import disclosure
from tracekit.errors.asking import UnknownVariantError
from tracekit.findings import Diagnosis, diagnose
from tracekit.findings.choice import ALL, Choice
from tracekit.findings.tried import Attempt, attempts
from tracekit.profile import Member, Profile, Subject
from tracekit.profile.calibration import Calibration, calibrations
from tracekit.profile.compare import Comparison, Difference, calibrated, compare
from tracekit.ranks import Collectives, RankColumns, collectives, rank_columns
from tracekit.ranks.matching import with_sizes
from tracekit.ranks.straggler import Straggler, straggler, with_straggler, with_waits
from tracekit.report.blocks import Note
from tracekit.report.notes import notes
from tracekit.report.section import Section
from tracekit.watched.reading import Watched

_Result = TypeVar("_Result")


class ByVariant(Struct, frozen=True):
    """Results by the name of their variant, each worked out on first use."""

    _summaries: dict[str, list[Answer]] = field(default_factory=dict)
    _diagnoses: dict[str, Diagnosis] = field(default_factory=dict)
    _ranks: dict[str, list[RankColumns]] = field(default_factory=dict)
    _collectives: dict[str, Collectives] = field(default_factory=dict)

    def summaries(self, profile: Profile) -> list[Answer]:
        """The answer of every analysis, without the rows behind it."""
        return _once(self._summaries, profile.name, lambda: summaries(profile))

    def diagnosis(self, profile: Profile) -> Diagnosis:
        """What bounds the step, and the findings."""
        return _once(self._diagnoses, profile.name, lambda: diagnose(profile))

    def ranks(self, profile: Profile) -> list[RankColumns]:
        """The columns by which ranks are compared, a set for each rank; empty where there is a single one."""
        ranks = sorted(profile.per_rank.items())
        return _once(
            self._ranks,
            profile.name,
            lambda: with_sizes([rank_columns(rank_profile, rank) for rank, rank_profile in ranks], profile),
        )

    def collectives(self, name: str, ranks: list[RankColumns]) -> Collectives:
        """The collectives of these ranks of the variant of that name."""
        return _once(self._collectives, name, lambda: collectives(ranks))


def _once(results: dict[str, _Result], name: str, make: Callable[[], _Result]) -> _Result:
    if name not in results:
        results[name] = make()
    return results[name]


class Report(Struct, frozen=True, eq=False, dict=True):
    """Variants against baselines. All times are ns; means are over each variant's counted steps."""

    subject: Subject
    baseline: Member  # the one that was named, else the first variant
    comparisons: list[Comparison]  # of every variant but the baselines, in order
    by_variant: ByVariant = field(default_factory=ByVariant)
    choice: Choice = ALL  # of the findings that are listed

    @property
    def profiles(self) -> list[Profile]:
        """The variants that were read, in the order given."""
        return self.subject.profiles

    @property
    def members(self) -> list[Member]:
        """The profiles, and the variants that were measured but have no trace."""
        return self.subject.known

    @property
    def title(self) -> str:
        """`compiled against eager`; for a study or a watch, its folder."""
        if self.subject.study is not None:
            return f"Study {self.subject.study.folder.resolve().name}"
        if self.subject.watch is not None:
            return f"Watch {_folder_name(self.subject.watch)}"
        compared_names = ", ".join(entry.variant for entry in self.comparisons)
        return " against ".join(filter(None, [compared_names, ", ".join(base.name for base, _ in self.groups)]))

    @cached_property
    def answers(self) -> list[tuple[Profile, Answer]]:
        """Every analysis of every variant: analysis by analysis, so that variants are side by side."""
        summaries = [self.by_variant.summaries(profile) for profile in self.profiles]
        return [
            pair
            for variant_answers in zip(*summaries, strict=True)
            for pair in zip(self.profiles, variant_answers, strict=True)
        ]

    @cached_property
    def _diagnoses_alone(self) -> dict[str, Diagnosis]:
        diagnoses = {}
        for profile in self.profiles:
            alone = self.by_variant.diagnosis(profile.calibrated_by(self.calibrated.get(profile.name)))
            of_all = with_waits(alone, profile, self.collectives.get(profile.name))
            diagnoses[profile.name] = with_straggler(of_all, profile, self.straggler(profile.name))
        return diagnoses

    @cached_property
    def diagnoses(self) -> dict[str, Diagnosis]:
        """What bounds each variant's step, and the findings, by variant; they know what other variants tried."""
        return {
            name: diagnosis.knowing(self.attempts[name]).choosing(self.choice)
            for name, diagnosis in self._diagnoses_alone.items()
        }

    @cached_property
    def attempts(self) -> dict[str, tuple[Attempt, ...]]:
        """What other variants of the same program tried that did not help, by the variant that is to be advised."""
        findings_of = {name: diagnosis.all_findings for name, diagnosis in self._diagnoses_alone.items()}
        tried = {}
        for profile in self.profiles:
            recipe = profile.run.recipe if profile.run is not None else None
            same_program = [
                member
                for member in self.subject.members
                if (member.run.recipe if member.run is not None else None) == recipe
                and (recipe is not None or self.base_of(member) is self.base_of(profile))
            ]
            tried[profile.name] = attempts(profile, same_program, findings_of)
        return tried

    @cached_property
    def calibrations(self) -> dict[str, Calibration]:
        """By variant, what is estimated of a step without the time of recording, or why nothing is; empty where
        recording does not stretch the steps of any variant of its run."""
        return calibrations(self.profiles)

    @property
    def calibrated(self) -> dict[str, Calibration]:
        """The calibrations that succeeded, by variant."""
        return {name: calibration for name, calibration in self.calibrations.items() if not calibration.why_not}

    def calibrated_difference(self, entry: Comparison) -> Difference | None:
        """What differs in wall time without the time of recording; None where that is not estimated of both sides."""
        calibration, base_calibration = self.calibrated.get(entry.variant), self.calibrated.get(entry.baseline)
        return (
            calibrated(calibration, base_calibration)
            if calibration is not None and base_calibration is not None
            else None
        )

    def straggler(self, name: str) -> Straggler | None:
        """The rank that delays the others, in a variant of which several ranks were recorded. None if the trace of one
        of them, where it was read here, breaks a law, so that nobody knows who waits for whom."""
        if name not in self.collectives:
            return None
        ranks = [rank for profile in self.profiles if profile.name == name for rank in profile.per_rank.values()]
        in_doubt = any(breach.is_grave for rank in ranks for breach in rank.trace.health)
        return None if in_doubt else straggler(self.collectives[name])

    @cached_property
    def ranks(self) -> dict[str, list[RankColumns]]:
        """What is compared of each rank, by variant, for those of which several ranks were recorded."""
        several = (profile for profile in self.profiles if profile.per_rank)
        return {profile.name: self.by_variant.ranks(profile) for profile in several} | dict(self.subject.ranks)

    @cached_property
    def collectives(self) -> dict[str, Collectives]:
        """The collectives of each variant of which several ranks were recorded."""
        return {name: self.by_variant.collectives(name, columns) for name, columns in self.ranks.items()}

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
        """The same variants compared with another baseline; what does not depend on it is reused."""
        return replace(report(self.subject, baseline, self.choice), by_variant=self.by_variant)

    def narrowed(self, names: Collection[str]) -> "Report":
        """These variants alone, each against its baseline, which is to be one of them."""
        members = [member for member in self.subject.members if member.name in names]
        comparisons = [entry for entry in self.comparisons if entry.variant in names]
        return replace(self, subject=replace(self.subject, members=members), comparisons=comparisons)

    @cached_property
    def baselines(self) -> dict[str, str]:
        """The baseline of each variant that is compared."""
        return {entry.variant: entry.baseline for entry in self.comparisons}

    def comparison(self, name: str) -> Comparison | None:
        """The comparison of that variant; None for a baseline."""
        return next((entry for entry in self.comparisons if entry.variant == name), None)

    def member(self, name: str) -> Member:
        """The variant of that name."""
        return next(member for member in self.members if member.name == name)

    def base_of(self, member: Member) -> Member:
        """The baseline of a variant; a baseline is its own."""
        entry = self.comparison(member.name)
        return self.member(entry.baseline) if entry is not None else member

    @cached_property
    def groups(self) -> list[tuple[Member, list[Member]]]:
        """Each baseline, and the variants that are compared with it, itself included."""
        members: dict[str, list[Member]] = {}
        for member in self.members:
            members.setdefault(self.base_of(member).name, []).append(member)
        return [(self.member(name), group) for name, group in members.items()]


def report(subject: Subject, baseline: str | None = None, choice: Choice = ALL) -> Report:
    """Each variant with the named baseline, else with the first of its own run; the traces of a watch only with one
    that is named. Raises UnknownVariantError.

    A variant without a trace is a baseline only where no variant has one, because nothing could be compared with it.
    """
    able: list[Member] = [*subject.profiles] or subject.known
    by_name = {member.name: member for member in able}
    if baseline is not None and baseline not in by_name:
        raise UnknownVariantError(baseline, list(by_name))
    requested_base = by_name[baseline] if baseline is not None else None
    first: dict[str, Member] = {}
    for member in [*able, *subject.known]:
        first.setdefault(_compared_within(subject, member), member)
    bases = [(member, requested_base or first[_compared_within(subject, member)]) for member in subject.known]
    comparisons = [compare(member, base) for member, base in bases if member is not base]
    return Report(subject, requested_base or able[0], comparisons, choice=choice)


def _compared_within(subject: Subject, member: Member) -> str:
    """Variants of which this is the same are compared."""
    return member.name if subject.watch is not None else member.run_name


def _folder_name(watched: Watched) -> str:
    folder = watched.folder.resolve()
    return folder.name if disclosure.current() is None else disclosure.shown_path(folder)
