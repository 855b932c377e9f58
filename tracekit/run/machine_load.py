"""Was the machine busy with other work while something was measured?"""

from collections.abc import Mapping
from typing import Any

_OWN_LOAD = 1.5  # load in cores that the passes themselves cause


def was_busy(environment: Mapping[str, Any], before: float | None, during: float | None = None) -> bool:
    """Whether more processes wanted to run than there are cores; False if either is unknown.

    `before` is the load average before anything was measured, `during` the one between the passes, which add to it.
    """
    cores = environment.get("cpus_usable")
    if not isinstance(cores, int) or not isinstance(before, int | float):
        return False
    return before > cores or (during is not None and during > _OWN_LOAD * cores)


def crowding(load: float | None, cores: int | None) -> float:
    """How many times as many processes wanted to run as the passes themselves cause; 1 if not more, or if unknown."""
    return max(1.0, load / (_OWN_LOAD * cores)) if load is not None and cores else 1.0
