"""At which clocks did the timed steps run? Queried while more steps run, because an idle GPU lowers its clocks."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tracekit.capture import gpu_state
from tracekit.capture.child import timing
from tracekit.capture.child.agreement import agreed

_LONGEST_S = 5.0  # nvidia-smi answers within some 50 ms, or seconds if it first has to load the driver


def sample(device: str) -> timing.Steps[dict[str, Any]]:
    """Take steps until nvidia-smi has answered; empty without a GPU, or if it does not answer."""
    if not device.startswith("cuda"):
        return {}
    with ThreadPoolExecutor(1) as pool:
        query = pool.submit(gpu_state.under_load, _uuid(device))
        deadline_s = time.monotonic() + _LONGEST_S
        while agreed(not query.done() and time.monotonic() < deadline_s):
            yield
        timing.synchronize(device)
        rows = query.result()
    return _readable(rows[0]) if rows else {}


def _uuid(device: str) -> str | None:
    """The uuid of torch's device: CUDA_VISIBLE_DEVICES may hide others from torch, but not from nvidia-smi."""
    import torch

    uuid = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    return f"GPU-{uuid}" if uuid is not None else None


def _readable(row: gpu_state.Row) -> dict[str, Any]:
    reasons = gpu_state.throttled_by(row)
    plain = {field: value for field, value in row.items() if not field.endswith("reasons.active")}
    return {**plain, "throttled_by": reasons}
