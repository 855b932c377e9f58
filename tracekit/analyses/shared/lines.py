"""The line of yours that costs most in each group of events."""

from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa

from tracekit.intervals import Ints, Rows
from tracekit.profile import Profile
from tracekit.profile.where import LINE_COLUMNS, distinct_lines, line_table


class CostliestLines:
    """Takes events some at a time, as `Grouping` does."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._by_text: dict[str, dict[str, Any]] = {}
        self._ns: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))  # group → line → cost

    def add(self, rows: Ints | Rows, group: Ints, ns: Ints) -> None:
        """More events: the group of each, and what it costs."""
        which, lines = distinct_lines(line_table(self._profile, np.asarray(rows, np.int64)))
        self._by_text |= {line["where"]: line for line in lines if line["where"] is not None}
        keys, inverse = np.unique(group * len(lines) + which, return_inverse=True)
        total = np.zeros(len(keys), np.int64)
        np.add.at(total, inverse.reshape(-1), ns)
        for key, cost in zip(keys.tolist(), total.tolist(), strict=True):
            of_group, at = divmod(key, len(lines))
            if (where := lines[at]["where"]) is not None:
                self._ns[of_group][where] += cost

    def columns(self, groups: int) -> dict[str, list[Any]]:
        """The columns of `LINE_COLUMNS`, an entry for each group: nulls where no line of yours is known."""
        costliest = [
            max(of, key=lambda where: (of[where], where)) if (of := self._ns.get(k)) else None for k in range(groups)
        ]
        nothing: dict[str, Any] = dict.fromkeys(LINE_COLUMNS.names)
        lines = [self._by_text.get(where or "", nothing) for where in costliest]
        return {name: [line[name] for line in lines] for name in LINE_COLUMNS.names}


def line_columns(profile: Profile, rows: Ints | Rows) -> dict[str, pa.ChunkedArray]:
    """The columns of `LINE_COLUMNS`, an entry for each event."""
    columns = line_table(profile, np.asarray(rows, np.int64))
    return {name: columns[name] for name in LINE_COLUMNS.names}
