"""A section: the answer to one question as blocks, with what decides its position in the report; and the producers of
sections, registered with their scope.

    @of_variant("idle", "Idle", rank=60)
    def idle(report: Report, profile: Profile) -> Contents | None: ...

A producer that has nothing to say returns None.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
from msgspec import Struct, field

from tracekit.analyses import Status
from tracekit.base.registry import Registry
from tracekit.profile import LEAST_SHARE, Capture, Profile
from tracekit.profile.compare import Comparison
from tracekit.report.blocks import Block
from tracekit.study import Study

if TYPE_CHECKING:
    from tracekit.report.model import Report


Scope = Literal["trace", "variant", "comparison", "run"]
# The place of a section: before all others, among those ordered by worth, or after them.
Stage = Literal["lead", "body", "end"]


class Contents(Struct, frozen=True):
    """What a producer returns for one subject.

    `worth` is the share of a step that it is about, None where that is unknown. `tables` are exported beside those in
    the blocks, and made on demand.
    """

    blocks: tuple[Block, ...]
    worth: float | None = None
    status: Status = "answered"
    tables: Mapping[str, Callable[[], pa.Table]] = field(default_factory=dict)


class Section(Struct, frozen=True):
    """What a producer returned, and its subject: a variant, one of its traces, a comparison, or the whole run."""

    id: str
    title: str
    scope: Scope
    stage: Stage
    rank: int
    contents: Contents
    variant: str | None = None
    trace: str | None = None  # of the scope `trace`: its window, with workload and rank where they matter
    baseline: str | None = None  # of the scope `comparison`

    @property
    def subject(self) -> str:
        """The variant, trace or pair of variants that the section is about, as a label; empty for the whole run."""
        if self.scope == "trace":
            return f"{self.variant}, {self.trace}"
        if self.scope == "comparison":
            return f"{self.variant} against {self.baseline}"
        return self.variant or ""

    @property
    def worth(self) -> float:
        """The share of a step that the section explains; where that is unknown, just enough to have a table shown."""
        return LEAST_SHARE if self.contents.worth is None else self.contents.worth

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks that faces draw."""
        return self.contents.blocks


AskRun = Callable[["Report"], Contents | None]
AskStudy = Callable[["Report", Study], Contents | None]
AskVariant = Callable[["Report", Profile], Contents | None]
AskComparison = Callable[["Report", Comparison], Contents | None]
AskTrace = Callable[["Report", Profile, Capture], Contents | None]
Make = Callable[["Report"], Iterator[Section]]


class Producer(Struct, frozen=True):
    """What makes the sections of a question, and in which reports the question is asked."""

    make: Make
    of_runs: bool  # of runs and traces
    of_studies: bool


_registered = Registry[Producer]("producers of sections")


def producers(of_study: bool = False) -> list[Make]:
    """All producers for runs and traces, or those for studies; each yields its sections."""
    return [
        producer.make for producer in _registered.values() if (producer.of_studies if of_study else producer.of_runs)
    ]


def _register(name: str, make: Make, ask: Callable[..., Any], *, runs: bool = True, studies: bool = False) -> None:
    _registered.register(name, Producer(make, runs, studies), ask)


def unregister(name: str) -> None:
    """Remove a producer."""
    _registered.unregister(name)


def made_by(name: str) -> Callable[[Make], Make]:
    """Register a function that yields whole sections: it connects another registry to this one."""

    def register(make: Make) -> Make:
        _register(name, make, make)
        return make

    return register


def of_run(
    name: str, title: str, rank: int = 1000, stage: Stage = "body", *, studies: bool = False
) -> Callable[[AskRun], AskRun]:
    """Register a question that is answered once per report; with `studies`, in the report of a study, too."""

    def register(ask: AskRun) -> AskRun:
        def make(report: "Report") -> Iterator[Section]:
            if (contents := ask(report)) is not None:
                yield Section(name, title, "run", stage, rank, contents)

        _register(name, make, ask, studies=studies)
        return ask

    return register


def of_study(name: str, title: str, rank: int = 1000, stage: Stage = "body") -> Callable[[AskStudy], AskStudy]:
    """Register a question about a study, which gets no other sections."""

    def register(ask: AskStudy) -> AskStudy:
        def make(report: "Report") -> Iterator[Section]:
            assert report.subject.study is not None
            if (contents := ask(report, report.subject.study)) is not None:
                yield Section(name, title, "run", stage, rank, contents)

        _register(name, make, ask, runs=False, studies=True)
        return ask

    return register


def of_variant(name: str, title: str, rank: int = 1000, stage: Stage = "body") -> Callable[[AskVariant], AskVariant]:
    """Register a question about every variant."""

    def register(ask: AskVariant) -> AskVariant:
        def make(report: "Report") -> Iterator[Section]:
            for profile in report.profiles:
                if (contents := ask(report, profile)) is not None:
                    yield Section(name, title, "variant", stage, rank, contents, variant=profile.name)

        _register(name, make, ask)
        return ask

    return register


def of_comparison(
    name: str, title: str, rank: int = 1000, stage: Stage = "body"
) -> Callable[[AskComparison], AskComparison]:
    """Register a question about every variant that has a baseline."""

    def register(ask: AskComparison) -> AskComparison:
        def make(report: "Report") -> Iterator[Section]:
            for entry in report.comparisons:
                if (contents := ask(report, entry)) is not None:
                    labels = {"variant": entry.variant, "baseline": entry.baseline}
                    yield Section(name, title, "comparison", stage, rank, contents, **labels)

        _register(name, make, ask)
        return ask

    return register


def of_trace(name: str, title: str, rank: int = 1000, stage: Stage = "body") -> Callable[[AskTrace], AskTrace]:
    """Register a question about every capture that was read: cold and steady, of every rank."""

    def register(ask: AskTrace) -> AskTrace:
        def make(report: "Report") -> Iterator[Section]:
            for profile in report.profiles:
                for capture in profile.captures:
                    if capture.attribution is not None and (contents := ask(report, profile, capture)) is not None:
                        labels = {"variant": profile.name, "trace": capture.label}
                        yield Section(name, title, "trace", stage, rank, contents, **labels)

        _register(name, make, ask)
        return ask

    return register
