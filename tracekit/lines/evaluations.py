"""When does a script evaluate, by its calls? Between an `eval()` and the next `train()` of a module, and where
gradients are off around a call of one; never where a backward pass runs: a frozen layer is in evaluation mode while it
trains.
"""

import re

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
    without_gradients: list[tuple[int, int]] = []  # the outermost ones, as far as both ends were recorded
    in_evaluation_mode: list[tuple[int, int]] = []  # from each `eval()` to the next `train()` that no `eval()` makes
    entered: list[int] = []
    began, switched = None, -1
    switches = np.isin(calls, (ENTER, EXIT, TO_EVAL, TO_TRAIN))
    for call, start, end in zip(*(c[switches].tolist() for c in (calls, frames.starts, frames.ends)), strict=True):
        if call == ENTER:
            entered.append(start)
        elif call == EXIT and entered:
            outermost = entered.pop()
            if not entered:
                without_gradients.append((outermost, end))
        elif call == TO_EVAL:
            began = start if began is None else began
            switched = max(switched, end)
        elif call == TO_TRAIN and start >= switched and began is not None:
            in_evaluation_mode.append((began, start))
            began = None
    ungraded = np.array(without_gradients, np.int64).reshape(-1, 2)
    ungraded = ungraded[_holds(ungraded, evaluating.starts) & ~_holds(ungraded, training.starts)]
    regions = np.concatenate((ungraded, np.array(in_evaluation_mode, np.int64).reshape(-1, 2)))
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
