"""What the compiler said: compilations, failing guards, graph breaks with stacks, on the trace's clock."""

import json
import logging
import re
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from tracekit.capture.compiler.provenance import Provenance
from tracekit.compile_spans import KINDS

# Where it says why it records no CUDA graph: today, and up to torch 2.7. Both pass warnings when they are off.
_SKIP_LOGS = ("torch._inductor.cudagraph_utils.__cudagraphs", "torch._inductor.cudagraph_utils.__perf_hints")
_SKIP = re.compile(r"skipping cudagraphs? due to (.*)", re.S)
_LIMIT = re.compile(r"hit config\.(\w+) \((\d+)\)\s+function: '(.+?)' \((.+):(\d+)\)\s+last reason: (.*)", re.S)


@dataclass
class Span:
    """One span of the compiler's log, unix ns."""

    name: str
    id: str
    thread: int
    start_ns: int
    end_ns: int = 0
    children_ns: int = 0
    phases: dict[str, int] = field(default_factory=lambda: defaultdict(int))  # own time by name


@dataclass(frozen=True)
class LogEntry:
    """Something the compiler said, and about which compilation."""

    id: str
    t_ns: int
    text: str


@dataclass(frozen=True)
class LimitHit:
    """Dynamo's warning that it compiles a function no more."""

    id: str
    t_ns: int
    setting: str
    name: str
    file: str
    line: int
    reason: str


class CompileRecorder(logging.Handler):
    """Listens to torch's structured log while it is entered; costs nothing where nothing compiles."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.compiled: list[Span] = []
        self.reasons: dict[str, list[str]] = {}
        self.breaks: list[LogEntry] = []
        self.limits: list[LimitHit] = []
        self.skips: list[LogEntry] = []
        self.metrics: dict[str, dict[str, Any]] = {}
        self.provenance = Provenance()
        self._open: dict[int, list[Span]] = defaultdict(list)
        self._trace_log = logging.getLogger("torch.__trace")
        self._warnings = [logging.getLogger(name) for name in ("torch._dynamo.convert_frame", *_SKIP_LOGS)]

    def __enter__(self) -> "CompileRecorder":
        # In front of torch's own lazy handler: that one removes itself while the handlers are iterated, and
        # whoever stands behind it misses the first record.
        self._trace_log.handlers.insert(0, self)
        self._level = self._trace_log.level
        self._trace_log.setLevel(logging.DEBUG)
        for log in self._warnings:
            log.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._trace_log.removeHandler(self)
        self._trace_log.setLevel(self._level)
        for log in self._warnings:
            log.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Take one record; runs on the thread that compiles."""
        try:
            metadata = getattr(record, "metadata", None)
            if metadata is None:
                self._take_warning(record)
            else:
                self._take(metadata, getattr(record, "payload", None), round(record.created * 1e9))
        except Exception:
            # A log line of an unknown shape must not stop the training that wrote it.
            logging.getLogger(__name__).warning("unreadable compile record", exc_info=True)

    def _take(self, metadata: dict[str, Any], payload: Any, t_ns: int) -> None:
        compile_id = f"{metadata.get('frame_id')}/{metadata.get('frame_compile_id')}"
        artifact = (metadata.get("artifact") or {}).get("name")
        self.provenance.take(artifact, payload, compile_id)
        if "chromium_event" in metadata:
            self._take_span(json.loads(payload) if isinstance(payload, str) else payload, compile_id)
        elif artifact == "recompile_reasons":
            self.reasons[compile_id] = json.loads(payload) if payload.startswith("[") else [payload]
        elif artifact == "dynamo_graph_break_reason":
            self.breaks.append(LogEntry(compile_id, t_ns, payload))
        elif "compilation_metrics" in metadata:
            metrics = metadata["compilation_metrics"]
            if skipped := metrics.get("cudagraph_skip_reason"):
                self._take_skip(str(metrics.get("compile_id") or compile_id), t_ns, skipped)
            self.metrics[str(metrics.get("compile_id") or compile_id)] = metrics

    def _take_span(self, event: dict[str, Any], compile_id: str) -> None:
        thread, t_ns = threading.get_native_id(), round(event["ts"] * 1000)
        spans = self._open[thread]
        if event["ph"] == "B":
            # torch 2.6 tells the id beside the event only.
            spans.append(Span(event["name"], str(event["args"].get("compile_id") or compile_id), thread, t_ns))
        elif event["ph"] == "E" and any(span.name == event["name"] for span in spans):
            while spans[-1].name != event["name"]:  # an exception ended these without a word
                spans.pop()
            self._close(spans, t_ns)

    def _close(self, spans: list[Span], t_ns: int) -> None:
        root = next((span for span in spans if span.name in KINDS), None)  # the outermost: one compilation each
        span = spans.pop()
        span.end_ns = t_ns
        if spans:
            spans[-1].children_ns += t_ns - span.start_ns
        if root is not None:
            root.phases[span.name] += t_ns - span.start_ns - span.children_ns
        if span is root:
            self.compiled.append(span)

    def _take_warning(self, record: logging.LogRecord) -> None:
        if record.levelno != logging.WARNING:
            return
        text, t_ns = record.getMessage(), round(record.created * 1e9)
        spans = self._open[threading.get_native_id()]
        at = spans[0].id if spans else "None/None"
        if limit := _LIMIT.search(text):
            setting, _, name, file, line, rest = limit.groups()
            reason = rest.partition("\nTo log all")[0].strip()
            self.limits.append(LimitHit(at, t_ns, setting, name, file, int(line), reason))
        elif _SKIP.search(text):
            self._take_skip(at, t_ns, text)

    def _take_skip(self, compile_id: str, t_ns: int, text: str) -> None:
        """Said in a warning first, and again in the metrics of the compilation, if it was said within one."""
        match = _SKIP.search(text)
        reason = (match[1] if match else text).strip()
        if all((each.id, each.text) != (compile_id, reason) for each in self.skips):
            self.skips.append(LogEntry(compile_id, t_ns, reason))
