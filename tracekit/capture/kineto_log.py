"""What the profiler's library prints on the terminal, where it would otherwise be lost."""

import os
import re
from collections import Counter

_LEVEL = "KINETO_LOG_LEVEL"  # PyTorch silences the library, all but errors, unless this is set
_WARNINGS = "2"
_CHATTER = re.compile(r"^(?:VERBOSE|INFO|STAGE|USDT):[\d-]+ [\d:]+ \d+:\d+ [\w.]+:\d+\] .*\n?", re.M)
_LINE = re.compile(r"^(WARNING|ERROR):[\d-]+ [\d:]+ \d+:\d+ [\w.]+:\d+\] (.+)$", re.M)
# Said at every start, or of no consequence for what a trace holds.
_HARMLESS = re.compile(
    # The last is about calls of Python in threads, which are given the process that they ran in.
    r"Requested GPU activity buffer|Roctracer|^Log file|does not have any .*annotation|CPU activity with pid 0",
    re.IGNORECASE,
)
_MOST = 5


def loud() -> dict[str, str]:
    """The environment in which it says what it has to say; whoever has chosen a level keeps it."""
    return {_LEVEL: os.environ.get(_LEVEL) or _WARNINGS}


def without_chatter(log: str) -> str:
    """The log for people: what it says at every start and stop is of no use."""
    return _CHATTER.sub("", log)


def warnings(log: str) -> list[str]:
    """Each warning once, with how often it came.

    Not how many records it dropped as "out of range": all those of the warm-up are among them.
    """
    counts = Counter(text.strip() for _, text in _LINE.findall(log) if not _HARMLESS.search(text))
    return [text if times == 1 else f"{text} ({times} times)" for text, times in counts.items()][:_MOST]


def lacks_permission(log: str) -> bool:
    """Whether the driver refused: ERR_NVGPUCTRPERM."""
    # Its hint, printed after every failure, names that error, too.
    return any("INSUFFICIENT_PRIVILEGES" in text for _, text in _LINE.findall(log))
