"""The records of the compiler's log."""

from collections import defaultdict
from dataclasses import dataclass, field


@dataclass
class Span:
    """One span of the compiler's log, unix ns."""

    name: str
    id: str
    thread: int
    start_ns: int
    end_ns: int = 0
    children_ns: int = 0
    phases: dict[str, int] = field(default_factory=lambda: defaultdict(int))  # own time by name


@dataclass(frozen=True)
class LogEntry:
    """A message of the compiler, and the compilation that it is about."""

    id: str
    t_ns: int
    text: str


@dataclass(frozen=True)
class LimitHit:
    """Dynamo's warning that it no longer compiles a function."""

    id: str
    t_ns: int
    setting: str
    name: str
    file: str
    line: int
    reason: str
