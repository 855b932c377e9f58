"""The report's sections, one question per file. A new file here is found without being registered elsewhere."""

import pkgutil
from importlib import import_module

from tracekit.report.model import Report
from tracekit.report.registry import producers
from tracekit.report.section import Section

_STAGES = ("lead", "body", "end")


def all_sections(report: Report) -> list[Section]:
    """The sections of every producer, the most valuable first; those of one question are together.

    Raises ValueError where a section and an analysis, or two sections, have one name: they would appear as one.
    """
    for module in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    sections = [section for make in producers(of_study=report.subject.study is not None) for section in make(report)]
    worth: dict[str, float] = {}
    titles: dict[str, str] = {}
    for section in sections:
        if titles.setdefault(section.id, section.title) != section.title:
            raise ValueError(
                f"two questions are called {section.id!r}, {titles[section.id]!r} and {section.title!r}: rename one"
            )
        worth[section.id] = max(worth.get(section.id, 0.0), section.worth)
    return sorted(sections, key=lambda each: _order(each, worth[each.id]))


def _order(section: Section, worth: float) -> tuple[int, float, int, str]:
    """The first and the last sections have a fixed order; only those in between are ordered by worth."""
    return _STAGES.index(section.stage), -worth if section.stage == "body" else 0.0, section.rank, section.id
