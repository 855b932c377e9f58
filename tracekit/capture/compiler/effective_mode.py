"""Which compile mode took effect? A silent downgrade is worth a sentence."""

import re
from collections import Counter

from tracekit.capture.job import Job
from tracekit.event_names import PREPARATION, RECORDINGS
from tracekit.run import Effective, Ledger
from tracekit.units import times

_WITHOUT_GRAPHS = {"reduce-overhead": "default", "max-autotune": "max-autotune-no-cudagraphs"}


def effective(job: Job, happened: Ledger) -> Effective:
    """The mode that took effect, and a note on every way in which it differs from the requested one."""
    requested = job.requested
    if not requested.compile:
        return Effective(mode="eager")
    if not any(entry.failed is None for entry in happened.compiles):
        why = _nothing_compiled(job, happened)
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


def _nothing_compiled(job: Job, happened: Ledger) -> str:
    if happened.compiles:
        return f"every compilation failed, so everything ran eagerly ({happened.compiles[0].failed})"
    if job.is_script:
        return (
            "nothing was compiled: the script never calls a whole model, only individual layers or functions; "
            "apply torch.compile to those in the script"
        )
    return "nothing was compiled: does the recipe pass its model through ctx.compile?"


def _limit_notes(happened: Ledger) -> list[str]:
    return [
        f"{_readable(limit.name or '')} ({limit.file}:{limit.line}) reached the recompile limit and ran eagerly from "
        "then on"
        for limit in happened.limits
    ]


def _readable(name: str) -> str:
    """`torch_dynamo_resume_in_forward_at_16` → `forward from line 16 on`."""
    return re.sub(r"^torch_dynamo_resume_in_(.+)_at_(\d+)$", r"\1 from line \2 on", name)


def _why(happened: Ledger) -> str:
    """Each reason once, and how often it was given."""
    reasons = Counter(skip.reason for skip in happened.skips)
    return "; ".join(reason if times == 1 else f"{reason}, {times} times" for reason, times in reasons.items())


def _no_graphs(device: str, happened: Ledger) -> str:
    if not device.startswith("cuda"):
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
    if not device.startswith("cuda"):
        return False
    import torch

    try:
        from torch._inductor.utils import is_big_gpu

        return not is_big_gpu(torch.device(device).index or 0)
    except Exception:  # this function is private and has changed before; without it there is simply no note
        return False
