"""Listens to the compiler's log while it works, asks Inductor for the user's lines behind each kernel, and works
out which mode took effect: a silent downgrade is worth a sentence. `tracekit.compile_log` interprets the log.
"""

import logging
import os
import re
import threading
from collections import Counter

from tracekit.base.units import times
from tracekit.capture.device import is_gpu
from tracekit.capture.job import Job
from tracekit.compile_log.log import CompileLog
from tracekit.run import Effective, Ledger
from tracekit.vocabulary.event_names import PREPARATION, RECORDINGS

# The loggers that say why no CUDA graph was recorded: today's, and that of torch up to 2.7. Both pass warnings when
# off.
_SKIP_LOGS = ("torch._inductor.cudagraph_utils.__cudagraphs", "torch._inductor.cudagraph_utils.__perf_hints")
_WITHOUT_GRAPHS = {"reduce-overhead": "default", "max-autotune": "max-autotune-no-cudagraphs"}
_RESUMED = re.compile(r"^torch_dynamo_resume_in_(.+)_at_(\d+)$")


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


def effective(job: Job, happened: Ledger) -> Effective:
    """The mode that took effect, and a note on every way in which it differs from the requested one."""
    requested = job.requested
    if not requested.compile:
        return Effective(mode="eager")
    if not any(entry.failed is None for entry in happened.compiles):
        if happened.compiles:
            why = f"every compilation failed, so everything ran eagerly ({happened.compiles[0].failed})"
        elif job.is_script:
            why = (
                "nothing was compiled: the script never calls a whole model, only individual layers or functions; "
                "apply torch.compile to those in the script"
            )
        else:
            why = "nothing was compiled: does the recipe pass its model through ctx.compile?"
        return Effective(mode="eager", notes=[why, *_limit_notes(happened)], ran_eagerly=why)
    mode, notes = requested.mode or "default", _limit_notes(happened)
    if requested.backend != "inductor":
        if requested.mode:
            notes.append(f"{requested.backend} has no modes: {requested.mode} was ignored")
        return Effective(mode=str(requested.backend), notes=notes)
    if mode in _WITHOUT_GRAPHS and not any(entry.span in RECORDINGS for entry in happened.compiles):
        notes.append(_no_graphs(job.device, happened))
        mode = _WITHOUT_GRAPHS[mode]
    elif happened.skips:
        notes.append(f"parts of it run without CUDA graphs ({_why(happened)})")
    if mode.startswith("max-autotune") and _too_small_for_gemms(job.device):
        notes.append("max-autotune leaves matrix products alone: this GPU has too few multiprocessors for it")
    return Effective(mode=mode, notes=notes)


def _limit_notes(happened: Ledger) -> list[str]:
    # `torch_dynamo_resume_in_forward_at_16` is `forward from line 16 on`.
    names = (_RESUMED.sub(r"\1 from line \2 on", limit.name or "") for limit in happened.limits)
    return [
        f"{name} ({limit.file}:{limit.line}) reached the recompile limit and ran eagerly from then on"
        for name, limit in zip(names, happened.limits, strict=True)
    ]


def _why(happened: Ledger) -> str:
    """Each reason once, and how often it was given."""
    reasons = Counter(skip.reason for skip in happened.skips)
    return "; ".join(reason if times == 1 else f"{reason}, {times} times" for reason, times in reasons.items())


def _no_graphs(device: str, happened: Ledger) -> str:
    if not is_gpu(device):
        return "CUDA graphs need a GPU: none were recorded"
    if happened.skips:
        return f"no CUDA graph was recorded ({_why(happened)})"
    prepared = sum(entry.span == PREPARATION for entry in happened.compiles)
    if prepared:
        return (
            f"no CUDA graph was recorded: graphs were prepared {times(prepared)}, and each is recorded only when the "
            "sizes of its inputs come again (pad to a few sizes)"
        )
    from torch._dynamo.utils import counters

    skips = counters["inductor"].get("cudagraph_skips", 0)
    return f"no CUDA graph was recorded (inductor declined {skips} times; TORCH_LOGS=cudagraphs says why)"


def _too_small_for_gemms(device: str) -> bool:
    if not is_gpu(device):
        return False
    import torch

    try:
        from torch._inductor.utils import is_big_gpu

        return not is_big_gpu(torch.device(device).index or 0)
    except Exception:  # this function is private and has changed before; without it there is simply no note
        return False


def keep_kernel_lines() -> None:
    """Make Inductor store stacks (torch 2.9 and later) and name its CPU kernels in traces. Torch reads this only once.

    Must not be used where steps are timed, because named kernels are different code.
    """
    os.environ.setdefault("INDUCTOR_PROVENANCE", "2")
    os.environ.setdefault("TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE", "1")
