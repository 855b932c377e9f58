"""What a trace cannot tell: the laws that it breaks, and the time in which nobody knows what a side did. Asked before
any figure is made.
"""

import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING

from tracekit.trace.facts import laws
from tracekit.trace.facts.law import FIGURES, LAWS, SEVERITIES, Breach, Figure, Law, Severity

if TYPE_CHECKING:
    from tracekit.trace.model import Trace

__all__ = [
    "FIGURES",
    "LAWS",
    "SEVERITIES",
    "Breach",
    "Figure",
    "Law",
    "Severity",
    "all_laws",
    "breaches",
    "gravest_first",
]


def breaches(trace: "Trace") -> list[Breach]:
    """The laws that this trace breaks, the gravest first."""
    return gravest_first([breach for law in all_laws() for breach in law.breaches(trace)])


def all_laws() -> list[Law]:
    """Every law, by module."""
    for module in pkgutil.iter_modules(laws.__path__):
        import_module(f"{laws.__name__}.{module.name}")
    return [*LAWS.values()]


def gravest_first(found: list[Breach]) -> list[Breach]:
    """The breaches by severity; in order otherwise."""
    return sorted(found, key=lambda breach: SEVERITIES.index(breach.severity))
