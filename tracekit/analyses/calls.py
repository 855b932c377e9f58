"""Runtime calls by name and by the operator that made them, as numbers: what their groups are made of."""

import numpy as np

from tracekit.analyses.grouping import Names
from tracekit.intervals import Ints
from tracekit.trace import Trace
from tracekit.trace.roles import bare


class BareNames:
    """Numbers for the names of runtime calls, without version suffixes."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._numbers: dict[str, int] = {}
        self._of_code: dict[int, int] = {}

    def of(self, rows: Ints) -> Ints:
        """The number of each call's name."""
        codes, which = np.unique(self._trace.name_codes[rows], return_inverse=True)
        for code in codes.tolist():
            if code not in self._of_code:
                self._of_code[code] = self._numbers.setdefault(bare(self._trace.names[code]), len(self._numbers))
        return np.array([self._of_code[code] for code in codes.tolist()], np.int64)[which]

    @property
    def texts(self) -> list[str]:
        """What the numbers stand for."""
        return list(self._numbers)


def keys_of(trace: Trace, names: BareNames, calls: Ints) -> Ints:
    """One number for each call's name and operator."""
    maker = trace.operators.of(calls)
    operator = np.where(maker >= 0, trace.name_codes[maker].astype(np.int64) + 1, 0)
    return names.of(calls) * (len(trace.names) + 1) + operator


def names_of(trace: Trace, names: BareNames) -> Names:
    """What such numbers stand for."""
    width = len(trace.names) + 1

    def call(key: int) -> str:
        return names.texts[key // width]

    def operator(key: int) -> str | None:
        return trace.names[key % width - 1] if key % width else None

    return {"call": call, "operator": operator}
