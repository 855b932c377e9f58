"""Limits by variant and metric, written by hand in TOML, and whether each variant stays within them."""

import tomllib
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tracekit.errors.asking import BudgetError
from tracekit.errors.reading import NoSuchFileError, UnreadableFileError
from tracekit.gate.metrics import METRICS
from tracekit.gate.rows import Demand, Row, judged, unanswered
from tracekit.profile import Subject

_KEYS = ("allow_unanswered", "variant")


class Budget(Struct, frozen=True):
    """Upper limits, by variant and metric."""

    limits: dict[str, dict[str, float]]
    allow_unanswered: frozenset[str] = frozenset()


def read_budget(path: Path) -> Budget:
    """Read a budget. Raises NoSuchFileError, UnreadableFileError or BudgetError."""
    try:
        with path.open("rb") as file:
            content = tomllib.load(file)
    except FileNotFoundError:
        raise NoSuchFileError(path) from None
    except OSError as error:
        raise UnreadableFileError(path, error.strerror or "failed") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BudgetError(path, f"it is not TOML ({error})") from None
    for key in content:
        if key not in _KEYS:
            raise BudgetError(path, f"{key!r} is not a key of a budget: it has [variant.NAME] and allow_unanswered")
    variants = content.get("variant")
    if not isinstance(variants, dict) or not variants:
        raise BudgetError(path, "it limits nothing: write [variant.NAME] and below it, for example, wall_ms = 12.5")
    limits = {name: _limits(path, name, table) for name, table in variants.items()}
    allowed = content.get("allow_unanswered", [])
    if not isinstance(allowed, list) or not all(isinstance(name, str) for name in allowed):
        raise BudgetError(path, 'allow_unanswered is not a list of metrics: write allow_unanswered = ["syncs"]')
    for metric in allowed:
        _check_metric(path, metric)
    return Budget(limits, frozenset(allowed))


def _limits(path: Path, variant: str, table: Any) -> dict[str, float]:
    if not isinstance(table, dict):
        raise BudgetError(path, f"variant.{variant} is not a table: write [variant.{variant}]")
    for metric, limit in table.items():
        _check_metric(path, metric)
        if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit >= 0:
            raise BudgetError(path, f"{metric} of {variant} is not a number of at least 0")
    return {metric: float(limit) for metric, limit in table.items()}


def _check_metric(path: Path, metric: str) -> None:
    if metric not in METRICS:
        raise BudgetError(path, f"{metric!r} is not a metric. Available: {', '.join(METRICS)}")


def within(subject: Subject, budget: Budget, demand: Demand | None = None) -> list[Row]:
    """A row for each limit of the budget, which may also allow metrics to stay unknown."""
    demand = demand or Demand()
    demand = replace(demand, allow=demand.allow | budget.allow_unanswered)
    members = {member.name: member for member in subject.known}
    rows = []
    for variant, limits in budget.limits.items():
        member = members.get(variant)
        for metric, limit in limits.items():
            if member is None:
                why = f"there is no such variant, only {', '.join(members)}"
                rows.append(unanswered(variant, metric, limit, why, demand))
            else:
                rows.append(judged(variant, metric, limit, METRICS[metric](member), demand, reference=limit))
    return rows
