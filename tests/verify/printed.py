"""What a script printed: where it ran, and each step's loss and time."""

import json
import re
from dataclasses import dataclass, field
from typing import Any

_STEP = re.compile(r"\bstep \d+  loss (\S+)  (\S+) ms  (\S+) ms cpu$", re.M)
_HERE = re.compile(r"\{\"path\": .*\}$", re.M)


@dataclass(frozen=True)
class Printed:
    """`losses` are texts, because two runs of the same training print the same digits."""

    here: dict[str, Any] = field(default_factory=dict)  # sys.path and the like
    losses: list[str] = field(default_factory=list)
    times_ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)  # processor time of this process, whatever else the machine does


def read(text: str) -> Printed:
    """The lines of steplog.StepLog, whatever else is between them."""
    steps, here = _STEP.findall(text), _HERE.search(text)
    losses, times, cpu = [*zip(*steps, strict=True)] or ((), (), ())
    return Printed(json.loads(here[0]) if here else {}, [*losses], [*map(float, times)], [*map(float, cpu)])
