"""Inside which operator, which line of Python, did an event happen?"""

import re
import sys
from typing import TYPE_CHECKING

import numpy as np

from tracekit.intervals import Bools, Ints, Rows, topmost
from tracekit.trace.roles import OPERATOR, PYTHON, RUNTIME

if TYPE_CHECKING:
    from tracekit.trace.model import Trace

_INNER_FIRST = {PYTHON: 0, OPERATOR: 1, RUNTIME: 2}  # of equal intervals the higher lies inside
_FRAME = re.compile(r"(.+)\((\d+)\): (.*)", re.DOTALL)
_LIBRARY = re.compile(
    r"(?:^|[/\\])(?:site-packages|dist-packages|lib[/\\]python\d[\d.]*|torch|torch_geometric)[/\\]|^<"
)


def nested(trace: "Trace", rows: Ints) -> Ints:
    """From the outermost to the innermost: by start, then by end downwards, then by kind, then by name."""
    ts, end = trace.ts_ns[rows], trace.end_ns[rows]
    order = np.argsort(ts, kind="stable")
    rows, ts, end = rows[order], ts[order], end[order]
    ties = np.flatnonzero(ts[1:] == ts[:-1])
    if not len(ties):
        return rows
    tied = np.zeros(len(rows), bool)
    tied[ties] = tied[ties + 1] = True
    chosen = rows[tied]
    kinds = np.array([_INNER_FIRST.get(kind, 1) for kind in trace.roles.kind[chosen].tolist()])
    by_name = np.argsort(np.argsort(np.array(trace.names, object))) if len(trace.names) else np.zeros(0, np.int64)
    order = np.lexsort((trace.links.sync[chosen], by_name[trace.name_codes[chosen]], kinds, -end[tied], ts[tied]))
    rows[tied] = chosen[order]
    return rows


def enclosing(trace: "Trace", rows: Ints | Rows, mask: Bools) -> Ints:
    """For each row the innermost event of `mask` on its own thread that covers its start; −1 where none does."""
    found = np.full(len(rows), -1, np.int64)
    tracks = trace.track[rows]
    for track in np.unique(tracks):
        around = np.flatnonzero(mask & (trace.track == track) & (trace.end_ns > trace.ts_ns))
        around = nested(trace, around)
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
