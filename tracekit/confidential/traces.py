"""A trace without its secrets: names of events, categories, processes, threads, process groups and devices."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from tracekit.confidential import public
from tracekit.confidential.names import Names
from tracekit.confidential.stand_ins import StandIns
from tracekit.trace import Trace
from tracekit.trace.schema import codes, labels
from tracekit.vocabulary.event_names import GPU_CATEGORIES, RUNTIME_CATEGORIES

_CATEGORIES = {
    *GPU_CATEGORIES,
    *RUNTIME_CATEGORIES,
    *("", "cpu_op", "user_annotation", "gpu_user_annotation", "python_function", "overhead", "trace", "cuda_sync"),
    *("ac2g", "async_cpu_to_gpu", "async_gpu", "fwdbwd", "fwd_bwd", "cpu_instant_event", "mtia_ccp_events", "hpu_op"),
    *("cuda_profiler_range", "collective_comm", "glow_runtime", "mtia_runtime", "cpu_user_annotation", "xpu", "hip"),
}
_THREAD = re.compile(r"(thread -?\d+ \()(.+)(\))", re.DOTALL)
_PUBLIC_THREAD = re.compile(
    r"python\d?(?:\.\d+)?|pt_(?:main_thread|autograd_\d+|data_worker|data_pin|elastic)(?:_\d+)?|stream -?\d+|main"
    r"|(?:GPU|CPU|gpu|cpu) ?\d*"
)
_NUMBER = re.compile(r"-?\d+|(?:GPU|CPU|CUDA|stream|Spans|Traces|PyTorch Profiler)(?: (?:functions|-?\d+))?|\(\d+\)|")
# Of the keys of a trace beside its events, those that are used and hold no text but names of devices and backends.
_META = ("schemaVersion", "baseTimeNanoseconds", "with_stack", "profile_memory", "record_shapes", "with_flops")


class Traces:
    """Replaces what is secret in traces."""

    def __init__(self, stand_ins: StandIns, names: Names) -> None:
        self._stand_ins, self._names = stand_ins, names

    def hidden(self, trace: Trace) -> Trace:
        """A trace in which names of events, categories, processes, threads and groups are stand-ins. Nothing that is
        computed of it is cached."""
        events = trace.read_events()
        categories, names = (labels(events[column]) for column in ("cat", "name"))
        name_codes, cat_codes = codes(events["name"]), codes(events["cat"])
        shown = [""] * len(names)
        _, first = np.unique(name_codes, return_index=True)
        for row in np.sort(first).tolist():  # the order of time: numbers do not depend on how the file was read
            shown[name_codes[row]] = self._names.of(categories[cat_codes[row]], names[name_codes[row]])
        kinds = [cat if cat in _CATEGORIES else self._stand_ins.of("category", cat) for cat in categories]
        relabelled = events
        for column, texts in (("cat", kinds), ("name", shown)):
            relabelled = _relabelled(relabelled, column, texts)
        return replace(
            trace,
            read_events=lambda: relabelled,
            name_ranks=np.argsort(np.argsort(np.array(names, object))),
            tracks=self._table(trace.tracks),
            communications=self._table(trace.communications),
            notes=self._table(trace.notes),
            meta=self._meta(trace.meta),
            entry=None,
            summary=None,
        )

    def _table(self, table: pa.Table) -> pa.Table:
        """One of the small tables beside the events."""
        hide: dict[str, Callable[[str], str]] = {
            "pid": lambda text: text if _NUMBER.fullmatch(text) else self._stand_ins.of("process", text),
            "tid": lambda text: text if _NUMBER.fullmatch(text) else self._stand_ins.of("thread", text),
            "process": lambda text: text if _PUBLIC_THREAD.fullmatch(text) else self._stand_ins.of("process", text),
            "thread": self._thread,
            "name": self._names.known,
            "collective": lambda text: text if public.is_of_libraries(text) else self._stand_ins.of("collective", text),
            "group": lambda text: text if text.isdecimal() else self._stand_ins.of("group", text),
            "description": lambda text: (
                text if text in ("default_pg", "undefined") else self._stand_ins.of("group", text)
            ),
        }
        for name, of in hide.items():
            if (index := table.schema.get_field_index(name)) >= 0:
                shown = [None if text is None else of(text) for text in table[name].to_pylist()]
                table = table.set_column(
                    index, table.schema.field(index), pa.array(shown, table.schema.field(index).type)
                )
        if (index := table.schema.get_field_index("counters")) >= 0:
            counters = [
                None if pairs is None else [(self._counter(key), value) for key, value in pairs]
                for pairs in table["counters"].to_pylist()
            ]
            field = table.schema.field(index)
            table = table.set_column(index, field, pa.array(counters, field.type))
        return table

    def _counter(self, name: str) -> str:
        return (
            name
            if re.fullmatch(r"[a-z]+__[\w.]+", name) and public.is_of_libraries(name)
            else self._stand_ins.of("counter", name)
        )

    def _thread(self, text: str) -> str:
        shape = _THREAD.fullmatch(text)
        name = shape[2] if shape else text
        shown = name if _PUBLIC_THREAD.fullmatch(name) else self._stand_ins.of("thread", name)
        return f"{shape[1]}{shown}{shape[3]}" if shape else shown

    def _meta(self, meta: Mapping[str, Any]) -> dict[str, Any]:
        """The keys beside the events that are used."""
        shown = {key: meta[key] for key in _META if isinstance(meta.get(key), int)}
        distributed = meta.get("distributedInfo")
        if isinstance(distributed, dict):
            shown["distributedInfo"] = {
                key: n for key, n in distributed.items() if key in ("rank", "world_size") and isinstance(n, int)
            }
        devices = meta.get("deviceProperties")
        if isinstance(devices, list):
            shown["deviceProperties"] = [self._device(device) for device in devices if isinstance(device, dict)]
        return shown

    def _device(self, device: Mapping[str, Any]) -> dict[str, Any]:
        numbers = {
            key: value
            for key, value in device.items()
            if isinstance(value, int | float) and public.is_of_libraries(key)
        }
        name = device.get("name")
        return {**numbers, "name": public.device(name, self._stand_ins)} if isinstance(name, str) else numbers


def _relabelled(table: pa.Table, name: str, texts: list[str]) -> pa.Table:
    """A table with other texts behind the numbers of a column of labels."""
    dictionary = pa.array(texts, pa.string())
    chunks = [pa.DictionaryArray.from_arrays(chunk.indices, dictionary) for chunk in table[name].chunks]
    index = table.schema.get_field_index(name)
    return table.set_column(index, table.schema.field(index), pa.chunked_array(chunks, table.schema.field(index).type))
