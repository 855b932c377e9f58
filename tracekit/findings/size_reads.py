"""Does the host wait to read a number that it then makes a tensor of: count, read back, allocate, launch?"""

import re

import numpy as np

from tracekit.findings.culprits import outermost_operators
from tracekit.intervals import Ints
from tracekit.profile import Profile
from tracekit.trace.enclosing import outermost
from tracekit.trace.rereading.arguments import arguments
from tracekit.trace.roles import OPERATOR

_COUNTS = re.compile(r"aten::(max|amax|sum|count_nonzero|bincount|cumsum)")
_ALLOCATES = re.compile(r"aten::(new_)?(zeros|empty|full|ones|arange)")
_WHOLE = ("long", "long int", "int", "bool")  # types: a size is no fraction, as a loss is
_NEAR = 2  # operators on either side
_LOOKED_NS = 5_000_000


def made_of_what_is_read(profile: Profile, call: int) -> str | None:
    """The operator that allocates a tensor whose size this waiting call reads back; None if it reads anything else.

    What is read was counted in whole numbers by one of the operators right before, which takes a recording with shapes
    to know.
    """
    trace = profile.trace
    (read,) = outermost_operators(profile, np.array([call], np.int64)).tolist()
    if read < 0:
        return None
    around = _neighbours(profile, read)
    names = [trace.names[code] for code in trace.name_codes[around].tolist()]
    at = around.tolist().index(read)
    counts = [int(around[k]) for k in range(max(at - _NEAR, 0), at) if _COUNTS.fullmatch(names[k])]
    made = next(filter(_ALLOCATES.fullmatch, names[at + 1 : at + 1 + _NEAR]), None)
    if made is None or not counts:
        return None
    known = arguments(trace, np.array(counts, np.int64))
    types = [each.types[0] for each in known.values() if each.types]
    return made if any(kind in _WHOLE for kind in types) else None


def _neighbours(profile: Profile, operator: int) -> Ints:
    """The outermost operators of its thread around that time, in order."""
    trace = profile.trace
    start = int(trace.ts_ns[operator])
    end = start + int(trace.dur_ns[operator])
    low, high = np.searchsorted(trace.ts_ns, [start - _LOOKED_NS, end + _LOOKED_NS]).tolist()
    rows = np.arange(low, high, dtype=np.int64)
    roles = trace.events_at(rows).roles
    same = trace.track[rows] == trace.track[operator]
    return outermost(trace, rows[same & (roles.kind == OPERATOR) & ~roles.annotation & (trace.dur_ns[rows] > 0)])
