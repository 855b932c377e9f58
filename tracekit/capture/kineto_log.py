"""What the profiler's library said on the terminal, and would be lost in a log."""

import re
from collections import Counter

_LINE = re.compile(r"^(WARNING|ERROR):[\d-]+ [\d:]+ \d+:\d+ [\w.]+:\d+\] (.+)$", re.M)
_OUT_OF_RANGE = re.compile(r"Out-of-range = (\d+)")
# Said at every start, or of no consequence for what a trace holds.
_HARMLESS = re.compile(
    r"Requested GPU activity buffer|Roctracer|^Log file|does not have any .*annotation", re.IGNORECASE
)
_MOST = 5


def warnings(log: str) -> list[str]:
    """Each warning once, with how often it came; and how many records lay outside of the recorded time."""
    said = Counter(text.strip() for _, text in _LINE.findall(log) if not _HARMLESS.search(text))
    lines = [text if times == 1 else f"{text} ({times} times)" for text, times in said.items()]
    lost = sum(map(int, _OUT_OF_RANGE.findall(log)))
    if lost:
        lines.append(f"{lost} GPU records lay outside of the recorded time and were dropped")
    return lines[:_MOST]


def lacks_permission(log: str) -> bool:
    """Whether the driver refused: ERR_NVGPUCTRPERM."""
    # Its hint, printed after every failure, names that error, too.
    return any("INSUFFICIENT_PRIVILEGES" in text for _, text in _LINE.findall(log))
