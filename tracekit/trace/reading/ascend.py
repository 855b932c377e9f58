"""What Ascend's profiler writes (`trace_view.json` of torch_npu), in Kineto's words.

The rows of the process "Ascend Hardware" are streams of an NPU, and those of "CANN" are calls of its runtime on the
threads of "Python"; neither have categories. Flows tell which operator (`async_npu`) or call (`HostToDevice`) submitted
a task: they lead from the start of one event to the start of another.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import msgspec

from tracekit.trace.reading import exact
from tracekit.trace.reading.chunks import events_again
from tracekit.trace.reading.event_details import NOTHING, Args, Event, Scalar

HARDWARE = "Ascend Hardware"
_CALLS, _HOST = "CANN", "Python"
_CALL_CATEGORY = "privateuse1_runtime"
_OF_CALL, _OF_OPERATOR = "HostToDevice", "async_npu"
_COPY = re.compile(r"SDMA|PCIE_DMA|MEMCPY", re.IGNORECASE)
_NO_WORK = re.compile(r"WAIT|RECORD|NOTIFY|PLACE_?HOLDER|PROFILER_TRACE|MAINTENANCE", re.IGNORECASE)

_Place = tuple[str, str, int]  # pid and tid as text, start in ns


class _Mark(msgspec.Struct, gc=False):
    ph: Scalar = None
    cat: Scalar = None
    id: msgspec.Raw = NOTHING
    pid: Scalar = None
    tid: Scalar = None
    ts: msgspec.Raw = NOTHING
    dur: msgspec.Raw = NOTHING
    args: msgspec.Raw = NOTHING

    @property
    def place(self) -> _Place:
        return _place(self.pid, self.tid, self.ts)


class _Task(msgspec.Struct, gc=False):
    kind: Scalar = msgspec.field(default=None, name="Task Type")


_MARKS = msgspec.json.Decoder(list[_Mark])
_TASK = msgspec.json.Decoder(_Task)


class Translation:
    """Gives events of Ascend's processes the categories and the ids that Kineto would have given them."""

    def __init__(self, path: Path, processes: Mapping[str, str]) -> None:
        """`processes` has the name of each process by its pid."""
        named = {name: [pid for pid in processes if processes[pid] == name] for name in (HARDWARE, _CALLS, _HOST)}
        self._devices = set(named[HARDWARE])
        # Several hosts, of ranks in one file, leave unknown on whose threads a call runs.
        self._host = named[_HOST][0] if len(named[_HOST]) == 1 else None
        self._callers = set(named[_CALLS]) if self._host is not None else set()
        self._categories: dict[_Place, str] = {}  # of tasks that are no kernels
        self._ids: dict[_Place, int] = {}  # of calls and of the tasks that they submitted
        begins: dict[tuple[Scalar, bytes], _Place] = {}
        submitted: list[tuple[tuple[Scalar, bytes], _Place]] = []
        for mark in _marks(path):
            if mark.cat in (_OF_CALL, _OF_OPERATOR) and mark.ph in ("s", "f"):
                key = mark.cat, bytes(mark.id)
                if mark.ph == "s":
                    begins[key] = mark.place
                else:
                    submitted.append((key, mark.place))
        operators = {place: place[2] for (cat, _), place in begins.items() if cat == _OF_OPERATOR}  # and their ends
        calls: defaultdict[str, set[_Place]] = defaultdict(set)  # by thread
        for mark in _marks(path):
            if mark.ph != "X":
                continue
            place = mark.place
            if place in operators:
                operators[place] = max(operators[place], place[2] + (exact.from_text(bytes(mark.dur)) or 0))
            if place[0] in self._callers:
                calls[place[1]].add(place)
            elif place[0] in self._devices:
                kind = _kind(mark)
                if _COPY.search(kind):
                    self._categories[place] = "gpu_memcpy"
                elif _NO_WORK.search(kind):
                    self._categories[place] = ""
        ordered = {thread: sorted(places, key=_start) for thread, places in calls.items()}
        numbers: dict[_Place, int] = {}
        for (cat, identifier), task in sorted(submitted, key=lambda flow: flow[0][0] != _OF_OPERATOR):
            call = begins.get((cat, identifier))
            if call is not None and cat == _OF_OPERATOR:  # then it is the first that starts inside the operator
                candidates, end = ordered.get(call[1], []), operators[call]
                index = bisect_left(candidates, call[2], key=_start)
                call = candidates[index] if index < len(candidates) and candidates[index][2] <= end else None
            if call is not None:  # a flow from a call itself comes last, and decides
                self._ids[task] = numbers.setdefault(call, len(numbers) + 1)
        self._ids |= numbers

    def __call__(self, events: Sequence[Event]) -> None:
        """Translate these events in place."""
        for event in events:
            pid = str(event.pid)
            if pid not in self._devices and pid not in self._callers:
                continue
            place = _place(pid, event.tid, event.ts)
            if pid in self._devices:
                event.cat = self._categories.get(place, "kernel")
            else:
                event.cat, event.pid = _CALL_CATEGORY, self._host
            if (number := self._ids.get(place)) is not None:
                event.args = event.args if event.args is not None else Args()
                event.args.correlation = number


def _place(pid: Scalar, tid: Scalar, ts: msgspec.Raw) -> _Place:
    return str(pid), str(tid), exact.from_text(bytes(ts)) or 0


def _start(place: _Place) -> int:
    return place[2]


def _kind(task: _Mark) -> str:
    try:
        return str(_TASK.decode(task.args).kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return ""


def _marks(path: Path) -> Iterator[_Mark]:
    return chain.from_iterable(events_again(path, _MARKS, of_cut_file=True))
