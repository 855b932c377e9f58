"""What was opened: the report, and what queries derive from its traces only once, such as the work in the steps of a
variant, event by event.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
from msgspec import Struct, field
from msgspec.structs import replace

from tracekit.base.intervals import NO_INTS, Bools, Ints, Rows
from tracekit.base.names import sanitize
from tracekit.engine.attribution import Pieces, pieces
from tracekit.engine.buckets import CODES, of_activities
from tracekit.findings.culprits import NOTHING
from tracekit.lines.means import OwnerMeans, owner_means
from tracekit.profile import Profile
from tracekit.report import Report
from tracekit.report.blocks import Sentences
from tracekit.report.outline import Outline, outline
from tracekit.report.owner_costs import VariantOwners, owners_by_variant
from tracekit.trace.schema import LABEL, Role, column
from tracekit.tui.model.selection import Selection
from tracekit.vocabulary.kernel_class import kernel_class

_SUMS = pa.schema(
    [
        column("class", LABEL, "kind of work, inferred from the name"),
        column("per_step", pa.float64(), "instances per step"),
        column("step_ns", pa.float64(), "time per step", "ns"),
    ]
)


class Work(Struct, frozen=True, dict=True):
    """A row for each stretch of work: event, index of its step (−1: none), name, duration in ns and launch call.

    `once` marks the rows that count as an occurrence: an operator that computes in several stretches counts once.
    """

    profile: Profile
    event: Rows
    step: Rows
    dur: Ints
    launch: Ints
    once: Bools

    @cached_property
    def name(self) -> Rows:
        """The number of each event's name; −1 if there is no event."""
        return _names(self.profile, self.event)

    @cached_property
    def operator(self) -> Rows:
        """The number of the name of the operator that launched each row; −1 if none is known."""
        return _names(self.profile, self.profile.trace.operators.of(self.launch))

    def kinds(self, bucket: str) -> Bools:
        """Which of the GPU's activities belong to a bucket."""
        in_bucket: Bools = of_activities(self.profile.trace.events_at(self.event).roles) == CODES[bucket]
        return in_bucket

    def by_name(self, names: Rows, is_selected: Bools, steps: int, role: Role = "name") -> pa.Table:
        """The sums of the selected rows per step, by the name given to each; the costliest first."""
        texts = self.profile.trace.names
        codes = names[is_selected].astype(np.int64) + 1
        total = np.zeros(len(texts) + 1, np.int64)
        np.add.at(total, codes, self.dur[is_selected])
        number = np.bincount(codes[self.once[is_selected]], minlength=len(texts) + 1)
        present = np.flatnonzero((total > 0) | (number > 0))
        present = present[np.argsort(-total[present], kind="stable")]
        labels = [texts[code - 1] if code else NOTHING for code in present.tolist()]
        columns = [
            pa.array(labels, pa.string()).dictionary_encode(),
            pa.array([kernel_class(label, label) for label in labels], pa.string()).dictionary_encode(),
            pa.array(number[present] / max(steps, 1)),
            pa.array(total[present] / max(steps, 1)),
        ]
        name = column("name", LABEL, "name as written", role=role)
        return pa.Table.from_arrays(columns, schema=_SUMS.insert(0, name))


def work_of(profile: Profile) -> Work:
    """The GPU's activities, or without a GPU the stretches in which operators compute."""
    trace = profile.trace
    if trace.device != "gpu":
        return blamed(profile, profile.attribution.pieces, "cpu_compute")
    event = np.concatenate([NO_INTS, *(part.rows(part.roles.gpu) for part in trace.parts())])
    launch = trace.links.launch(event).astype(np.int64)
    step = np.where(launch >= 0, trace.steps.of(trace.ts_ns[np.maximum(launch, 0)]), -1)
    once = np.ones(len(event), bool)
    return Work(profile, event.astype(np.int32), step.astype(np.int32), trace.dur_ns[event], launch, once)


def blamed(profile: Profile, pieces: Pieces, bucket: str) -> Work:
    """The stretches of a bucket and the events to blame for them: they add up to exactly the bucket."""
    in_bucket = pieces.of(bucket)
    event = pieces.event[in_bucket]
    once = np.zeros(len(event), bool)
    once[np.unique(event, return_index=True)[1]] = True
    return Work(profile, event, pieces.step[in_bucket], pieces.dur[in_bucket], np.full(len(event), -1), once)


def _names(profile: Profile, events: Ints | Rows) -> Rows:
    if not len(profile.trace.ts_ns):
        return np.full(len(events), -1, np.int32)
    codes: Rows = np.where(events >= 0, profile.trace.name_codes[np.maximum(events, 0)], -1).astype(np.int32)
    return codes


class OpenReport(Struct, frozen=True, eq=False, dict=True):
    """A report, and the variants and steps that a selection covers.

    What has been derived from a variant is shared with the copies that `narrowed` and `against` make.
    """

    report: Report
    _means_of_steps: dict[tuple[str, tuple[int, int]], OwnerMeans] = field(default_factory=dict)  # by variant and steps
    _works: dict[str, Work] = field(default_factory=dict)  # by variant
    _pieces: dict[tuple[str, str], Pieces] = field(default_factory=dict)  # by variant and view
    _recordings: dict[str, Profile] = field(default_factory=dict)  # of other ranks, and of first steps

    @property
    def variants(self) -> list[str]:
        """The names of the variants that have been read, as in the report."""
        return [profile.name for profile in self.report.profiles]

    @property
    def about(self) -> str:
        """What ran, and on which device, if a run says so."""
        run = self.report.subject.run
        return sanitize(f"{run.recipe} on {run.device}") if run is not None else ""

    @cached_property
    def outline(self) -> Outline:
        """The report's chapters, with every table."""
        return outline(self.report, fold=True)

    @property
    def is_whole(self) -> bool:
        """Whether every question of the report has been answered: the first screen needs only a few of them."""
        return "outline" in vars(self)

    @cached_property
    def owners(self) -> list[VariantOwners]:
        """The variants whose time could be assigned to lines and modules."""
        return owners_by_variant(self.report)

    def owners_over(self, selection: Selection) -> list[VariantOwners]:
        """The same for the selected steps and view, or for the other view if the selected one cannot be answered."""
        profiles = [self.profile(owner.name) for owner in self.owners]
        view = selection.view if any(profile.means[selection.view] is not None for profile in profiles) else "host"
        steps = selection.of("steps")
        if steps is None:
            return [VariantOwners(profile.name, profile.owner_means, view) for profile in profiles]
        for profile in profiles:
            if (profile.name, steps) not in self._means_of_steps:
                in_range = steps_within(profile, steps)
                answered = {name: in_range & view.known for name, view in profile.views.items()}
                self._means_of_steps[profile.name, steps] = owner_means(profile.ownership, answered)
        return [VariantOwners(profile.name, self._means_of_steps[profile.name, steps], view) for profile in profiles]

    def work(self, profile: Profile) -> Work:
        """The work of a variant, event by event; computed on first use."""
        if profile.name not in self._works:
            self._works[profile.name] = work_of(profile)
        return self._works[profile.name]

    def behind(self, profile: Profile, selection: Selection) -> Work:
        """The stretches of the selected bucket of the host, which add up to it in the selected view; else all work."""
        if not selection.is_of_host:
            return self.work(profile)
        return blamed(profile, self.pieces(profile, selection.view), selection.of("bucket"))

    def pieces(self, profile: Profile, view: str) -> Pieces:
        """The stretches of a variant's steps in a view."""
        key, main = (profile.name, view), profile.attribution
        if key not in self._pieces:
            self._pieces[key] = (
                main.pieces if main.pieces.view == view else pieces(main.views[view], main.segments_of(view))
            )
        return self._pieces[key]

    def profile(self, name: str) -> Profile:
        """The variant of that name, or the other recording that was asked for before."""
        return (
            next((profile for profile in self.report.profiles if profile.name == name), None) or self._recordings[name]
        )

    def of_rank(self, profile: Profile, rank: int) -> Profile | None:
        """What was recorded on a rank, as a variant of its own; None if its events are not here."""
        if rank == profile.captures[0].rank:
            return profile
        recording = profile.per_rank.get(rank)
        return self._recordings.setdefault(recording.name, recording) if recording is not None else None

    def cold(self, profile: Profile) -> Profile | None:
        """The recording of a variant's first steps, as a variant of its own."""
        capture = profile.capture("cold")
        if capture is None or capture.attribution is None:
            return None
        first = replace(profile, name=f"{profile.name}, cold", captures=(replace(capture, window="steady"),))
        return self._recordings.setdefault(first.name, first)

    def profiles_of(self, selection: Selection) -> list[Profile]:
        """The variants to show: all of them, or one and its baseline."""
        name = selection.of("variant")
        if name is None:
            return self.report.profiles
        names = {name, self.report.baselines.get(name, name)}
        return [profile for profile in self.report.profiles if profile.name in names]

    def narrowed(self, selection: Selection) -> "OpenReport":
        """A report of only those variants that the selection names."""
        profiles = self.profiles_of(selection)
        if len(profiles) == len(self.report.profiles):
            return self
        return replace(self, report=self.report.narrowed([profile.name for profile in profiles]))

    def sentences(self, chapter_id: str) -> Iterator[tuple[str, Sentences]]:
        """The sentences of the report about a chapter, each with the variants that it is about."""
        for chapter in self.outline.chapters:
            if chapter.id == chapter_id:
                for entry in chapter.entries:
                    yield from ((entry.subject, block) for block in entry.blocks if isinstance(block, Sentences))

    def tables(self, analysis: str, profiles: Sequence[Profile]) -> dict[str, pa.Table]:
        """The tables of an analysis, by variant; variants for which it has no table are left out."""
        answers = {p.name: answer.table for p, answer in self.report.answers if answer.analysis == analysis}
        return {p.name: answers[p.name] for p in profiles if p.name in answers and answers[p.name].num_rows}

    def against(self, baseline: str) -> "OpenReport":
        """The report with another of its variants as the baseline."""
        turned = replace(self, report=self.report.against(baseline))
        _ = turned.outline
        return turned

    def next_baseline(self) -> str:
        """The variant after the present baseline; after the last one, the first."""
        names = self.variants
        return names[(names.index(self.report.baseline.name) + 1) % len(names)]


def steps_of(profile: Profile, selection: Selection) -> Bools:
    """The steps that figures cover: those selected, or else those that the report counts.

    For a bucket of the host, these are the steps that the selected view can answer.
    """
    step_range, is_of_host = selection.of("steps"), selection.is_of_host
    if step_range is None:
        return profile.answered[selection.view] if is_of_host else profile.counted
    in_range = steps_within(profile, step_range)
    return in_range & profile.views[selection.view].known if is_of_host else in_range


def steps_within(profile: Profile, step_range: tuple[int, int]) -> Bools:
    """The steps with these numbers, including the first and the last."""
    numbers = np.array(profile.trace.steps.number, np.int64)
    in_range: Bools = (numbers >= step_range[0]) & (numbers <= step_range[1])
    return in_range


def has_gpu(profiles: Iterable[Profile]) -> bool:
    """Whether any of the variants ran on a GPU."""
    return any(profile.trace.device == "gpu" for profile in profiles)
