"""A section: the answer to one question as blocks, with what decides its position in the report; and the producers of
sections, registered with their scope.

    @of_variant("idle", "Idle", rank=60)
    def idle(report: Report, profile: Profile) -> Contents | None: ...

A producer that has nothing to say returns None.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import pyarrow as pa
from msgspec import Struct, field

from tracekit.analyses import Status
from tracekit.base.registry import Registry
from tracekit.profile import LEAST_SHARE, Capture, Profile
from tracekit.profile.compare import Comparison
from tracekit.report.blocks import Block, Table
from tracekit.study import Study
from tracekit.watched.reading import Watched

if TYPE_CHECKING:
    from tracekit.report.model import Report


Scope = Literal["trace", "variant", "comparison", "run"]
Kind = Literal["run", "study", "watch"]  # of a report: of runs and traces, of a study, of a watch
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
AskWatch = Callable[["Report", Watched], Contents | None]
AskRows = Callable[[Study], Iterable[Mapping[str, Any]]]
AskVariant = Callable[["Report", Profile], Contents | None]
AskComparison = Callable[["Report", Comparison], Contents | None]
AskTrace = Callable[["Report", Profile, Capture], Contents | None]
Make = Callable[["Report"], Iterator[Section]]
_Ask = TypeVar("_Ask", bound=Callable[..., Contents | None])
# What questions are asked about: the arguments after the report, and the labels of the section. The scope of those
# about a study or a watch is the run.
_Subject = tuple[tuple[Any, ...], dict[str, str]]
_SUBJECTS: dict[Scope | Kind, Callable[["Report"], Iterable[_Subject]]] = {
    "run": lambda report: [((), {})],
    "study": lambda report: [((report.subject.study,), {})],
    "watch": lambda report: [((report.subject.watch,), {})],
    "variant": lambda report: (((profile,), {"variant": profile.name}) for profile in report.profiles),
    "comparison": lambda report: (
        ((entry,), {"variant": entry.variant, "baseline": entry.baseline}) for entry in report.comparisons
    ),
    "trace": lambda report: (
        ((profile, capture), {"variant": profile.name, "trace": capture.label})
        for profile in report.profiles
        for capture in profile.captures
        if capture.attribution is not None
    ),
}


class Producer(Struct, frozen=True):
    """What makes the sections of a question, and in which reports the question is asked."""

    make: Make
    kinds: frozenset[Kind]


_registered = Registry[Producer]("producers of sections")


def producers(*kinds: Kind) -> list[Make]:
    """All producers for reports of these kinds; each yields its sections."""
    return [producer.make for producer in _registered.values() if producer.kinds.intersection(kinds)]


def unregister(name: str) -> None:
    """Remove a producer."""
    _registered.unregister(name)


def made_by(name: str) -> Callable[[Make], Make]:
    """Register a function that yields whole sections: it connects another registry to this one."""

    def register(make: Make) -> Make:
        _registered.register(name, Producer(make, frozenset(("run",))), make)
        return make

    return register


def _asked(
    about: Scope | Kind, name: str, title: str, rank: int, stage: Stage, *, studies: bool = False
) -> Callable[[_Ask], _Ask]:
    """Register a question, which has a section about each of its subjects, unless it has nothing to say about it."""
    scope: Scope = "run" if about == "study" or about == "watch" else about  # noqa: PLR1714 - mypy narrows it so
    kind: Kind = about if about == "study" or about == "watch" else "run"  # noqa: PLR1714

    def register(ask: _Ask) -> _Ask:
        def make(report: "Report") -> Iterator[Section]:
            for arguments, labels in _SUBJECTS[about](report):
                if (contents := ask(report, *arguments)) is not None:
                    yield Section(name, title, scope, stage, rank, contents, **labels)

        _registered.register(name, Producer(make, frozenset((kind, "study") if studies else (kind,))), ask)
        return ask

    return register


def of_run(
    name: str, title: str, rank: int = 1000, stage: Stage = "body", *, studies: bool = False
) -> Callable[[AskRun], AskRun]:
    """Register a question that is answered once per report; with `studies`, in the report of a study, too."""
    return _asked("run", name, title, rank, stage, studies=studies)


def of_study(name: str, title: str, rank: int = 1000, stage: Stage = "body") -> Callable[[AskStudy], AskStudy]:
    """Register a question about a study, which gets no other sections."""
    return _asked("study", name, title, rank, stage)


def of_watch(name: str, title: str, rank: int = 1000, stage: Stage = "body") -> Callable[[AskWatch], AskWatch]:
    """Register a question about a watch, whose traces get the sections of traces, too."""
    return _asked("watch", name, title, rank, stage)


def rows_of_study(
    name: str, title: str, schema: pa.Schema, rank: int, *, table: str = "", detail: bool = True
) -> Callable[[AskRows], AskStudy]:
    """Register a question about a study that is answered by a table, whose rows the function yields: if there are none,
    it has nothing to say. The table has the name of the question, unless another is given."""

    def register(ask: AskRows) -> AskStudy:
        @of_study(name, title, rank)
        @wraps(ask)
        def in_a_table(_: "Report", study: Study) -> Contents | None:
            rows = [*ask(study)]
            return Contents((Table.of(table or name, rows, schema, detail=detail),)) if rows else None

        return in_a_table

    return register


def of_variant(name: str, title: str, rank: int = 1000, stage: Stage = "body") -> Callable[[AskVariant], AskVariant]:
    """Register a question about every variant."""
    return _asked("variant", name, title, rank, stage)


def of_comparison(
    name: str, title: str, rank: int = 1000, stage: Stage = "body"
) -> Callable[[AskComparison], AskComparison]:
    """Register a question about every variant that has a baseline."""
    return _asked("comparison", name, title, rank, stage)


def of_trace(name: str, title: str, rank: int = 1000, stage: Stage = "body") -> Callable[[AskTrace], AskTrace]:
    """Register a question about every capture that was read: cold and steady, of every rank."""
    return _asked("trace", name, title, rank, stage)
