"""What the compiler logged, record by record: compilations, failing guards, graph breaks with stacks, unix ns."""

import json
import re
from collections import defaultdict
from typing import Any

from tracekit.compile_log.break_stacks import BreakStacks
from tracekit.compile_log.entries import LimitHit, LogEntry, Span
from tracekit.compile_log.provenance import Provenance
from tracekit.event_names import COMPILE_SPANS

_SKIP = re.compile(r"skipping cudagraphs? due to (.*)", re.S)
_LIMIT = re.compile(r"hit config\.(\w+) \((\d+)\)\s+function: '(.+?)' \((.+):(\d+)\)\s+last reason: (.*)", re.S)


class CompileLog:
    """The parts of torch's structured log that are used here; it takes records from any source."""

    def __init__(self) -> None:
        self.compiled: list[Span] = []
        self.reasons: dict[str, list[str]] = {}
        self.breaks: list[LogEntry] = []
        self.limits: list[LimitHit] = []
        self.skips: list[LogEntry] = []
        self.metrics: dict[str, dict[str, Any]] = {}
        self.with_graph: set[str] = set()  # compilations that had a graph to compile
        self.provenance = Provenance()
        self._break_stacks = BreakStacks(self.breaks)
        self._open: dict[int, list[Span]] = defaultdict(list)

    def take(self, metadata: dict[str, Any], payload: Any, t_ns: int, thread: int) -> None:
        """Process one record of the structured log, given its thread and its time in unix ns."""
        compile_id = f"{metadata.get('frame_id')}/{metadata.get('frame_compile_id')}"
        artifact = (metadata.get("artifact") or {}).get("name")
        self.provenance.take(metadata, payload, compile_id, thread)
        self._break_stacks.take(metadata, compile_id)
        if "chromium_event" in metadata:
            self._take_span(json.loads(payload) if isinstance(payload, str) else payload, compile_id, thread)
        elif "dynamo_output_graph" in metadata:
            self.with_graph.add(compile_id)
        elif artifact == "recompile_reasons":
            self.reasons[compile_id] = json.loads(payload) if payload.startswith("[") else [payload]
        elif artifact == "dynamo_graph_break_reason":
            self.breaks.append(LogEntry(compile_id, t_ns, payload))
            self._break_stacks.broke()
        elif "compilation_metrics" in metadata:
            metrics = metadata["compilation_metrics"]
            if skipped := metrics.get("cudagraph_skip_reason"):
                self._take_skip(str(metrics.get("compile_id") or compile_id), t_ns, skipped)
            self.metrics[str(metrics.get("compile_id") or compile_id)] = metrics

    def _take_span(self, event: dict[str, Any], compile_id: str, thread: int) -> None:
        t_ns = round(event["ts"] * 1000)
        spans = self._open[thread]
        if event["ph"] == "B":
            # torch 2.6 has the id beside the event only.
            spans.append(Span(event["name"], str(event["args"].get("compile_id") or compile_id), thread, t_ns))
        elif event["ph"] == "E" and any(span.name == event["name"] for span in spans):
            while spans[-1].name != event["name"]:  # an exception ended these without a record
                spans.pop()
            self._close(spans, t_ns)

    def _close(self, spans: list[Span], t_ns: int) -> None:
        root = next((span for span in spans if span.name in COMPILE_SPANS), None)  # the outermost is one compilation
        span = spans.pop()
        span.end_ns = t_ns
        if spans:
            spans[-1].children_ns += t_ns - span.start_ns
        if root is not None:
            root.phases[span.name] += t_ns - span.start_ns - span.children_ns
        if span is root:
            self.compiled.append(span)

    def take_warning(self, text: str, t_ns: int, thread: int) -> None:
        """Process one warning of Dynamo's or Inductor's."""
        spans = self._open[thread]
        compile_id = spans[0].id if spans else "None/None"
        if limit := _LIMIT.search(text):
            setting, _, name, file, line, rest = limit.groups()
            reason = rest.partition("\nTo log all")[0].strip()
            self.limits.append(LimitHit(compile_id, t_ns, setting, name, file, int(line), reason))
        elif _SKIP.search(text):
            self._take_skip(compile_id, t_ns, text)

    def _take_skip(self, compile_id: str, t_ns: int, text: str) -> None:
        """Process a skipped CUDA graph, which is reported in a warning, and again in the metrics of the compilation."""
        match = _SKIP.search(text)
        reason = (match[1] if match else text).strip()
        if all((skip.id, skip.text) != (compile_id, reason) for skip in self.skips):
            self.skips.append(LogEntry(compile_id, t_ns, reason))
