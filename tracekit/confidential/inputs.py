"""What is read of an input – a trace, its lines file, a run – without its secrets."""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from tracekit.confidential import public
from tracekit.confidential.names import Names
from tracekit.confidential.places import Places
from tracekit.confidential.prose import Prose
from tracekit.confidential.stand_ins import StandIns
from tracekit.run import Run
from tracekit.run.ledger import Ledger
from tracekit.trace import Trace
from tracekit.trace.schema import codes, labels
from tracekit.vocabulary.event_names import GPU_CATEGORIES, RUNTIME_CATEGORIES
from tracekit.vocabulary.lines_file import LinesFile

_CATEGORIES = {
    *GPU_CATEGORIES,
    *RUNTIME_CATEGORIES,
    *("", "cpu_op", "user_annotation", "gpu_user_annotation", "python_function", "overhead", "trace", "cuda_sync"),
    *("ac2g", "async_cpu_to_gpu", "async_gpu", "fwdbwd", "fwd_bwd", "cpu_instant_event", "mtia_ccp_events", "hpu_op"),
    *("cuda_profiler_range", "collective_comm", "glow_runtime", "mtia_runtime", "cpu_user_annotation", "xpu", "hip"),
}
_THREAD = re.compile(r"(thread -?\d+ \()(.+)(\))", re.DOTALL)
_PUBLIC_THREAD = re.compile(r"python\d?(?:\.\d+)?|pt_\w{1,12}(?:_\d+)?|stream -?\d+|(?:GPU|CPU|gpu|cpu) ?\d*|main")
_NUMBER = re.compile(r"-?\d+|(?:GPU|CPU|CUDA|stream|Spans|Traces|PyTorch Profiler)(?: (?:functions|-?\d+))?|\(\d+\)|")
# Of the keys of a trace beside its events, those that are used and hold no text but names of devices and backends.
_META = ("schemaVersion", "baseTimeNanoseconds", "with_stack", "profile_memory", "record_shapes", "with_flops")
_DEVICE_WORDS = re.compile(
    r"AMD|Intel(?:\(R\))?|NVIDIA|Nvidia|Apple|ARM|Arm|Ampere|Qualcomm|Tesla|Quadro|GeForce|RTX|GTX|Ti|SUPER|Max-Q|Laptop|GPU|Xeon(?:\(R\))?"
    r"|Core\(TM\)|EPYC|Ryzen|Threadripper|PRO|Instinct|Radeon|Graphics|Processor|CPU|Gold|Silver|Platinum|Bronze|Generation|Ada"
    r"|Neoverse-?\w\d?|Altra|Max|Pro|Ultra|HBM\d?e?|PCIe|PCIE|SXM\d|NVL|MIG|Grace|Hopper|Blackwell|\d+GB|\d+-Core|@|with"
    r"|[A-Z]{0,3}-?[0-9]{1,5}[A-Z]{0,3}|[A-Z]{0,2}\d{1,3}(?:-[A-Z0-9]{2,6}){1,3}|i\d-\w{4,7}|v\d|\d+(?:\.\d+)?[GM]Hz|\d+[gm]b",
)
_VERSION = re.compile(r"v?\d+(?:\.\d+){1,3}(?:(?:a|b|rc|\.post|\.dev)\d+)?(?:\+(?:cpu|cu\d+|rocm[\d.]+|xpu))?|\d+")
_VARIANTS = re.compile(
    r"(?:eager|compiled|inference|inductor|aot_eager|cudagraphs|default|reduce-overhead|max-autotune(?:-no-cudagraphs)?"
    r"|dynamic|static|fullgraph|amp|bf16|fp16|fp32|tf32|norm|off|on|true|false|[-_ =0-9])+"
)
# Values of a run that are words of tracekit's or PyTorch's own, by the key.
_WORDS = {
    *("schema", "created", "tracekit", "outcome", "workload", "window", "mode", "backend", "clock", "stage", "kind"),
    *(
        "round",
        "dtype",
        "device",
        "span",
        "id",
        "compile",
        "during",
        "pass",
        "cpu_governor",
        "cpu_capability",
        "pstate",
    ),
    *("float32_matmul_precision", "cold", "steady", "detail", "trace", "persistence_mode"),
}
_PATHS = ("traces", "ranks", "trace")  # which are opened, and shown by nobody
_UNITS = re.compile(r"-?[\d.]+(?: ?(?:W|MHz|GHz|MiB|GiB|GB|MB|C|%|s|ms))?")


class Confidential:
    """Replaces the secrets of all inputs of a report: the same one everywhere by the same stand-in."""

    def __init__(self, mine: Collection[str] = ()) -> None:
        """`mine` are packages that are the user's, whatever they are called."""
        self._stand_ins = StandIns()
        self._places = Places(self._stand_ins, mine)
        self._names = Names(self._stand_ins, self._places)
        self._prose = Prose(self._stand_ins, self._places)

    def sentence(self) -> str:
        """What was replaced, and how much of it."""
        counted = self._stand_ins.counted()
        if not counted:
            return "this report is confidential, but nothing had to be replaced."
        return f"this report is confidential: it shows stand-ins for {counted}."

    def name(self, name: str) -> str:
        """What stands for the name of an event of a trace that was read."""
        return self._names.known(name)

    def path(self, path: object) -> str:
        """What stands for the path of an input."""
        return self._stand_ins.of("trace", str(path))

    def variant(self, name: str) -> str:
        """What stands for the name of a variant."""
        return name if _VARIANTS.fullmatch(name) else self._stand_ins.of("variant", name)

    def text(self, text: str) -> str:
        """A sentence without its secrets."""
        return self._prose.of(text)

    def trace(self, trace: Trace) -> Trace:
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
        return {**numbers, "name": self.device(name)} if isinstance(name, str) else numbers

    def device(self, name: str) -> str:
        """The name of a processor: words that makers of processors do not use are hidden."""
        return " ".join(
            word if _DEVICE_WORDS.fullmatch(word) else self._stand_ins.of("device", word) for word in name.split()
        )

    def lines(self, lines: LinesFile) -> LinesFile:
        """A lines file in which all lines of source are empty."""
        path, function = self._places.path, self._places.function
        return replace(
            lines,
            functions=[
                one._replace(
                    name=self._names.of("python_function", one.name),
                    file=path(one.file),
                    function=function(one.file, one.function),
                    owner=one.owner
                    if one.owner in ("user", "torch", "python", "generated", "tracekit") or one.owner in public.PACKAGES
                    else self._stand_ins.of("package", one.owner),
                )
                for one in lines.functions
            ],
            callers=[(path(file), function(file, name)) for file, name in lines.callers],
            code=[one._replace(file=path(one.file), function=function(one.file, one.function)) for one in lines.code],
            sources={path(file): "…\n" * len(text.splitlines()) for file, text in lines.sources.items()},
            graphs=[
                graph._replace(
                    key=self._names.graph(graph.key),
                    kernels=[
                        (self._kernel_of_graph(name), [self._stack(stack) for stack in stacks])
                        for name, stacks in graph.kernels
                    ],
                )
                for graph in lines.graphs
            ],
            modules={
                self._names.module(name): self._stand_ins.of("module", value) for name, value in lines.modules.items()
            },
        )

    def _kernel_of_graph(self, name: str) -> str:
        """`name:handle`: the name of a kernel or, with points, of an operator."""
        kernel, colon, handle = name.rpartition(":")
        kernel = kernel if colon else name
        if "." in kernel:
            shown = kernel if public.is_of_libraries(kernel) else self._stand_ins.of("operator", kernel)
        else:
            shown = self._names.of("kernel", kernel)
        return f"{shown}{colon}{handle if handle.isdecimal() else ''}" if colon else shown

    def _stack(self, stack: str) -> str:
        """The frames of a stack, without the lines of source between them."""
        frames = [line for line in stack.split("\n") if line.lstrip().startswith('File "')]
        return "".join(f"  {self._prose.of(line.strip())}\n" for line in frames)

    def run(self, run: Run) -> Run:
        """A run without its secrets, but with the paths of its traces, which are opened."""
        variants = [
            replace(
                msgspec.convert(self._value(msgspec.to_builtins(variant), ("variants",)), type(variant)),
                name=self.variant(variant.name),
                ledger=self._ledger(variant.ledger),
            )
            for variant in run.variants
        ]
        rest = self._value(msgspec.to_builtins(replace(run, variants=[])), ())
        return replace(
            msgspec.convert(rest, Run), variants=variants, planned=[self.variant(name) for name in run.planned]
        )

    def _ledger(self, ledger: Ledger) -> Ledger:
        """What the compiler did, with stand-ins in what it says."""
        text, path, function = self._prose.of, self._places.path, self._places.function

        def said(words: str | None) -> str | None:
            return None if words is None else text(words)

        def place(file: str | None) -> str | None:
            return None if file is None else path(file)

        return replace(
            ledger,
            compiles=[
                replace(
                    one,
                    reason=said(one.reason),
                    guard=said(one.guard),
                    failed=said(one.failed),
                    code=None if one.code is None else self._prose.place(one.code),
                    phases={self._phase(name): ns for name, ns in one.phases.items()},
                )
                for one in ledger.compiles
            ],
            breaks=[
                replace(one, reason=text(one.reason), file=place(one.file), stack=self._stack(one.stack))
                for one in ledger.breaks
            ],
            limits=[
                replace(
                    one,
                    file=place(one.file),
                    name=None if one.name is None else function(one.file or "", one.name),
                    reason=said(one.reason),
                )
                for one in ledger.limits
            ],
            skips=[replace(one, reason=text(one.reason), file=place(one.file)) for one in ledger.skips],
        )

    def _phase(self, name: str) -> str:
        return (
            name if public.is_of_libraries(name) or self._prose.of(name) == name else self._stand_ins.of("phase", name)
        )

    def _value(self, value: Any, keys: tuple[str, ...]) -> Any:
        """A part of a run, by the keys that lead to it."""
        key = keys[-1] if keys else ""
        if isinstance(value, dict):
            if key in ("params", "options"):
                return {self._stand_ins.of("parameter", name): self._setting(one) for name, one in value.items()}
            if key == "metrics":
                return {self._metric(name): one for name, one in value.items()}
            if key in ("node_types", "edge_types"):
                return {self._stand_ins.of("type", name): one for name, one in value.items()}
            if key == "variables":
                return {name: self._setting(one) for name, one in value.items() if public.is_of_libraries(name)}
            if key == "packages":
                return {
                    name: self._version(one) for name, one in value.items() if name.replace("-", "_") in public.PACKAGES
                }
            if key in _PATHS or key == "ledger":
                return {} if key == "ledger" else value
            return {self._key(name, keys): self._value(one, (*keys, name)) for name, one in value.items()}
        if isinstance(value, list):
            return value if key in _PATHS else [self._value(one, keys) for one in value]
        return self._text_of(value, key, keys) if isinstance(value, str) else value

    def _key(self, name: str, keys: tuple[str, ...]) -> str:
        if not {"environment", "gpu"}.intersection(keys):
            return name
        return name if public.is_of_libraries(name) or self._prose.of(name) == name else self._stand_ins.of("key", name)

    def _metric(self, name: str) -> str:
        return name if self._prose.of(name) == name else self._stand_ins.of("metric", name)

    def _text_of(self, text: str, key: str, keys: tuple[str, ...]) -> str:
        if key in _PATHS or (key in _WORDS and (not text or self._is_plain(text))):
            return text
        if key == "recipe":
            return self._stand_ins.of("program", text)
        if key == "script":
            return self._places.path(text)
        if key == "data":
            return self._stand_ins.of("data", text)
        if key == "cpu" or (key == "name" and "gpus" in keys):
            return self.device(text)
        if key == "platform":
            return text.partition("-")[0] if text.partition("-")[0] in ("Linux", "macOS", "Windows", "Darwin") else ""
        if "environment" in keys or key in ("gpu", "tracekit") or "gpu" in keys:
            return text if self._is_plain(text) else self._stand_ins.of("value", text)
        return self._prose.of(text)

    def _is_plain(self, text: str) -> bool:
        """Whether a value is a number, a version, a time, or a word of PyTorch's."""
        plain = (_VERSION, _UNITS, re.compile(r"\d{4}-\d\d-\d\dT[\d:.+-]+"), re.compile(r"tracekit\.\w+/\d+"))
        if any(pattern.fullmatch(text) for pattern in plain):
            return True
        return (len(text) < 60 and public.is_of_libraries(text)) or self._prose.of(text) == text

    def _setting(self, value: Any) -> Any:
        """A value of the user's: what is neither a switch nor nothing is hidden."""
        return value if value is None or isinstance(value, bool) else self._stand_ins.of("value", str(value))

    def _version(self, text: Any) -> str:
        return text if isinstance(text, str) and _VERSION.fullmatch(text) else self._stand_ins.of("value", str(text))


def _relabelled(table: pa.Table, name: str, texts: list[str]) -> pa.Table:
    """A table with other texts behind the numbers of a column of labels."""
    dictionary = pa.array(texts, pa.string())
    chunks = [pa.DictionaryArray.from_arrays(chunk.indices, dictionary) for chunk in table[name].chunks]
    index = table.schema.get_field_index(name)
    return table.set_column(index, table.schema.field(index), pa.chunked_array(chunks, table.schema.field(index).type))
