"""Inside which operator, which line of Python, did an event happen?"""

import re
import sys
from typing import TYPE_CHECKING

import numpy as np

from tracekit.intervals import Bools, Ints, Rows, topmost
from tracekit.trace.roles import OPERATOR, PYTHON

if TYPE_CHECKING:
    from tracekit.trace.model import Trace

_FRAME = re.compile(r"(.+)\((\d+)\): (.*)", re.DOTALL)
_LIBRARY = re.compile(
    r"(?:^|[/\\])(?:site-packages|dist-packages|lib[/\\]python\d[\d.]*|torch|torch_geometric)[/\\]|^<"
)


def enclosing(trace: "Trace", rows: Ints | Rows, mask: Bools) -> Ints:
    """For each row the innermost event of `mask` on its own thread that covers its start; −1 where none does."""
    found = np.full(len(rows), -1, np.int64)
    tracks = trace.track[rows]
    for track in np.unique(tracks):
        around = np.flatnonzero(mask & (trace.track == track) & (trace.end_ns > trace.ts_ns))
        around = around[np.lexsort((-trace.end_ns[around], trace.ts_ns[around]))]
        top = topmost(trace.ts_ns[around], trace.end_ns[around])
        asked = tracks == track
        index = top.at(trace.ts_ns[rows[asked]])
        found[asked] = np.where(index >= 0, around[index], -1) if len(around) else -1
    return found


def operators(trace: "Trace", rows: Ints | Rows) -> Ints:
    """The operator that made each call, −1 for none."""
    return enclosing(trace, rows, (trace.roles.kind == OPERATOR) & ~trace.roles.annotation)


def user_frames(trace: "Trace", rows: Ints) -> Ints:
    """The innermost Python frame of the user's own code around each event; −1 without stacks."""
    if not (trace.roles.kind == PYTHON).any():
        return np.full(len(rows), -1, np.int64)
    own = np.fromiter((is_users(name) for name in trace.names), bool, len(trace.names))
    return enclosing(trace, rows, (trace.roles.kind == PYTHON) & own[trace.name_codes])


def is_users(frame: str) -> bool:
    """Whether a Python frame, as the profiler names it, is the user's: no library, no standard library, no C."""
    found = _FRAME.fullmatch(frame)
    if found is None or _LIBRARY.search(found[1]):
        return False
    top = re.split(r"[/\\]", found[1])[0].removesuffix(".py")
    return top not in sys.stdlib_module_names


def labels(trace: "Trace", rows: Ints) -> list[str | None]:
    """The names of rows; None for −1."""
    names, codes = trace.names, trace.name_codes
    return [names[codes[row]] if row >= 0 else None for row in rows.tolist()]
