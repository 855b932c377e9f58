"""Which kernels are attention that is computed a step at a time: batched products with a softmax between them?"""

import re
from typing import NamedTuple

import numpy as np

from tracekit.findings.kernels import kernels, operator_names
from tracekit.intervals import Ints
from tracekit.profile import Profile

_PRODUCT = re.compile(r"aten::(bmm|baddbmm)(_out)?")
_SOFTMAX = re.compile(r"aten::_?(safe_)?softmax(_backward_data)?(_out)?")
_BETWEEN = re.compile(
    r"aten::(mul|div|add|sub|masked_fill|where|tril|triu|native_dropout(_backward)?|dropout|bernoulli|fill|zero|copy|clone"
    r"|_to_copy|to|contiguous|_?softmax|expand|neg)_?"
)
_MOST = 8  # kernels between a product and the softmax: scaling, masks, dropout, changes of the type
_PRODUCTS = 2  # on either side; in the backward pass, a product has two gradients
_NO, _IS_PRODUCT, _IS_SOFTMAX, _IS_BETWEEN = range(4)


class Attention(NamedTuple):
    """The kernels of all counted steps that compute attention, and the softmax in each."""

    rows: Ints
    softmax: Ints


def attention(profile: Profile) -> Attention:
    """The attention that the operators of the program spell out.

    On one stream and in one step, a softmax belongs to attention if products of batches of matrices come right before
    and right after it, with nothing but scaling, masking, dropout and copies in between.
    """
    trace = profile.trace
    rows = kernels(profile, lambda events: ~events.roles.communication)
    launches = trace.links.launch(rows)
    rows = rows[np.lexsort((launches, trace.track[rows]))]
    operators, steps = operator_names(profile, rows), trace.steps.of(trace.ts_ns[trace.links.launch(rows)])
    queue = np.stack((trace.track[rows].astype(np.int64), steps.astype(np.int64)))
    names = trace.names
    kinds = np.array([_kind(name) for name in names] + [_NO], np.int64)[operators]  # −1, for none, is the last
    chosen, found = np.zeros(len(rows), bool), []
    for at in np.flatnonzero(kinds == _IS_SOFTMAX).tolist():
        before, after = (_reach(kinds, queue, at, direction) for direction in (-1, 1))
        if before is not None and after is not None:
            chosen[before : after + 1] = True
            found.append(at)
    return Attention(np.sort(rows[chosen]), np.sort(rows[found]))


def _kind(name: str) -> int:
    patterns = ((_PRODUCT, _IS_PRODUCT), (_SOFTMAX, _IS_SOFTMAX), (_BETWEEN, _IS_BETWEEN))
    return next((kind for pattern, kind in patterns if pattern.fullmatch(name)), _NO)


def _reach(kinds: Ints, queue: Ints, at: int, direction: int) -> int | None:
    """The outermost product on that side of the softmax; None where none comes next to it."""
    products: list[int] = []
    for distance in range(1, _MOST + _PRODUCTS + 1):
        index = at + direction * distance
        if not 0 <= index < len(kinds) or (queue[:, index] != queue[:, at]).any() or kinds[index] == _NO:
            break
        if kinds[index] == _IS_PRODUCT:
            products.append(index)
        elif products or kinds[index] == _IS_SOFTMAX or distance > _MOST:
            break
        if len(products) == _PRODUCTS:
            break
    return products[-1] if products else None
