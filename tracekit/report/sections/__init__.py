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
    return sorted(sections, key=lambda each: (_STAGES.index(each.stage), -worth[each.id], each.rank, each.id))
