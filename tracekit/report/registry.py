"""The producers of sections, registered with their scope.

    @of_variant("idle", "Idle", rank=60)
    def idle(report: Report, profile: Profile) -> Contents | None: ...

A producer that has nothing to say returns None.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tracekit.compare import Comparison
from tracekit.profile import Capture, Profile
from tracekit.report.section import Contents, Section, Stage
from tracekit.study import Study

if TYPE_CHECKING:
    from tracekit.report.model import Report

AskRun = Callable[["Report"], Contents | None]
AskStudy = Callable[["Report", Study], Contents | None]
AskVariant = Callable[["Report", Profile], Contents | None]
AskComparison = Callable[["Report", Comparison], Contents | None]
AskTrace = Callable[["Report", Profile, Capture], Contents | None]
Make = Callable[["Report"], Iterator[Section]]


_registered: dict[str, Make] = {}
_of_studies: set[str] = set()
_of_both: set[str] = set()


def producers(of_study: bool = False) -> list[Make]:
    """All producers for runs and traces, or those for studies; each yields its sections."""
    return [make for name, make in _registered.items() if name in _of_both or (name in _of_studies) == of_study]


def _register(name: str, make: Make) -> None:
    """Raises ValueError where another producer has that name: it would never be asked again."""
    if name in _registered:
        raise ValueError(f"two producers of sections are called {name!r}: unregister one, or rename it")
    _registered[name] = make


def unregister(name: str) -> None:
    """Remove a producer."""
    _registered.pop(name, None)


def made_by(name: str) -> Callable[[Make], Make]:
    """Register a function that yields whole sections: it connects another registry to this one."""

    def register(make: Make) -> Make:
        _register(name, make)
        return make

    return register


def of_run(
    name: str, title: str, rank: int = 1000, stage: Stage = "body", *, studies: bool = False
) -> Callable[[AskRun], AskRun]:
    """Register a question that is asked once per report; with `studies` of the report of a study, too."""

    def register(ask: AskRun) -> AskRun:
        def make(report: "Report") -> Iterator[Section]:
            if (contents := ask(report)) is not None:
                yield Section(name, title, "run", stage, rank, contents)

        _register(name, make)
        if studies:
            _of_both.add(name)
        return ask

    return register


def of_study(name: str, title: str, rank: int = 1000, stage: Stage = "body") -> Callable[[AskStudy], AskStudy]:
    """Register a question that is asked of a study, which gets no other sections."""

    def register(ask: AskStudy) -> AskStudy:
        def asked(report: "Report") -> Contents | None:
            assert report.subject.study is not None
            return ask(report, report.subject.study)

        of_run(name, title, rank, stage)(asked)
        _of_studies.add(name)
        return ask

    return register


def of_variant(name: str, title: str, rank: int = 1000, stage: Stage = "body") -> Callable[[AskVariant], AskVariant]:
    """Register a question that is asked of every variant."""

    def register(ask: AskVariant) -> AskVariant:
        def make(report: "Report") -> Iterator[Section]:
            for profile in report.profiles:
                if (contents := ask(report, profile)) is not None:
                    yield Section(name, title, "variant", stage, rank, contents, variant=profile.name)

        _register(name, make)
        return ask

    return register


def of_comparison(
    name: str, title: str, rank: int = 1000, stage: Stage = "body"
) -> Callable[[AskComparison], AskComparison]:
    """Register a question that is asked of every variant that has a baseline."""

    def register(ask: AskComparison) -> AskComparison:
        def make(report: "Report") -> Iterator[Section]:
            for entry in report.comparisons:
                if (contents := ask(report, entry)) is not None:
                    of = {"variant": entry.variant, "baseline": entry.baseline}
                    yield Section(name, title, "comparison", stage, rank, contents, **of)

        _register(name, make)
        return ask

    return register


def of_trace(name: str, title: str, rank: int = 1000, stage: Stage = "body") -> Callable[[AskTrace], AskTrace]:
    """Register a question that is asked of every capture that was read: cold and steady, of every rank."""

    def register(ask: AskTrace) -> AskTrace:
        def make(report: "Report") -> Iterator[Section]:
            for profile in report.profiles:
                for capture in profile.captures:
                    if capture.cost is not None and (contents := ask(report, profile, capture)) is not None:
                        of = {"variant": profile.name, "trace": capture.label}
                        yield Section(name, title, "trace", stage, rank, contents, **of)

        _register(name, make)
        return ask

    return register
