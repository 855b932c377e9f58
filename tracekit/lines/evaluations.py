"""When does a script evaluate, by its calls? Between an `eval()` and the next `train()` of a module, and where
gradients are off around a call of one; never where a backward pass runs: a frozen layer is in evaluation mode while it
trains.
"""

import re
from collections.abc import Iterator

import numpy as np

from tracekit.base.intervals import Bools, Ints
from tracekit.lines.spans import Spans

ENTER, EXIT, TO_EVAL, TO_TRAIN, SAVE = range(1, 6)  # 0 is any other frame
_FRAMES = {
    ENTER: re.compile(r"(?:.*/)?torch/autograd/grad_mode\.py\(\d+\): __enter__"),
    EXIT: re.compile(r"(?:.*/)?torch/autograd/grad_mode\.py\(\d+\): __exit__"),
    TO_EVAL: re.compile(r"(?:.*/)?torch/nn/modules/module\.py\(\d+\): eval"),
    TO_TRAIN: re.compile(r"(?:.*/)?torch/nn/modules/module\.py\(\d+\): train"),
    SAVE: re.compile(r"(?:.*/)?torch/serialization\.py\(\d+\): save"),
}


def call_of(name: str) -> int:
    """Which of torch's functions a frame is."""
    return next((call for call, pattern in _FRAMES.items() if pattern.fullmatch(name)), 0)


def evaluations(frames: Spans, calls: Ints, evaluating: Spans, training: Spans, backward: Spans) -> tuple[Ints, Ints]:
    """Their starts and ends, in order; `calls` says what each frame is. Of the outermost calls of modules, autograd
    numbers the operators of those in training: a region in which gradients are switched on has the same frames."""
    off = np.array([*_without_gradients(frames, calls)], np.int64).reshape(-1, 2)
    modes = np.array([*_in_evaluation_mode(frames, calls)], np.int64).reshape(-1, 2)
    off = off[_holds(off, evaluating.starts) & ~_holds(off, training.starts)]
    regions = np.concatenate((off, modes))
    regions = regions[~_holds(regions, backward.starts)]
    regions = regions[np.lexsort((-regions[:, 1], regions[:, 0]))]
    reach = np.maximum.accumulate(regions[:, 1])
    first = np.flatnonzero(np.concatenate((np.ones(len(regions[:1]), bool), regions[1:, 0] > reach[:-1])))
    return regions[first, 0], reach[np.append(first[1:], len(regions))[: len(first)] - 1]


def _holds(regions: Ints, moments: Ints) -> Bools:
    """Which of them hold any of these moments."""
    ordered = np.sort(moments)
    held: Bools = np.searchsorted(ordered, regions[:, 1]) > np.searchsorted(ordered, regions[:, 0])
    return held


def _without_gradients(frames: Spans, calls: Ints) -> Iterator[tuple[int, int]]:
    """The outermost regions in which gradients are off, as far as both ends were recorded."""
    entered: list[int] = []
    for span in np.flatnonzero((calls == ENTER) | (calls == EXIT)).tolist():
        if calls[span] == ENTER:
            entered.append(int(frames.starts[span]))
        elif entered:
            began = entered.pop()
            if not entered:
                yield began, int(frames.ends[span])


def _in_evaluation_mode(frames: Spans, calls: Ints) -> Iterator[tuple[int, int]]:
    """From each `eval()` to the next `train()` that no `eval()` makes."""
    began, switched = None, -1
    for span in np.flatnonzero((calls == TO_EVAL) | (calls == TO_TRAIN)).tolist():
        start = int(frames.starts[span])
        if calls[span] == TO_EVAL:
            began = start if began is None else began
            switched = max(switched, int(frames.ends[span]))
        elif start >= switched and began is not None:
            yield began, start
            began = None
