"""One variant and its captures, read and attributed: the input of every analysis."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from tracekit import run as runs
from tracekit.base.intervals import NO_INTS, Bools, Ints, Rows, Union, distinct
from tracekit.base.units import many
from tracekit.engine import Attribution
from tracekit.engine.attribution import StepView
from tracekit.engine.buckets import ON_THE_GPU
from tracekit.engine.cached import known_attribution
from tracekit.errors import TracekitError
from tracekit.lines.means import OwnerMeans, known_means
from tracekit.lines.ownership import Ownership
from tracekit.loading.record import FOLDER
from tracekit.loading.stalls import Loading, read_loading
from tracekit.profile.start_up import ColdStep
from tracekit.run import Window, Workload
from tracekit.statistics.typical_step import StepPattern, step_pattern
from tracekit.trace import Trace
from tracekit.trace.facts import Breach, gravest_first
from tracekit.trace.reading.source import is_address
from tracekit.trace.rereading import Arguments, arguments
from tracekit.trace.steps import in_steps
from tracekit.vocabulary import lines_file
from tracekit.vocabulary.lines_file import Graph

if TYPE_CHECKING:
    from tracekit.profile.calibration import Calibration
    from tracekit.profile.graph_building import GraphBuilder
    from tracekit.profile.growth import Grown

_MAX_KERNELS = 20_000  # kernels; if a step has more, only the longest
LEAST_SHARE = 0.02  # of a step: what takes less is left out of what people read, unless everything is requested
T = TypeVar("T")


class Capture(Struct, frozen=True):
    """A trace and where its time went; `attribution` is None for a trace that no figure needs, which is not read."""

    path: Path
    attribution: Attribution | None
    workload: Workload = "training"
    window: Window = "steady"
    rank: int = 0

    @property
    def trace(self) -> Trace | None:
        """The trace, where it was read."""
        return self.attribution.trace if self.attribution is not None else None

    @property
    def label(self) -> str:
        """`steady`, `cold, rank 1`, `steady, inference`: what distinguishes it from its variant's other captures."""
        parts = [
            self.window,
            self.workload if self.workload != "training" else "",
            f"rank {self.rank}" * (self.rank > 0),
        ]
        return ", ".join(filter(None, parts))


class Sample(Struct, frozen=True, dict=True):
    """The GPU activities that one step launches, in order of their starts."""

    kernels: Ints  # rows
    operators: Ints  # for each, the row of the operator that launched it; −1 for none
    arguments: dict[int, Arguments] = field(default_factory=dict)  # by row, of both

    @cached_property
    def occupancy(self) -> NDArray[np.float64]:
        """For each kernel, the share of the GPU's warps that it keeps occupied, as estimated.

        NaN where that is not a share: some versions of the profiler wrote other numbers.
        """
        shares = self._figures(lambda kernel: kernel.occupancy)
        return np.where((shares >= 0) & (shares <= 1), shares, np.nan)

    @cached_property
    def blocks_per_sm(self) -> NDArray[np.float64]:
        """For each kernel, how many blocks each multiprocessor gets; NaN where it was not recorded."""
        return self._figures(lambda kernel: kernel.blocks_per_sm)

    def _figures(self, figure: Callable[[Arguments], float | None]) -> NDArray[np.float64]:
        call_arguments = map(self.arguments.get, self.kernels.tolist())
        return np.array([figure(call) if call is not None else None for call in call_arguments], np.float64)


def sample(attribution: Attribution, counted: Bools, ownership: Ownership) -> Sample:
    """The kernels of the first counted step that launches any.

    An operator without shapes in the trace gets those of the operator it was matched with in the recording with stacks,
    which a capture puts beside the trace.
    """
    trace = attribution.trace
    step = trace.steps.of(trace.ts_ns[trace.links.launches])
    launching = distinct(step[in_steps(counted, step)])
    if not len(launching):
        return Sample(NO_INTS, NO_INTS)
    in_step = step == launching[0]
    rows, launches = trace.links.activities[in_step], trace.links.launches[in_step]
    if len(rows) > _MAX_KERNELS:
        longest = np.sort(np.argsort(-trace.dur_ns[rows], kind="stable")[:_MAX_KERNELS])
        rows, launches = rows[longest], launches[longest]
    kernels, operators = rows.astype(np.int64), trace.operators.of(launches)
    operator_rows = distinct(operators[operators >= 0])
    call_arguments = arguments(trace, np.concatenate((kernels, operator_rows)))
    unshaped = np.array(
        [row for row in operator_rows.tolist() if row not in call_arguments or call_arguments[row].inputs is None],
        np.int64,
    )
    if len(unshaped) and ownership.detail is not None and ownership.recording is not None:
        matched = ownership.rows_in_recording(unshaped)
        recording_arguments = arguments(ownership.recording.trace, matched[matched >= 0])
        call_arguments |= {
            operator: recording_arguments[row]
            for operator, row in zip(unshaped.tolist(), matched.tolist(), strict=True)
            if row in recording_arguments
        }
    return Sample(kernels, operators, call_arguments)


class Mean(Struct, frozen=True):
    """Means over counted steps, ns; the parts, by bucket, add up to `step_ns`."""

    step_ns: float
    parts: dict[str, float]


class _recorded(cached_property[T]):  # noqa: N801 – a decorator
    """A cached property that no calibration changes: a profile and what `calibrated_by` makes of it share it."""

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> "_recorded[T]": ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...
    def __get__(self, instance: object, owner: type[Any] | None = None) -> Any:
        """From the profile that was not calibrated, where there is one."""
        origin = instance.__dict__.get("origin") if instance is not None else None
        return super().__get__(instance, owner) if origin is None else getattr(origin, str(self.attrname))


class Profile(Struct, frozen=True, dict=True):
    """A named variant: its captures, and what its run says about it (None for a bare trace).

    All figures come from one capture, `capture("steady")`: training, of the rank that is listed first.
    """

    name: str
    captures: tuple[Capture, ...]
    variant: runs.Variant | None = None
    run: runs.Run | None = None
    run_name: str = ""  # empty for a bare trace: variants of one run are compared with each other
    graphs: tuple[Graph, ...] = ()  # compiled ones of a bare trace, with their lines, where a compile log has them
    mine: tuple[str, ...] = ()  # packages that are the user's, where nothing recorded says so
    turns: Mapping[int, Path] = field(default_factory=dict)  # by round, short traces that were taken in turns
    loaders: Mapping[int, Path] = field(default_factory=dict)  # by rank, folders of what the loader's workers recorded
    calibration: "Calibration | None" = None  # with which costs are to be told without the time of recording
    beside: tuple[Breach, ...] = ()  # laws broken by what was given beside the trace
    growth: "tuple[Grown, ...]" = ()  # of a watch's trace: operators that each step calls more often than earlier ones
    without_rare: bool = False  # a variant of its run recorded no rare step: no figure has those of the others

    def calibrated_by(self, calibration: "Calibration | None") -> "Profile":
        """The same, with costs told without the time of recording, if there is an estimate of it."""
        if calibration is None:
            return self
        calibrated = replace(self, calibration=calibration)
        calibrated.__dict__["origin"] = self
        return calibrated

    def capture(self, window: Window, workload: Workload = "training", rank: int | None = None) -> Capture | None:
        """The capture of that window: that of the first rank, unless another one is named."""
        matching = (
            candidate for candidate in self.captures if (candidate.window, candidate.workload) == (window, workload)
        )
        return next((candidate for candidate in matching if rank is None or candidate.rank == rank), None)

    @_recorded
    def per_rank(self) -> dict[int, "Profile"]:
        """A profile for each rank that was recorded, where there are several; nothing for a single one."""
        steady = [capture for capture in self.captures if (capture.window, capture.workload) == ("steady", "training")]
        ranks = [capture for capture in steady if capture.attribution is not None]
        if len(ranks) < 2:
            return {}
        return {
            capture.rank: replace(self, name=f"{self.name} rank {capture.rank}", captures=(capture,))
            for capture in ranks
        }

    @_recorded
    def attribution(self) -> Attribution:
        """Where the time of the main capture went."""
        main = self.capture("steady")
        if main is None or main.attribution is None:
            raise ValueError(f"{self.name}: a profile is made of a steady capture that was read")
        return main.attribution

    @_recorded
    def health(self) -> list[Breach]:
        """The laws that the trace breaks, what was given beside it, and in doubt the traces of other ranks; the gravest
        first."""
        breaches = [*self.trace.health, *self.beside]
        # The grave breaches of other ranks, each law once: of this one, they spoil no figure.
        grave_here = {breach.id for breach in self.trace.health if breach.is_grave}
        broken: dict[str, list[tuple[int, Breach]]] = {}
        for rank, rank_profile in self.per_rank.items():
            for breach in rank_profile.trace.health:
                if breach.is_grave and breach.id not in grave_here:
                    broken.setdefault(breach.id, []).append((rank, breach))
        for (rank, breach), *further in broken.values():
            ranks = f"Rank {rank}" if not further else f"Rank {rank} and {many(len(further), 'more rank')}"
            breaches.append(Breach(breach.id, breach.severity, f"{ranks}: {breach.message}", count=breach.count))
        return gravest_first(breaches)

    @_recorded
    def contract(self) -> Attribution:
        """The same in the steps of docs/attribution.md: the annotated ones or, without any, the recording as one."""
        return as_contracted(self.attribution)

    @property
    def contract_means(self) -> dict[str, Mean | None]:
        """The means as docs/attribution.md has them, with the recording's own end."""
        if self.trace.steps.inferred is not None:
            return self.means
        return {name: mean_of(view, self.answered[name]) for name, view in self.contract.views.items()}

    @property
    def cold(self) -> Attribution | None:
        """Where the time of the first steps went, if they were captured."""
        capture = self.capture("cold")
        return capture.attribution if capture is not None else None

    @property
    def detail_path(self) -> Path | None:
        """The trace with stacks and shapes, if one was taken."""
        capture = self.capture("detail")
        return capture.path if capture is not None else None

    @property
    def loader_folder(self) -> Path | None:
        """The folder of what the workers of its loader recorded; of a bare trace, the one beside it."""
        main = self.capture("steady")
        if main is None or is_address(main.path):
            return None
        beside = main.path.parent / FOLDER if self.run is None else None
        return self.loaders.get(main.rank, beside)

    @_recorded
    def loading(self) -> Loading | None:
        """What the workers of its loader recorded; None if they did not, or the trace does not say when it was."""
        folder, main = self.loader_folder, self.capture("steady")
        if folder is None or main is None or not self.trace.base_ns:
            return None
        return read_loading(folder, main.rank if self.run is None else None)

    @_recorded
    def module_paths(self) -> Mapping[str, str]:
        """The user's name of a module that the trace only numbers: `SAGEConv_3` → `layers.1.conv`; empty if unknown."""
        lines = lines_file.read(self.detail_path or self.trace.path)
        return lines.modules if lines is not None else {}

    @_recorded
    def ownership(self) -> Ownership:
        """The owner of each moment of the main capture: a line of the user's, a library, a module, a phase."""
        script = Path(self.run.script).name if self.run is not None else ""
        mine = [*self.mine, *([script] if script else [])]
        return Ownership.of(self.attribution, self.detail_path, mine, self.graphs)

    @_recorded
    def recording(self) -> "Profile":
        """The recording with stacks and shapes, as a variant of its own; itself if there is no other recording."""
        recording = self.ownership.recording
        if recording is None or recording.trace is self.trace:
            return self
        return replace(self, captures=(Capture(recording.trace.path, known_attribution(recording.trace)),))

    @_recorded
    def owner_means(self) -> OwnerMeans:
        """What each owner costs in a counted step of each view."""
        return known_means(self.ownership, self.answered)

    @_recorded
    def graph_builders(self) -> "tuple[GraphBuilder, ...]":
        """What builds graphs in the loop itself, and when, by the lines that call it."""
        from tracekit.profile.graph_building import graph_builders

        return graph_builders(self)

    @_recorded
    def waits_in_collectives(self) -> Union:
        """When the host only waits in a collective, on a CPU; for a GPU, a bucket has this time."""
        from tracekit.profile.cached import collective_waits

        return collective_waits(self)

    @_recorded
    def parts(self) -> dict[str, float]:
        """What a counted step is made of, ns by bucket, with the time in collectives as communication on a CPU, too."""
        from tracekit.profile.cached import known_parts

        return known_parts(self)

    @_recorded
    def unseen(self) -> Union:
        """The time in steps of which it is unknown what the GPU did: at the ends of the recording, and where the trace
        lacks work."""
        from tracekit.profile.cached import known_unseen

        return known_unseen(self)

    @_recorded
    def known_parts(self) -> dict[str, float]:
        """What a counted step is made of without the time of which it is unknown what the GPU did, ns by bucket."""
        parts = dict(self.parts)
        if 0 < sum(parts.get(key, 0.0) for key in ON_THE_GPU) < sum(parts.values()) and len(self.unseen.starts):
            pieces = self.attribution.pieces
            is_unseen = self.counted[pieces.step] & self.unseen.covers(pieces.start)
            for key in parts:
                parts[key] -= float(pieces.dur[is_unseen & pieces.of(key)].sum()) / self.counted_steps
        return parts

    @property
    def unknown_ns(self) -> float:
        """For how much of a counted step it is unknown what the GPU did."""
        return sum(self.parts.values()) - sum(self.known_parts.values())

    @_recorded
    def sample(self) -> Sample:
        """What was recorded about the kernels of one counted step, beside their times; read on first use.

        Of no kernels where the wall view cannot be answered, because what a step does on the GPU is then unknown.
        """
        return sample(self.attribution, self.answered["wall"], self.ownership)

    @property
    def trace(self) -> Trace:
        """The trace that all figures come from."""
        return self.attribution.trace

    @property
    def views(self) -> dict[str, StepView]:
        """`wall` and `host` of the main capture."""
        return self.attribution.views

    @_recorded
    def answered(self) -> dict[str, Bools]:
        """For each view, the steps that its means cover: those that neither compile nor start anything up, or all if
        none is left, that can be answered; of these, those that are whole, if any is."""
        return self._answered_without(self.unshared)

    @_recorded
    def unshared(self) -> tuple[int, ...]:
        """The indices of the steps that do work which another variant's trace lacks, where one lacks any: no figure has
        them."""
        from tracekit.profile.rare_steps import rare_steps

        return tuple(rare_steps(self, first_answered(self._answered_without(())))) if self.without_rare else ()

    def _answered_without(self, unshared: Sequence[int]) -> dict[str, Bools]:
        in_means = np.full(len(self.trace.steps), self.all_compile) | ~self.attribution.compiles
        in_means[[cold_step.index for cold_step in self.cold_steps]] = False
        in_means[[*unshared]] = False
        is_whole = np.ones(len(in_means), bool) if self.trace.steps.whole is None else self.trace.steps.whole.copy()
        is_whole[[*self.trace.unknown.steps]] = False
        masks = {name: in_means & view.known for name, view in self.views.items()}
        masks = {name: mask & is_whole if (mask & is_whole).any() else mask for name, mask in masks.items()}
        return {name: _whole_periods(mask, self.pattern.period) for name, mask in masks.items()}

    @_recorded
    def pattern(self) -> StepPattern:
        """How its steps differ: as the unprofiled passes show, which are many, or else the trace itself."""
        measured = self.variant.measured if self.variant is not None else None
        if measured is not None and measured.passes:
            return StepPattern(measured.alike, measured.period)
        view = self.attribution.answered_view
        return step_pattern([view.step_ns[view.known & ~self.attribution.compiles].tolist()])

    @property
    def holds_whole_periods(self) -> bool:
        """Whether the means cover every kind of step as often as it happens; so they do where no steps repeat."""
        return self.counted_steps % self.pattern.period == 0

    @_recorded
    def cold_steps(self) -> list[ColdStep]:
        """The first steps that are longer than the others because something starts up in them."""
        from tracekit.profile.cached import known_cold_steps

        return known_cold_steps(self)

    def why_unanswered(self, view: str) -> str:
        """Why that view has no mean, where it has none."""
        return self.views[view].reason or "none of its steps could be timed"

    @_recorded
    def counted(self) -> Bools:
        """The steps that figures per step are means over: those of the wall view or, if it has none, of the host's."""
        return first_answered(self.answered)

    @_recorded
    def counted_activities(self) -> Rows:
        """The rows of the GPU activities that run during a counted step, in order of their starts; none where the wall
        view cannot be answered."""
        parts, wall = [np.zeros(0, np.int32)], self.views["wall"]
        is_counted = self.answered["wall"] & wall.known
        if not is_counted.any():
            return parts[0]
        low = wall.starts_ns[is_counted]
        high = low + wall.step_ns[is_counted]
        for part in self.trace.parts():
            rows = part.rows(part.roles.gpu & part.lasting)
            step = np.searchsorted(low, self.trace.events_at(rows).end_ns, side="left") - 1  # begins before its end
            in_step = (step >= 0) & (self.trace.ts_ns[rows] < high[np.maximum(step, 0)])
            parts.append(rows[in_step].astype(np.int32))
        return np.concatenate(parts)

    def in_counted(self, steps: Ints) -> Bools:
        """Which of these indices of steps are those of counted ones; −1, which stands for no step, is not."""
        return in_steps(self.counted, steps)

    def begins_in_counted(self, rows: Ints | Rows) -> Bools:
        """Which of these events begin in a counted step."""
        return self.in_counted(self.trace.steps.of(self.trace.ts_ns[rows]))

    @property
    def counted_steps(self) -> int:
        """How many steps a figure per step is divided by: at least 1."""
        return max(int(self.counted.sum()), 1)

    @property
    def all_compile(self) -> bool:
        """Whether every step compiles, so that the means are over steps that do."""
        return len(self.trace.steps) > 0 and bool(self.attribution.compiles.all())

    @_recorded
    def means(self) -> dict[str, Mean | None]:
        """For each view, what a step takes; None where that cannot be answered."""
        return {name: mean_of(view, self.answered[name]) for name, view in self.views.items()}

    @_recorded
    def means_of_turns(self) -> dict[int, dict[str, Mean | None]]:
        """The same for each of the short traces that were taken in turns, by round; one that cannot be read, or that is
        shorter than the period of its steps, is left out."""
        means = {}
        for number, path in self.turns.items():
            with suppress(TracekitError):
                attribution = known_attribution(Trace.load(path).as_told())
                turn = replace(self, captures=(Capture(path, attribution),), turns={})
                if turn.holds_whole_periods:
                    means[number] = turn.means
        return means

    @property
    def mean(self) -> Mean | None:
        """What a step takes: its wall time or, where that cannot be answered, the host's; None without either."""
        return self.means["wall"] or self.means["host"]


def first_answered(answered: Mapping[str, Bools]) -> Bools:
    """The steps of the first view that has any; all of them if none has."""
    any_view = next(iter(answered.values()))
    return next((steps for steps in answered.values() if steps.any()), np.ones_like(any_view))


def _whole_periods(steps: Bools, period: int) -> Bools:
    """The last of these steps that are whole periods, one after the other; all of them where no period is whole."""
    bounds = np.flatnonzero(np.diff(np.concatenate(([False], steps, [False]))))
    runs = [(first, end - (end - first) % period) for first, end in bounds.reshape(-1, 2).tolist()]
    first, end = max(runs, key=lambda run: (run[1] - run[0], run), default=(0, 0))
    if period == 1 or first == end:
        return steps
    whole = np.zeros(len(steps), bool)
    whole[first:end] = True
    return whole


def as_contracted(attribution: Attribution) -> Attribution:
    """The attribution in the steps of docs/attribution.md, whatever people are told of."""
    steps = attribution.trace.steps
    is_contracted = steps.inferred is None and steps.own_end[0] == steps.own_end[1]
    return attribution if is_contracted else known_attribution(attribution.trace.as_annotated())


def mean_of(view: StepView, in_mean: Bools) -> Mean | None:
    """The mean over these steps of a view; None where there are none."""
    if not in_mean.any():
        return None
    rows = view.totals[in_mean]
    parts = (rows.sum(axis=0) / len(rows)).tolist()
    return Mean(float(view.step_ns[in_mean].mean()), dict(zip(view.keys, parts, strict=True)))
