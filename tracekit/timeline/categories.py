"""Of what kinds are the things on a timeline, and in which colours are they drawn? The buckets of wall and host
time, and two kinds that are no buckets. Hex triplets throughout.
"""

from functools import lru_cache

import numpy as np
from msgspec import Struct

from tracekit.engine import host
from tracekit.engine.buckets import BUCKETS, CODES, of_activities
from tracekit.timeline.lane import NONE, Codes
from tracekit.trace import Trace
from tracekit.trace.roles import OVERHEAD, PYTHON

GPU, HOST, FRAMES = range(3)  # which lanes an event is on: Python frames have lanes of their own


class Category(Struct, frozen=True):
    """A kind: `colour` is a hex triplet, readable on dark and light; `pattern` a character that no other has."""

    key: str
    label: str
    colour: str
    pattern: str


CATEGORIES: tuple[Category, ...] = (
    *(Category(bucket.key, bucket.label, bucket.colour, bucket.pattern) for bucket in BUCKETS.values()),
    Category("region", "annotation", "#7d8ca3", ":"),
    Category("idle", "GPU idle", "#6b7280", "_"),
)
CATEGORY = {category.key: number for number, category in enumerate(CATEGORIES)}
assert all(CATEGORY[key] == code for key, code in CODES.items())  # a bucket's code is its category


class Kinds(Struct, frozen=True, eq=False):  # compared by identity
    """For each event of a trace, its category, and whether it is on `GPU`, `HOST` or `FRAMES`; NONE if on no lane.

    The category is an index into `CATEGORIES`.
    """

    category: Codes
    lanes: Codes

    @staticmethod
    def of(trace: Trace) -> "Kinds":
        """Computed once for each pair of a kind and a name of the trace, then assigned to all its events."""
        rules = host.HostRules.of(trace, blame=False)
        pair = np.arange(len(rules.state))
        roles = trace.labels.roles_of((pair // rules.names).astype(np.int8), pair % rules.names)
        category_of = np.where(rules.state < len(CODES), rules.state, CATEGORY["python"]).astype(np.int8)
        for bit, key in ((host.ANNOTATION, "region"), (host.DATALOAD, "dataload"), (host.COMPILE, "compile")):
            category_of[(rules.bits & bit) != 0] = CATEGORY[key]
        category_of[roles.kind == OVERHEAD] = CATEGORY["profiler"]
        category_of[roles.gpu] = of_activities(roles)[roles.gpu]
        lane_of = np.full(len(pair), NONE, np.int8)
        lane_of[(roles.host | (roles.kind == OVERHEAD)) & ~roles.step] = HOST
        lane_of[roles.kind == PYTHON] = FRAMES
        lane_of[roles.gpu] = GPU
        kinds = Kinds(np.empty(len(trace.ts_ns), np.int8), np.empty(len(trace.ts_ns), np.int8))
        for part in trace.parts():
            pair = trace.labels.kinds[trace.cat_codes[part.selection]] * np.int64(rules.names) + part.name_codes
            kinds.category[part.selection], kinds.lanes[part.selection] = category_of[pair], lane_of[pair]
        kinds.category[trace.links.blocking] = CATEGORY["sync"]
        return kinds


@lru_cache(1 << 12)
def blend(start: str, end: str, share: float) -> str:
    """The colour at a given share of the way from one colour to another."""
    pairs = ((int(start[digit : digit + 2], 16), int(end[digit : digit + 2], 16)) for digit in (1, 3, 5))
    return "#" + "".join(f"{round(low + (high - low) * share):02x}" for low, high in pairs)


@lru_cache(1 << 12)
def readable_on(colour: str) -> str:
    """Black or white, whichever is easier to read on it."""
    red, green, blue = (int(colour[digit : digit + 2], 16) for digit in (1, 3, 5))
    return "#000000" if 0.299 * red + 0.587 * green + 0.114 * blue > 128 else "#ffffff"
