"""Short labels for events on a timeline: the part of the name that people look for."""

import re
from functools import lru_cache

from tracekit.base.units import duration
from tracekit.timeline.categories import CATEGORIES
from tracekit.timeline.index import Group, Index
from tracekit.vocabulary.kernel_names import short_kernel

_NAMESPACES = re.compile(r"(?:autograd::engine::evaluate_function: |aten::|c10d?::|nn\.Module: |torch::autograd::)")
_FRAME = re.compile(r".*\.py\(\d+\): (.*)", re.DOTALL)
_BUILT_IN = re.compile(r"<built-in (?:method|function) (\S+).*>", re.DOTALL)


def labels(index: Index, group: Group, depth: int, position: int) -> tuple[str, ...]:
    """The short name of an event, the bucket and culprit of a stretch of wall time, the length of a gap.

    Returns the possible labels, the longest first. They are text of the trace, which a face has to sanitize.
    """
    lane = group.lanes[depth]
    if group.family == "idle":
        return (duration(int(lane.end[position] - lane.start[position])),)
    if group.family == "wall":
        bucket = CATEGORIES[int(lane.category[position])].label
        if lane.row[position] < 0:
            return (bucket,)
        return f"{bucket}: {short_name(index.name(int(lane.row[position])), on_gpu=False)}", bucket
    return (short_name(index.name(int(lane.row[position])), group.family == "gpu"),)


def short_name(name: str, on_gpu: bool) -> str:
    """`addmm` for `aten::addmm`, `forward` for `model.py(12): forward`, and for a kernel, what it computes."""
    return short_kernel(name) if on_gpu else _short_on_host(name)


@lru_cache(1 << 14)
def _short_on_host(name: str) -> str:
    frame = _FRAME.fullmatch(name) or _BUILT_IN.fullmatch(name)
    return frame[1] if frame else _NAMESPACES.sub("", name)
