"""What a trace cannot tell: the laws that it breaks, and the time in which nobody knows what a side did. Asked before
any figure is made.
"""

import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING

from tracekit.trace.facts import laws
from tracekit.trace.facts.law import FIGURES, LAWS, SEVERITIES, Breach, Figure, Severity

if TYPE_CHECKING:
    from tracekit.trace.model import Trace

__all__ = ["FIGURES", "LAWS", "SEVERITIES", "Breach", "Figure", "Severity", "breaches", "gravest_first"]


def breaches(trace: "Trace") -> list[Breach]:
    """The laws that this trace breaks, the gravest first."""
    for module in pkgutil.iter_modules(laws.__path__):
        import_module(f"{laws.__name__}.{module.name}")
    found = [breach for each in LAWS.values() for breach in each.breaches(trace)]
    return gravest_first(found)


def gravest_first(found: list[Breach]) -> list[Breach]:
    """The breaches by severity; in order otherwise."""
    return sorted(found, key=lambda breach: SEVERITIES.index(breach.severity))
