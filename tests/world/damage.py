"""What recorders, their buffers and their users do to a trace: each kind of damage is a function of a file and a draw.

A kind returns the damaged file, or None where there is nothing that it could damage. All work on worlds and on real
traces alike, and can be combined. `python -m tests.world.damage --worlds 200` prints how often the law of damage
(`law.py`) is kept, by kind; `--missed` what was claimed beyond the truth.
"""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

Event = dict[str, Any]
_KERNELS = ("kernel", "Kernel")
_GPU = (*_KERNELS, "gpu_memcpy", "gpu_memset", "Memcpy", "Memset")
_RUNTIME = ("cuda_runtime", "cuda_driver", "hip_runtime", "Runtime")
_OPERATORS = ("cpu_op", "Operator")
_MARK, _LOADER = "ProfilerStep#", "enumerate(DataLoader)"
_ANNOTATIONS = (_MARK, _LOADER, "Optimizer.")  # which older versions write as operators
_US = 1_000_000.0  # µs in a second
_CAPTURES = 0.005  # of the step that it lies in: how long an added capture takes, so that it hardly changes the truth
_UNIX_US = 1.7e15  # the time of day, as against the time since the machine was started


@dataclass(frozen=True)
class File:
    """A trace file: its events, what stands around them, and how much of its text there is."""

    events: list[Event]
    around: dict[str, Any]
    kept: float = 1.0  # the share of its text, from the beginning

    @classmethod
    def read(cls, path: Path) -> File:
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        around = json.loads(text)
        if isinstance(around, list):
            return cls(around, {})
        return cls(around.pop("traceEvents"), around)

    def write(self, path: Path) -> Path:
        text = json.dumps({**self.around, "traceEvents": self.events})
        path.write_text(text[: int(len(text) * self.kept)])
        return path

    def having(self, events: Iterable[Event]) -> File:
        return replace(self, events=[*events])

    def without(self, lost: Callable[[Event], bool]) -> File | None:
        """The file without some of its events; None if it has none of them."""
        events = [event for event in self.events if not lost(event)]
        return self.having(events) if len(events) < len(self.events) else None


Kind = Callable[[File, random.Random], File | None]
KINDS: dict[str, Kind] = {}


def kind(function: Kind) -> Kind:
    """Register a kind of damage under its name."""
    KINDS[function.__name__] = function  # type: ignore[attr-defined]
    return function


def damaged(file: File, names: Iterable[str], draw: random.Random) -> File | None:
    """The file with several kinds of damage, one after the other; None if one of them does not apply."""
    for name in names:
        made = KINDS[name](file, draw)
        if made is None:
            return None
        file = made
    return file


def _lasts(event: Event) -> bool:
    return event.get("ph") == "X" and isinstance(event.get("ts"), int | float)


def _on_gpu(event: Event) -> bool:
    return event.get("cat") in _GPU and _lasts(event)


def _of_gpu(event: Event) -> bool:
    """Whether the event is stamped by the clock of the GPU."""
    return event.get("cat") in (*_GPU, "gpu_user_annotation", "cuda_sync")


def _calls(event: Event) -> bool:
    return event.get("cat") in _RUNTIME and _lasts(event)


def _launches(event: Event) -> bool:
    return _calls(event) and ("Launch" in _name(event) or "Async" in _name(event))


def _marks(event: Event) -> bool:
    return _name(event).startswith(_MARK) and event.get("cat") != "gpu_user_annotation" and _lasts(event)


def _name(event: Event) -> str:
    return str(event.get("name", ""))


def _end(event: Event) -> float:
    return float(event["ts"] + max(event.get("dur") or 0, 0))


def _correlation(event: Event) -> object:
    return (event.get("args") or {}).get("correlation")


def span(file: File) -> tuple[float, float]:
    """From the first start to the last end of what the host and the GPU did."""
    rows = [event for event in file.events if _lasts(event) and event.get("cat") and event.get("cat") != "Trace"]
    return min((event["ts"] for event in rows), default=0.0), max(map(_end, rows), default=0.0)


def _moment(file: File, draw: random.Random, low: float, high: float) -> float:
    """A moment at a share of the recording that is drawn."""
    start, end = span(file)
    return start + draw.uniform(low, high) * (end - start)


def _some(values: Iterable[Any], draw: random.Random, low: float, high: float) -> set[Any]:
    """A share of the values that is drawn, one at least, if there are any; never all of several."""
    distinct = [*dict.fromkeys(values)]
    number = min(max(round(draw.uniform(low, high) * len(distinct)), 1), max(len(distinct) - 1, 1))
    return {*draw.sample(distinct, number)} if distinct else set()


@kind
def gpu_rows_of_steps(file: File, draw: random.Random) -> File | None:
    """CUPTI hands over buffers of records; one that is full is dropped, with the GPU rows of a step or two."""
    marks = [event for event in file.events if _marks(event)]
    if len(marks) < 2:
        return None
    chosen = _some(range(len(marks)), draw, 0.2, 0.6)
    spans = [(marks[k]["ts"], _end(marks[k])) for k in chosen]
    lost = {
        _correlation(event)
        for event in file.events
        if _calls(event) and any(low <= event["ts"] < high for low, high in spans)
    } - {None, 0, -1}
    return file.without(lambda event: _on_gpu(event) and _correlation(event) in lost)


@kind
def gpu_tail(file: File, draw: random.Random) -> File | None:
    """The buffers of the GPU are full, or the process ends before the last of them is flushed."""
    moment = _moment(file, draw, 0.3, 0.9)
    return file.without(lambda event: _on_gpu(event) and event["ts"] >= moment)


@kind
def gpu_head(file: File, draw: random.Random) -> File | None:
    """CUPTI is enabled late: a profiler without warm-up records the host some steps before the GPU."""
    moment = _moment(file, draw, 0.1, 0.7)
    return file.without(lambda event: _on_gpu(event) and event["ts"] < moment)


@kind
def gpu_stream(file: File, draw: random.Random) -> File | None:
    """Records of one stream are missing: a stream of another context, or of a green context, is not subscribed to."""
    rows = [(event.get("pid"), event.get("tid")) for event in file.events if _on_gpu(event)]
    if len({*rows}) < 2:
        return None
    lost = draw.choice(sorted({*rows}, key=str))
    return file.without(lambda event: _on_gpu(event) and (event.get("pid"), event.get("tid")) == lost)


def _replays(file: File) -> dict[object, list[Event]]:
    """The activities of each replay of a CUDA graph, in order."""
    by_id: dict[object, list[Event]] = {}
    for event in file.events:
        if _on_gpu(event) and _correlation(event) not in (None, 0, -1):
            by_id.setdefault(_correlation(event), []).append(event)
    return {name: sorted(events, key=lambda event: event["ts"]) for name, events in by_id.items() if len(events) > 1}


@kind
def graph_nodes_of_replays(file: File, draw: random.Random) -> File | None:
    """Of some replays of a CUDA graph, CUPTI reports only the first or the last nodes."""
    replays = _replays(file)
    lost: set[int] = set()
    for name in _some(replays, draw, 0.2, 0.7):
        nodes = replays[name]
        number = draw.randint(1, len(nodes) - 1)
        lost |= {id(event) for event in (nodes[:number] if draw.random() < 0.5 else nodes[-number:])}
    return file.without(lambda event: id(event) in lost)


@kind
def graph_nodes_everywhere(file: File, draw: random.Random) -> File | None:
    """A graph that was captured before the profiler began: its first nodes are missing in all replays."""
    share = draw.uniform(0.2, 0.8)
    lost = {id(event) for nodes in _replays(file).values() for event in nodes[: max(int(share * len(nodes)), 1)]}
    return file.without(lambda event: id(event) in lost)


@kind
def stretched(file: File, draw: random.Random) -> File | None:
    """The end stamp of a few activities is wrong, as after a reset of the clock: they last for seconds."""
    rows = [event for event in file.events if _on_gpu(event)]
    start, end = span(file)
    chosen = {id(event) for event in draw.sample(rows, min(draw.randint(1, 4), len(rows)))}
    if not chosen:
        return None
    return file.having(
        {**event, "dur": round(draw.uniform(0.3, 30) * (end - start), 3)} if id(event) in chosen else event
        for event in file.events
    )


def _shifted(file: File, by: float, chosen: Callable[[Event], bool]) -> File:
    return file.having(
        {**event, "ts": round(event["ts"] + by, 3)} if _lasts(event) and chosen(event) else event
        for event in file.events
    )


@kind
def gpu_clock(file: File, draw: random.Random) -> File | None:
    """The GPU's clock is converted with a wrong offset: its rows are hours away from the host's."""
    if not any(map(_on_gpu, file.events)):
        return None
    return _shifted(file, draw.choice([-1, 1]) * draw.randint(1, 30) * 3600 * _US, _of_gpu)


@kind
def host_clock(file: File, draw: random.Random) -> File | None:
    """The host's events carry the machine's uptime and the GPU's the time of day, or the other way round."""
    if not any(map(_on_gpu, file.events)):
        return None
    first, _ = span(file)
    by = -first + draw.randint(1_000, 1_000_000) * _US if first > _UNIX_US / 2 else _UNIX_US
    return _shifted(file, by, lambda event: not _of_gpu(event))


@kind
def launches(file: File, draw: random.Random) -> File | None:
    """The host's buffer overflows: some of the runtime calls are missing, and their kernels have no launch."""
    share = draw.uniform(0.2, 0.8)
    return file.without(lambda event: _launches(event) and draw.random() < share)


@kind
def runtime_calls(file: File, draw: random.Random) -> File | None:
    """The runtime's calls are not subscribed to (another tool holds the callback): none is recorded."""
    return file.without(_calls)


@kind
def operators(file: File, draw: random.Random) -> File | None:
    """Recorded with ProfilerActivity.CUDA alone, or with an operator filter: no operator is there."""
    return file.without(_is_operator)


@kind
def operators_from_a_moment_on(file: File, draw: random.Random) -> File | None:
    """The host's ring buffer wraps: operators before a moment are overwritten by later ones."""
    moment = _moment(file, draw, 0.3, 0.8)
    return file.without(lambda event: _is_operator(event) and event["ts"] < moment)


def _is_operator(event: Event) -> bool:
    return event.get("cat") in _OPERATORS and _lasts(event) and not _name(event).startswith(_ANNOTATIONS)


@kind
def frames(file: File, draw: random.Random) -> File | None:
    """Recorded without `with_stack`, or by a version that writes no Python frames."""
    return file.without(lambda event: event.get("cat") == "python_function")


@kind
def loader_events(file: File, draw: random.Random) -> File | None:
    """Batches come from a generator or another library's loader, which writes no event."""
    return file.without(lambda event: _name(event).startswith(_LOADER))


@kind
def step_marks(file: File, draw: random.Random) -> File | None:
    """The loop does not call prof.step(): there are no ProfilerSteps."""
    return file.without(lambda event: _name(event).startswith(_MARK))


@kind
def some_step_marks(file: File, draw: random.Random) -> File | None:
    """Some ProfilerSteps are missing: a filter dropped them, or prof.step() was not called in each step."""
    numbers = [_name(event) for event in file.events if _marks(event)]
    lost = _some(numbers, draw, 0.2, 0.6) if len({*numbers}) > 1 else set()
    return file.without(lambda event: _name(event) in lost)


@kind
def sampled(file: File, draw: random.Random) -> File | None:
    """Data sets of traces are thinned out: a random share of all events is kept."""
    share = draw.uniform(0.1, 0.7)
    return file.without(lambda event: _lasts(event) and draw.random() > share)


@kind
def truncated(file: File, draw: random.Random) -> File | None:
    """The disk is full or the job is killed while the file is written: its text ends somewhere."""
    return replace(file, kept=draw.uniform(0.3, 0.98))


@kind
def without_the_end(file: File, draw: random.Random) -> File | None:
    """The profiler is stopped within a step: what has not ended by then is not written, on the host or the GPU."""
    moment = _moment(file, draw, 0.4, 0.95)
    return file.without(lambda event: _lasts(event) and _end(event) > moment)


@kind
def profilers_end(file: File, draw: random.Random) -> File | None:
    """When the profiler stops, it waits for the GPU and flushes its buffers: a long cudaDeviceSynchronize, and idle."""
    thread = _main_thread(file)
    if thread is None or not any(map(_on_gpu, file.events)):
        return None
    start, end = span(file)
    runtime = next((event["cat"] for event in file.events if _calls(event)), "cuda_runtime")
    wait = {
        "ph": "X",
        "cat": runtime,
        "name": "cudaDeviceSynchronize",
        **thread,
        "ts": round(end + 30.0, 3),
        "dur": round(draw.uniform(0.3, 4) * (end - start), 3),
        "args": {"correlation": _unused_correlation(file)},
    }
    return file.having([*file.events, wait])


@kind
def duplicated(file: File, draw: random.Random) -> File | None:
    """Files that were written in parts are joined with an overlap: some events, or all, are there twice."""
    share = draw.choice([1.0, draw.uniform(0.1, 0.5)])
    return file.having(event for event in file.events for _ in range(1 + (_lasts(event) and draw.random() < share)))


@kind
def merged_processes(file: File, draw: random.Random) -> File | None:
    """A script joins the traces of two ranks into one file: other processes and devices, the same correlation ids."""
    by = draw.uniform(0.0, 0.1) * (span(file)[1] - span(file)[0])
    other = [{**event, "pid": _of_another_process(event.get("pid"))} for event in file.events]
    return file.having([*file.events, *_shifted(file.having(other), by, _lasts).events])


def _of_another_process(pid: object) -> object:
    if isinstance(pid, int):
        return pid + 7_000 if pid >= 64 else pid + 1 if pid >= 0 else pid
    return f"{pid} (2)"


@kind
def merged_in_one_process(file: File, draw: random.Random) -> File | None:
    """Two recordings of one process, one after the other, are joined: ids of steps and of launches come twice."""
    start, end = span(file)
    later = _shifted(file, draw.uniform(1.5, 6) * (end - start), _lasts)
    return file.having([*file.events, *later.events])


@kind
def capture_of_a_graph(file: File, draw: random.Random) -> File | None:
    """A CUDA graph is captured within a step: its launches run nothing. All else waits meanwhile."""
    thread = _main_thread(file)
    marks = sorted((event["ts"], _end(event)) for event in file.events if _marks(event))
    if thread is None or not any(map(_launches, file.events)):
        return None
    start, end = span(file)
    low, high = draw.choice(marks) if marks else (start, end)
    moment = round(low + draw.uniform(0.0, 0.2) * (high - low), 3)
    lasts = round(_CAPTURES * (high - low), 3)
    number = draw.randint(5, 20)
    runtime, launch = next((event["cat"], _name(event)) for event in file.events if _launches(event))
    prefix = "hip" if launch.startswith("hip") else "cuda"
    names = [f"{prefix}StreamBeginCapture", *[f"{prefix}LaunchKernel"] * number, f"{prefix}StreamEndCapture"]
    each, first_id = lasts / len(names), _unused_correlation(file)
    calls = [
        {
            "ph": "X",
            "cat": runtime,
            "name": name,
            **thread,
            "ts": round(moment + k * each, 3),
            "dur": round(each * 0.9, 3),
            "args": {"correlation": first_id + k},
        }
        for k, name in enumerate(names)
    ]
    late = delayed(file, moment, lasts)
    return late.having([*late.events, *calls])


def delayed(file: File, moment: float, by: float) -> File:
    """The file of a machine that stood still for a while, host and GPU alike."""
    return file.having(_delayed(event, moment, by) for event in file.events)


def _delayed(event: Event, moment: float, by: float) -> Event:
    """What starts later is later, what lasts over the moment lasts longer."""
    if not isinstance(event.get("ts"), int | float):
        return event
    if event["ts"] >= moment:
        return {**event, "ts": round(event["ts"] + by, 3)}
    if _lasts(event) and _end(event) > moment:
        return {**event, "dur": round(event["dur"] + by, 3)}
    return event


def _main_thread(file: File) -> dict[str, object] | None:
    """The thread with the step marks, or else with most runtime calls, as the keys of an event."""
    for asked in (_marks, _calls):
        threads = Counter((event.get("pid"), event.get("tid")) for event in file.events if asked(event))
        if threads:
            pid, tid = threads.most_common(1)[0][0]
            return {"pid": pid, "tid": tid}
    return None


def _unused_correlation(file: File) -> int:
    ids = [each for each in map(_correlation, file.events) if isinstance(each, int)]
    return max(ids, default=0) + 1


if __name__ == "__main__":
    from tests.world.judging import main

    main()
