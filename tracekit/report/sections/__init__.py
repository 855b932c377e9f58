"""The report's sections, those of related questions in one file. A new file here is found without being registered
elsewhere; one whose name begins with `study` or `watch` only where a report is of that kind."""

import pkgutil
from importlib import import_module

from msgspec.structs import replace

from tracekit.base.registry import import_plug_ins
from tracekit.profile import Subject
from tracekit.profile.recording_words import has_steps, of_the_recording
from tracekit.report.blocks import of_the_recording_in
from tracekit.report.model import Report
from tracekit.report.section import Kind, Section, producers

_STAGES = ("lead", "body", "end")


def all_sections(report: Report) -> list[Section]:
    """The sections of every producer, the most valuable first; those of one question are together.

    Raises ValueError where a section and an analysis, or two sections, have one name: they would appear as one.
    """
    kinds = _kinds(report.subject)
    for module in pkgutil.iter_modules(__path__):
        kind = module.name.partition("_")[0]
        if kind in kinds or kind not in ("study", "watch"):
            import_module(f"{__name__}.{module.name}")
    import_plug_ins("tracekit.questions")
    makers = producers(*kinds)
    sections = [_reworded(report, section) for make in makers for section in make(report)]
    worth: dict[str, float] = {}
    titles: dict[str, str] = {}
    for section in sections:
        if titles.setdefault(section.id, section.title) != section.title:
            raise ValueError(
                f"two questions are called {section.id!r}, {titles[section.id]!r} and {section.title!r}: rename one"
            )
        worth[section.id] = max(worth.get(section.id, 0.0), section.worth)
    # The first and the last sections have a fixed order; only those in between are ordered by worth.
    return sorted(
        sections,
        key=lambda section: (
            _STAGES.index(section.stage),
            -worth[section.id] if section.stage == "body" else 0.0,
            section.rank,
            section.id,
        ),
    )


def _kinds(subject: Subject) -> tuple[Kind, ...]:
    if subject.study is not None:
        return ("study",)
    if subject.watch is not None:
        return ("watch", "run") if subject.profiles else ("watch",)
    return ("run",)


def _reworded(report: Report, section: Section) -> Section:
    """The section in words that fit what it is about: a recording may have no steps."""
    about = [profile for profile in report.profiles if section.variant in (None, profile.name)]
    if not about or any(map(has_steps, about)):
        return section
    blocks = tuple(map(of_the_recording_in, section.blocks))
    title = section.title if any(map(has_steps, report.profiles)) else of_the_recording(section.title)
    return replace(section, title=title, contents=replace(section.contents, blocks=blocks))
