"""When does a script evaluate, by its calls? Between an `eval()` and the next `train()` of a module, and where
gradients are off around a call of one; never where a backward pass runs: a frozen layer is in evaluation mode while it
trains.
"""

import re
from collections.abc import Iterator, Sequence

import numpy as np

from tracekit.intervals import Bools, Ints
from tracekit.lines.spans import Spans

_OFF = re.compile(r"(?:.*/)?torch/autograd/grad_mode\.py\(\d+\): (__enter__|__exit__)")
_MODE = re.compile(r"(?:.*/)?torch/nn/modules/module\.py\(\d+\): (eval|train)")
SAVES = re.compile(r"(?:.*/)?torch/serialization\.py\(\d+\): save")


def evaluations(frames: Spans, names: Sequence[str], modules: Spans, backward: Spans) -> tuple[Ints, Ints]:
    """Their starts and ends, without overlaps; `modules` and `backward` are the outermost calls of each."""
    off = np.array([*_regions(frames, names)], np.int64).reshape(-1, 2)
    off = off[_holds(off, modules.starts)]
    modes = np.array([*_modes(frames, names)], np.int64).reshape(-1, 2)
    both = np.concatenate((off, modes))
    both = both[~_holds(both, backward.starts)]
    both = both[np.lexsort((-both[:, 1], both[:, 0]))]
    reach = np.maximum.accumulate(both[:, 1]) if len(both) else both[:, 1]
    opens = np.concatenate(([True], both[1:, 0] > reach[:-1])) if len(both) else np.zeros(0, bool)
    first = np.flatnonzero(opens)
    last = np.append(first[1:], len(both)) - 1 if len(first) else first
    return both[first, 0], reach[last]


def _holds(regions: Ints, moments: Ints) -> Bools:
    """Which of them hold any of these moments."""
    ordered = np.sort(moments)
    held: Bools = np.searchsorted(ordered, regions[:, 1]) > np.searchsorted(ordered, regions[:, 0])
    return held


def _regions(frames: Spans, names: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The outermost regions in which gradients are off, as far as both ends were recorded."""
    entered: list[int] = []
    for span, name in enumerate(names):
        match = _OFF.fullmatch(name)
        if match is not None and match[1] == "__enter__":
            entered.append(int(frames.starts[span]))
        elif match is not None and entered:
            began = entered.pop()
            if not entered:
                yield began, int(frames.ends[span])


def _modes(frames: Spans, names: Sequence[str]) -> Iterator[tuple[int, int]]:
    """From each `eval()` to the next `train()` that no `eval()` makes."""
    began, evaluated = None, -1
    for span, name in enumerate(names):
        match, start = _MODE.fullmatch(name), int(frames.starts[span])
        if match is None:
            continue
        if match[1] == "eval":
            began = start if began is None else began
            evaluated = max(evaluated, int(frames.ends[span]))
        elif start >= evaluated and began is not None:
            yield began, start
            began = None
