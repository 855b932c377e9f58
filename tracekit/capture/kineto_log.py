"""The messages that the profiler's library prints on the terminal, where they would otherwise be lost."""

import os
import re

_LEVEL = "KINETO_LOG_LEVEL"  # unless this is set, PyTorch silences everything but the library's errors
_WARNINGS = "2"
_CHATTER = re.compile(r"^(?:VERBOSE|INFO|STAGE|USDT):[\d-]+ [\d:]+ \d+:\d+ [\w.]+:\d+\] .*\n?", re.M)
_LINE = re.compile(r"^(WARNING|ERROR):[\d-]+ [\d:]+ \d+:\d+ [\w.]+:\d+\] (.+)$", re.M)
# Messages that appear at every start, or do not affect the content of a trace.
_HARMLESS = re.compile(
    # The fifth is about calls of Python in threads, which are assigned to the process that they ran in; the last one is
    # CUDA's build on a machine that has no driver, or no GPU.
    r"Requested GPU activity buffer|Roctracer|^Log file|does not have any .*annotation|CPU activity with pid 0"
    r"|gpuGetDeviceCount failed with code (?:35|100)$",
    re.IGNORECASE,
)
_MOST = 5
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+(?:\.\d+)?", re.IGNORECASE)
_DETAIL = re.compile(r"\s*\bName: .* Device: -?\d+ (?:Stream|Queue): .*$")  # the activity that a warning is about


def loud() -> dict[str, str]:
    """The environment in which the library prints its warnings; a level that the user chose is respected."""
    return {_LEVEL: os.environ.get(_LEVEL) or _WARNINGS}


def without_chatter(log: str) -> str:
    """The log without the messages of every start and stop, which do not help people."""
    return _CHATTER.sub("", log)


def warnings(log: str) -> list[str]:
    """Each warning once, with how often it occurred; those that differ only in their numbers are the same.

    The number of records dropped as "out of range" is left out, because it includes all those of the warm-up.
    """
    texts = [_DETAIL.sub("", text.strip()) for _, text in _LINE.findall(log) if not _HARMLESS.search(text)]
    alike: dict[str, list[str]] = {}
    for text in filter(None, texts):
        alike.setdefault(_NUMBER.sub("…", text), []).append(text)
    counted = (
        (text if len({*occurrences}) > 1 else occurrences[0], len(occurrences)) for text, occurrences in alike.items()
    )
    return [text if times == 1 else f"{text} ({times} times)" for text, times in counted][:_MOST]


def lacks_permission(log: str) -> bool:
    """Whether the driver denied access: ERR_NVGPUCTRPERM."""
    # Its hint, printed after every failure, names that error, too.
    return any("INSUFFICIENT_PRIVILEGES" in text for _, text in _LINE.findall(log))
