"""Listens to the compiler's log while it works; `tracekit.compile_log` interprets it."""

import logging
import threading

from tracekit.compile_log.log import CompileLog

# The loggers that say why no CUDA graph was recorded: today's, and that of torch up to 2.7. Both pass warnings when
# off.
_SKIP_LOGS = ("torch._inductor.cudagraph_utils.__cudagraphs", "torch._inductor.cudagraph_utils.__perf_hints")


class CompileRecorder(CompileLog, logging.Handler):
    """Listens to torch's structured log while active; costs nothing while nothing compiles."""

    def __init__(self) -> None:
        logging.Handler.__init__(self, logging.DEBUG)
        CompileLog.__init__(self)
        self._trace_log = logging.getLogger("torch.__trace")
        self._warnings = [logging.getLogger(name) for name in ("torch._dynamo.convert_frame", *_SKIP_LOGS)]

    def __enter__(self) -> "CompileRecorder":
        # It goes before torch's own lazy handler, which removes itself while the handlers are iterated, so that any
        # handler after it misses the first record.
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
        """Process one record, on the thread that compiles."""
        try:
            t_ns, thread = round(record.created * 1e9), threading.get_native_id()
            metadata = getattr(record, "metadata", None)
            if metadata is not None:
                self.take(metadata, getattr(record, "payload", None), t_ns, thread)
            elif record.levelno == logging.WARNING:
                self.take_warning(record.getMessage(), t_ns, thread)
        except Exception:
            # A log line in an unknown form must not stop the training that wrote it.
            logging.getLogger(__name__).warning("unreadable compile record", exc_info=True)
