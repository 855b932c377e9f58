"""HTA's `Trace`, filled from columns that were already read, so that it never parses a file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hta.common.trace import Trace as ParsedTrace
from hta.common.trace_parser import MetaDataKey, infer_gpu_type

from tracekit.errors import OutputError
from tracekit.hta.frames import add_symbols, frame, is_event_of_hta
from tracekit.trace import Trace

_US = 1000  # ns


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
        if any(Path(output_file).resolve() == Path(each).resolve() for each in self.trace_files.values()):
            raise OutputError(Path(output_file), "the analysis is made from it")
        super().write_raw_trace(output_file, trace_contents)
