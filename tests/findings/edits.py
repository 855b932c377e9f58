"""Plants causes into a trace: its events are a list, as in the file, and what follows a cause is shifted.

Every edit is made at moments when the GPU has nothing to do and nothing waits for it (`idle_moments`), so that a
planted cause prolongs its step by its whole duration.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Event = dict[str, Any]
_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
_CALLS = ("cuda_runtime", "cuda_driver")
Plant = Callable[["Tape", float], float]  # puts events at a moment, and says how long that takes, µs


class Tape:
    """The events of a trace, to be edited; times in µs."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content
        self.events: list[Event] = content["traceEvents"]
        self._correlation = 1 << 30
        main = next(e for e in self._spans() if str(e["name"]).startswith("ProfilerStep#"))
        self.thread = {"pid": main["pid"], "tid": main["tid"]}
        gpu = next(e for e in self._spans() if e["cat"] == "kernel")
        self.stream = {"pid": gpu["pid"], "tid": gpu["tid"]}

    @staticmethod
    def read(path: Path) -> Tape:
        """Read a file, compressed or not."""
        packed = path.read_bytes()
        return Tape(json.loads(gzip.decompress(packed) if path.suffix == ".gz" else packed))

    def write(self, path: Path) -> Path:
        """Write the trace as one file."""
        path.write_text(json.dumps(self.content))
        return path

    def _spans(self) -> Iterable[Event]:
        return (e for e in self.events if e.get("ph") == "X" and "ts" in e and "cat" in e)

    def steps(self) -> list[Event]:
        """The step annotations of the main thread, in order of time."""
        annotations = [
            e for e in self._spans() if str(e["name"]).startswith("ProfilerStep#") and e["tid"] == self.thread["tid"]
        ]
        return sorted(annotations, key=lambda e: e["ts"])

    def idle_moments(self, inside: str | None = None) -> list[float]:
        """One idle moment in each step that has one: between operators, or in the middle of one with this name."""
        gpu = sorted(self._of(_GPU), key=lambda e: e["ts"])
        launched = {e["args"]["correlation"]: e["ts"] for e in self._of(_CALLS) if "correlation" in e.get("args", {})}
        busy = [(e["ts"], e["ts"] + e["dur"], launched.get(e["args"]["correlation"], 0.0)) for e in gpu]
        host = [e for e in self._of(("cpu_op", *_CALLS)) if e["dur"] > 0]
        return [t for step in self.steps() for t in self._first(step, host, busy, inside)]

    def _of(self, categories: Iterable[str]) -> list[Event]:
        return [e for e in self._spans() if e["cat"] in categories]

    def _first(
        self, step: Event, host: list[Event], busy: list[tuple[float, float, float]], inside: str | None
    ) -> list[float]:
        start, end = step["ts"], step["ts"] + step["dur"]
        operators = [e for e in host if start < e["ts"] and e["ts"] + e["dur"] < end]
        if inside is None:
            moments = sorted(round(e["ts"] + e["dur"] + 0.2, 3) for e in operators)
        else:
            moments = sorted(round(e["ts"] + e["dur"] / 2, 3) for e in operators if e["name"] == inside)
        for t in moments:
            around = sorted((e["ts"], e["name"]) for e in operators if e["ts"] <= t <= e["ts"] + e["dur"])
            free = all(end <= t for _, end, call in busy if call < t)
            if free and (not around if inside is None else around[-1][1] == inside):
                return [t]
        return []

    def pause(self, at: float, by: float) -> None:
        """Everything that starts at that moment or later is shifted; whatever covers it is prolonged."""
        for e in self.events:
            if "ts" not in e:
                continue
            if e["ts"] >= at:
                e["ts"] = round(e["ts"] + by, 3)
            elif e.get("ph") == "X" and e["ts"] + e.get("dur", 0) > at and e["cat"] not in _GPU:
                e["dur"] = round(e["dur"] + by, 3)

    def plant(self, moments: Iterable[float], put: Plant) -> None:
        """Plant the same cause at each of these moments."""
        for at in sorted(moments, reverse=True):  # from the last to the first, so that earlier moments stay valid
            before = len(self.events)
            lasts = put(self, at)
            planted = self.events[before:]
            del self.events[before:]
            self.pause(at, lasts)
            self.events += planted

    def add(self, cat: str, name: str, start: float, dur: float, **args: object) -> None:
        """Add one event of the main thread or of the GPU."""
        track = self.stream if cat in _GPU else self.thread
        if cat in _GPU:
            args = {"stream": track["tid"], "device": track["pid"], **args}
        self.events.append(
            {"ph": "X", "cat": cat, "name": name, **track, "ts": round(start, 3), "dur": dur, "args": args}
        )

    def correlation(self) -> int:
        """A correlation number that no call has yet."""
        self._correlation += 1
        return self._correlation


def sleep(lasting: float) -> Plant:
    """Python sleeps."""

    def put(tape: Tape, at: float) -> float:
        tape.add("python_function", "<built-in function sleep>", at, lasting)
        return lasting

    return put


def nothing(lasting: float) -> Plant:
    """A time in which nothing is recorded."""
    return lambda tape, at: lasting


def item(lasting: float) -> Plant:
    """`.item()`: a copy to the host, and a wait for it."""

    def put(tape: Tape, at: float) -> float:
        ids = tape.correlation()
        tape.add("cpu_op", "aten::item", at, lasting)
        tape.add("cpu_op", "aten::_local_scalar_dense", at + 0.2, lasting - 0.4)
        tape.add("cuda_runtime", "cudaMemcpyAsync", at + 0.4, 2.0, correlation=ids)
        tape.add("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", at + 1.0, 1.0, correlation=ids, bytes=4)
        tape.add("cuda_runtime", "cudaStreamSynchronize", at + 2.6, lasting - 3.2, correlation=tape.correlation())
        return lasting

    return put


def tiny_kernels(number: int, each: float = 10.0) -> Plant:
    """Operators that each launch a kernel of a microsecond."""

    def put(tape: Tape, at: float) -> float:
        for k in range(number):
            t, ids = at + k * each, tape.correlation()
            tape.add("cpu_op", "aten::add_", t, each)
            tape.add("cuda_runtime", "cudaLaunchKernel", t + each - 4, 3.0, correlation=ids)
            tape.add("kernel", "vectorized_elementwise_kernel<4, AddFunctor>", t + each - 1.5, 1.0, correlation=ids)
        return number * each

    return put


def pageable_copy(lasting: float) -> Plant:
    """A copy to the GPU from memory that is not pinned: the call returns when it is done."""

    def put(tape: Tape, at: float) -> float:
        ids = tape.correlation()
        tape.add("cpu_op", "aten::to", at, lasting)
        tape.add("cuda_runtime", "cudaMemcpyAsync", at + 0.5, lasting - 1, correlation=ids)
        name = "Memcpy HtoD (Pageable -> Device)"
        tape.add("gpu_memcpy", name, at + lasting / 2, lasting / 2 - 2, correlation=ids, bytes=1 << 24)
        return lasting

    return put


def slow_loader(lasting: float) -> Plant:
    """The loop waits for a loader in its own process, which decodes."""

    def put(tape: Tape, at: float) -> float:
        tape.add("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, lasting)
        tape.add("cpu_op", "image::decode_jpeg", at + 1, lasting - 2)
        return lasting

    return put


def collective(lasting: float) -> Plant:
    """An all-reduce that no computation overlaps, and that the host waits for."""

    def put(tape: Tape, at: float) -> float:
        ids = tape.correlation()
        tape.add("cpu_op", "c10d::allreduce_", at, 8.0)
        tape.add("cuda_runtime", "cudaLaunchKernel", at + 1, 3.0, correlation=ids)
        tape.add("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + 4, lasting - 5, correlation=ids)
        tape.add("cuda_runtime", "cudaStreamSynchronize", at + 9, lasting - 9.5, correlation=tape.correlation())
        return lasting

    return put


def recompile(lasting: float, compile_id: str = "0/1") -> Plant:
    """Dynamo compiles a function anew."""

    def put(tape: Tape, at: float) -> float:
        tape.add("user_annotation", "dynamo", at, lasting)
        tape.add("user_annotation", f"dynamo_data: fn_name=forward, compile_id={compile_id}", at + 1, 1.0)
        return lasting

    return put
