"""Does a trace hold the GPU work of its launches? Some profilers lose the first kernels of a session, or all, and print
the reason on the terminal, where it would otherwise be lost.
"""

import gzip
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tracekit.capture.job import PassResult
from tracekit.run import WINDOWS, Traces, Window
from tracekit.vocabulary import event_names

_LAUNCH = event_names.call(event_names.KERNEL_LAUNCH)
_TOO_MANY = 0.05  # of the launches: losing one or two at either end of a window does no harm
_LEVEL = "KINETO_LOG_LEVEL"  # unless this is set, PyTorch silences everything but the library's errors
_WARNINGS, _SILENT = "2", "6"
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
_MAX_MESSAGES = 5
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+(?:\.\d+)?", re.IGNORECASE)
_DETAIL = re.compile(r"\s*\bName: .* Device: -?\d+ (?:Stream|Queue): .*$")  # the activity that a warning is about


class _Args(msgspec.Struct):
    correlation: int | None = None


class _Event(msgspec.Struct):
    ph: str = ""
    cat: str = ""
    name: str = ""
    args: _Args | None = None


class _Trace(msgspec.Struct):
    traceEvents: list[_Event] = []  # noqa: N815


class GpuSide(Struct, frozen=True):
    """The number of launches of kernels and graphs in a trace, and of those without an activity."""

    launches: int
    lost: int

    @property
    def incomplete(self) -> bool:
        """Whether so much is missing that the GPU seems idle while it worked."""
        return self.lost > _TOO_MANY * self.launches

    def sentence(self) -> str:
        """A sentence for readers of the run."""
        if self.lost == self.launches:
            return f"its trace holds {self.launches} launches, but no kernel: tracekit doctor shows possible causes"
        return f"for {self.lost} of {self.launches} launches the trace holds no kernel: the profiler lost them"


def gpu_side(path: Path) -> GpuSide | None:
    """The launches of a trace file, matched with GPU activities by their correlation; None if it cannot be read."""
    try:
        with gzip.open(path) as file:
            events = msgspec.json.decode(file.read(), type=_Trace).traceEvents
    except (OSError, EOFError, msgspec.DecodeError):
        return None  # the reader of traces repairs what it can, and reports what it could not
    launched: set[int] = set()
    executed: set[int] = set()
    for event in events:
        number = event.args.correlation if event.args else None
        if event.ph != "X" or number is None:
            continue
        if event.cat in event_names.GPU_CATEGORIES:
            executed.add(number)
        elif event.cat in event_names.RUNTIME_CATEGORIES and _LAUNCH.fullmatch(event.name):
            launched.add(number)
    return GpuSide(len(launched), len(launched - executed))


def what_is_missing(path: Path) -> GpuSide | None:
    """The launches and GPU activities of the trace at that path if it lost kernels, else None."""
    side = gpu_side(path)
    return side if side is not None and side.incomplete else None


def completed(result: PassResult, folder: Path, take: Callable[[Window], PassResult]) -> PassResult:
    """The result of a pass, with each trace that lost kernels taken again by itself, and notes on that.

    CUPTI of CUDA 12.6 to 13.0 reports no times for the first kernels of a later session, and Kineto drops those.
    """
    before = _incomplete_sides(result.traces, folder)
    if not any(before.values()):
        return result
    if before["cold"] is None:  # a process's first session is complete
        for window in ("steady", "detail"):
            # The trace that is taken again has overwritten the first one, as it has the same name.
            if before[window] is not None and (again := take(window)).traces.of(window) is not None:
                result = replace(result, profiled=again.profiled or result.profiled)
    after = _incomplete_sides(result.traces, folder)
    notes = [f"{window}: {side.sentence()}" for window, side in after.items() if side]
    healed = [window for window, side in before.items() if side and not after[window]]
    if healed:
        notes.append(f"the profiler lost kernels where traces share a process: {', '.join(healed)} got one each")
    return replace(result, effective=result.effective.plus(notes))


def _incomplete_sides(traces: Traces, folder: Path) -> dict[Window, GpuSide | None]:
    """Of each trace that lost kernels, its launches and activities; None for a whole one, or where there is none."""
    names = {window: traces.of(window) for window in WINDOWS}
    return {window: what_is_missing(folder / name) if name else None for window, name in names.items()}


def loud() -> dict[str, str]:
    """The environment in which the library prints its warnings; a level that the user chose is respected."""
    return {_LEVEL: os.environ.get(_LEVEL) or _WARNINGS}


@contextmanager
def silent() -> Iterator[None]:
    """While it lasts, a profiler that is the first of its process makes the library print nothing from then on, where
    the user chose no level: even its errors alone come with a line at each start and stop."""
    if _LEVEL in os.environ:
        yield
        return
    os.environ[_LEVEL] = _SILENT
    try:
        yield
    finally:
        del os.environ[_LEVEL]


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
    return [text if times == 1 else f"{text} ({times} times)" for text, times in counted][:_MAX_MESSAGES]


def lacks_permission(log: str) -> bool:
    """Whether the driver denied access: ERR_NVGPUCTRPERM."""
    # Its hint, printed after every failure, names that error, too.
    return any("INSUFFICIENT_PRIVILEGES" in text for _, text in _LINE.findall(log))
