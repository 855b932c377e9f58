"""The report's sections, one question a file. A new one is a file here: it is found by itself."""

import pkgutil
from importlib import import_module

from tracekit.report.model import Report
from tracekit.report.registry import producers
from tracekit.report.section import Section

_STAGES = ("lead", "body", "end")


def all_sections(report: Report) -> list[Section]:
    """What every producer has to say, most valuable first; sections of one question stand together."""
    for module in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    sections = [section for make in producers() for section in make(report)]
    worth: dict[str, float] = {}
    for section in sections:
        worth[section.id] = max(worth.get(section.id, 0.0), section.worth)
    return sorted(sections, key=lambda each: _order(each, worth[each.id]))


def _order(section: Section, worth: float) -> tuple[int, float, int, str]:
    """Only between the first and the last sections worth decides; they have their order."""
    return _STAGES.index(section.stage), -worth if section.stage == "body" else 0.0, section.rank, section.id
