"""HTA's `Trace` and `TraceAnalysis`, filled from columns that were already read, so that HTA never parses a file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hta.common.trace import Trace as ParsedTrace
from hta.common.trace import transform_correlation_to_index
from hta.common.trace_parser import MetaDataKey, infer_gpu_type
from hta.common.trace_symbol_table import TraceSymbolTable
from hta.trace_analysis import TraceAnalysis
from hta.trace_diff import TraceDiff
from numpy.typing import NDArray

from tracekit.base.intervals import Bools, Ints, Rows
from tracekit.errors.asking import OutputError
from tracekit.trace import Trace
from tracekit.trace.collectives import rows_of
from tracekit.trace.roles import STEP
from tracekit.trace.schema import codes, labels, values

_US = 1000  # ns
_GRID = float(1 << 20)  # parts of a µs
_SPAN = "trace"  # the profiler's own row, which HTA leaves out, too
_ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset", "cuda_sync", "gpu_user_annotation")


class ColumnTrace(ParsedTrace):  # type: ignore[misc]  # HTA has no types
    """One rank or several. What HTA would parse again is made from the same columns."""

    def __init__(self, ranks: Mapping[int, Trace], *, rounded: bool, include_last_profiler_step: bool) -> None:
        super().__init__(trace_files={}, trace_dir="")
        self.trace_files = {rank: str(trace.path) for rank, trace in ranks.items()}
        for trace in ranks.values():
            add_symbols(self.symbol_table, trace)
        base_ns = min(trace.base_ns for trace in ranks.values())
        firsts = [(trace.ts_ns[is_event_of_hta(trace)][:1], trace.base_ns) for trace in ranks.values()]
        origin_ns = min((int(first[0]) + base - base_ns for first, base in firsts if len(first)), default=0)
        self.min_ts = origin_ns / _US
        for rank, trace in ranks.items():
            shift = trace.base_ns - base_ns
            self.traces[rank] = frame(trace, origin_ns - shift, self.symbol_table, rounded=rounded)
            kind = infer_gpu_type(trace.meta, self.symbol_table.get_sym_id_map())
            self.meta_data[rank] = {**trace.meta, "baseTimeNanoseconds": base_ns, str(MetaDataKey.DEVICE_TYPE): kind}
        for rows in self.traces.values():
            # HTA compares starts with the end of the last step, but does not align that: it would include what comes
            # later.
            rows["end"] = rows["ts"] + rows["dur"] + self.min_ts
        self._filter_irrelevant_gpu_kernels(include_last_profiler_step)
        for rank, rows in self.traces.items():
            self.traces[rank] = (
                rows.assign(end=rows["ts"] + rows["dur"]).set_index("index", drop=False).rename_axis(None)
            )
        self.is_parsed = True

    def parse_traces(self, *_: object, **__: object) -> None:
        """Do nothing, because nothing is left to parse."""

    def get_raw_trace_for_one_rank(self, rank: int = 0) -> dict[str, Any]:
        """The events as the profiler would write them, for HTA's overlay; event `index` is the item of that number.

        They have only what the columns hold; a kernel's grid, for example, is missing.
        """
        rows = self.get_trace(rank)
        names, last = self.symbol_table.sym_table, int(rows["index"].max())
        left_out: dict[str, Any] = {"ph": "M", "name": "", "pid": 0, "tid": 0, "ts": self.min_ts, "args": {}}
        events = [left_out] * (last + 1)
        events[0] = {**left_out, "ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "dur": 0}
        columns = ("index", "cat", "name", "pid", "tid", "ts", "dur", "stream", "correlation", "external_id")
        for index, cat, name, pid, tid, ts, dur, stream, correlation, external in zip(
            *(rows[column].tolist() for column in columns), strict=True
        ):
            args = {"stream": stream, "correlation": correlation, "External id": external}
            events[index] = {"ph": "X", "cat": names[cat], "name": names[name], "pid": pid, "tid": tid} | {
                "ts": ts + self.min_ts,
                "dur": dur,
                "args": {key: value for key, value in args.items() if value != -1},
            }
        return {**self.meta_data[rank], "traceEvents": events}

    def write_raw_trace(self, output_file: str, trace_contents: dict[str, Any]) -> None:
        """Write the trace as HTA does, but never over a trace that was read."""
        if any(Path(output_file).resolve() == Path(trace_file).resolve() for trace_file in self.trace_files.values()):
            raise OutputError(Path(output_file), "the analysis is made from it")
        super().write_raw_trace(output_file, trace_contents)


def add_symbols(table: TraceSymbolTable, trace: Trace) -> None:
    """Add the names and categories of a trace to HTA's table of symbols."""
    table.add_symbols([*labels(trace.events["cat"]), *trace.names])


def is_event_of_hta(trace: Trace) -> Bools:
    """Which events HTA counts: all but the profiler's own row."""
    spans = [label == _SPAN for label in labels(trace.events["cat"])]
    return ~np.array(spans, bool)[codes(trace.events["cat"])]


def frame(trace: Trace, origin_ns: int, table: TraceSymbolTable, *, rounded: bool) -> pd.DataFrame:
    """HTA's frame of one rank: `index` counts from 1, since HTA takes 0 for "linked to nothing".

    `origin_ns` is what to subtract from `ts_ns`. With `rounded`, times are whole µs as HTA rounds them.
    """
    events = trace.events
    is_kept = is_event_of_hta(trace)
    names = _numbers(table, trace.names)[trace.name_codes]
    categories = labels(events["cat"])
    ts, dur = (_rounded if rounded else _exact)(trace.ts_ns, trace.dur_ns, origin_ns)
    noted_rows = rows_of(trace, trace.notes).tolist()
    counters: dict[str, NDArray[np.float64]] = {}  # a column for each performance counter, -1 where it was not read
    for row, pairs in zip(noted_rows, trace.notes["counters"].to_pylist(), strict=True):
        for name, value in pairs or () if row >= 0 else ():
            counters.setdefault(name, np.full(len(trace.ts_ns), -1.0))[row] = value
    sizes, dur_ns = values(events["bytes"]), trace.dur_ns
    speed = np.divide(sizes, dur_ns, out=np.zeros(len(sizes)), where=(sizes > 0) & (dur_ns > 0))
    for row, noted in zip(noted_rows, trace.notes["bandwidth"].to_pylist(), strict=True):
        if row >= 0 and noted is not None:  # computed from finer times than a trace of whole µs holds
            speed[row] = noted
    made_frame = pd.DataFrame(
        {
            **counters,
            "cat": _numbers(table, categories)[codes(events["cat"])],
            "name": names,
            "pid": _ids(trace.tracks["pid"].to_pylist())[trace.track],
            "tid": _ids(trace.tracks["tid"].to_pylist())[trace.track],
            "ts": ts,
            "dur": dur,
            "stream": values(events["stream"], null=-1),
            "correlation": np.where(trace.correlation == 0, -1, trace.correlation),
            "bytes": values(events["bytes"], null=-1),
            "memory_bw_gbps": speed,
            "wait_on_stream": _noted(trace, "wait_stream"),
            "wait_on_cuda_event_record_corr_id": _noted(trace, "wait_correlation"),
            "external_id": values(events["external_id"], null=-1),
            "python_id": values(events["python_id"], null=-1),
            "python_parent_id": values(events["python_parent_id"], null=-1),
        }
    )[is_kept]
    made_frame.index = pd.RangeIndex(1, len(made_frame) + 1)
    made_frame.insert(0, "index", made_frame.index)
    linked: pd.DataFrame = transform_correlation_to_index(made_frame, table)
    return linked.assign(iteration=_iterations(linked, table))


def _numbers(table: TraceSymbolTable, texts: Sequence[str]) -> Rows:
    return np.array([table.sym_index[text] for text in texts], np.int32)


def _ids(texts: list[str]) -> NDArray[np.object_]:
    """Processes and threads, as numbers if they are numbers, else as text."""
    ids = [int(text) if text.removeprefix("-").isdecimal() else text for text in texts]
    return np.array(ids, np.int64 if all(isinstance(number, int) for number in ids) else object)


def _exact(ts_ns: Ints, dur_ns: Ints, origin_ns: int) -> tuple[NDArray[np.number], NDArray[np.number]]:
    """Times in µs: whole numbers if the trace has whole µs, else floats on a grid of a millionth.

    On that grid, sums and differences of floats are exact, so an event that ends with its parent does so for HTA, too.
    """
    start = ts_ns - origin_ns
    if not (ts_ns % 1000).any() and not (dur_ns % 1000).any():
        return start // 1000, dur_ns // 1000
    first, last = (np.round(moment * (_GRID / 1000)) / _GRID for moment in (start, start + dur_ns))
    return first, last - first


def _rounded(ts_ns: Ints, dur_ns: Ints, origin_ns: int) -> tuple[NDArray[np.number], NDArray[np.number]]:
    """Times rounded as HTA does, starts up and ends down, in floating point; whole µs do not change."""
    if not (ts_ns % 1000).any():
        return _exact(ts_ns, dur_ns, origin_ns)
    start, length = ts_ns / 1000, dur_ns / 1000
    first = np.ceil(start)
    return first - np.ceil(origin_ns / 1000), np.floor(start + length) - first


def _noted(trace: Trace, name: str) -> Ints:
    """The notes about some events; -1 for all others."""
    column = np.full(len(trace.ts_ns), -1, np.int64)
    rows, noted = rows_of(trace, trace.notes), values(trace.notes[name], null=-1)
    column[rows[rows >= 0]] = noted[rows >= 0]
    return column


def _iterations(made: pd.DataFrame, table: TraceSymbolTable) -> Ints:
    """For each event, the N of the host's ProfilerStep#N in which it, or its launch, starts; −1 for none."""
    numbers = {code: int(match[1]) for code, text in enumerate(table.sym_table) if (match := STEP.fullmatch(text))}
    on_gpu = (
        made["cat"].isin([table.sym_index[category] for category in _ON_GPU if category in table.sym_index]).to_numpy()
    )
    steps = made[made["name"].isin(numbers) & ~on_gpu].sort_values("ts", kind="stable")
    if not len(steps):
        return np.full(len(made), -1)
    linked = on_gpu & (made["stream"] >= 0).to_numpy()
    source = np.where(linked, made["index_correlation"], made["index"]).astype(np.int64)
    moment = made["ts"].to_numpy()[np.maximum(source, 1) - 1]
    iteration = np.searchsorted(steps["ts"].to_numpy(), moment, side="right") - 1
    inside = (source > 0) & (iteration >= 0) & (moment < (steps["ts"] + steps["dur"]).to_numpy()[iteration])
    return np.where(inside, steps["name"].map(numbers).to_numpy()[iteration], -1)


class ColumnAnalysis(TraceAnalysis):  # type: ignore[misc]  # HTA has no types
    """Everything in HTA's own class, on columns that were already read. Times are µs; `t` is HTA's Trace."""

    def __init__(self, trace: ColumnTrace) -> None:
        self.t = trace

    @property
    def ranks(self) -> list[int]:
        """The ranks, the lowest first; many analyses take some of them, by default rank 0."""
        ranks: list[int] = self.t.get_ranks()
        return ranks

    def compare_traces(self, test: "ColumnAnalysis", **how: Any) -> pd.DataFrame:
        """HTA's `TraceDiff`: operators and kernels of this trace (the control) compared with those of another."""
        diff: pd.DataFrame = TraceDiff.compare_traces(self.t, test.t, **how)
        return diff
