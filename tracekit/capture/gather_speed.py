"""How fast does a GPU gather rows when it does nothing else? This is the yardstick for message passing.

A capture measures it once, before anything else runs on the GPU: it takes a tenth of a second and, meanwhile, 300 MB.
"""

import time

from tracekit.capture.device import gpu, is_gpu, synchronize

_ROWS, _COLUMNS, _PICKED = 1 << 20, 64, 1 << 19  # 256 MiB: no cache holds the table
_TIMES = 10


def gather_bytes_per_s(device: str, rows: int = _ROWS) -> float | None:
    """Bytes read and written per second while random rows of 256 bytes are gathered; None if memory does not
    suffice."""
    import torch

    try:
        table = torch.zeros(rows, _COLUMNS, device=device)
        picked = torch.randint(rows, (min(_PICKED, rows),), device=device)
        torch.index_select(table, 0, picked)
        synchronize(device)
        began = time.perf_counter()
        for _ in range(_TIMES):
            torch.index_select(table, 0, picked)
        synchronize(device)
        elapsed_s = time.perf_counter() - began
    except torch.OutOfMemoryError:
        return None
    moved = _TIMES * len(picked) * (2 * _COLUMNS * table.element_size() + picked.element_size())
    del table, picked
    if is_gpu(device):
        gpu().empty_cache()
    return moved / elapsed_s if elapsed_s else None
