"""The machinery of attribution: a trace's time in blocks, and what each block has to know about its neighbours.

The bucket of a moment depends on what covers that moment, with three exceptions: whether the autograd engine is at work
between two events of a helper (§5), what ends a gap of the GPU, and which sync drained its queue (§6). For these a
block knows what came before, and looks ahead if it must. The answer is therefore the same however time is cut, and
memory does not grow with the trace.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracekit.base.intervals import NO_INTS, Bools, Ints, Union
from tracekit.engine.host import HostRules, HostView, driving_states, first_to_last, host_view, overhead
from tracekit.engine.wall import Gaps, WallView, activity, find_gaps, wall_view, without_gpu
from tracekit.trace.roles import OVERHEAD, PYTHON, RUNTIME, SET
from tracekit.trace.rows import Block, Blocks, Events

if TYPE_CHECKING:
    from tracekit.trace.model import Trace

SIZE = 1 << 16  # events that start in one block
_GLANCE = 1 << 10  # events that are looked at first when a block looks ahead


class BlockViews(Struct, frozen=True):
    """Both views of a block of the analysed window; `wall` is None where that view cannot be answered."""

    host: HostView
    wall: WallView | None


def block_views(trace: "Trace", *, with_wall: bool, blame: bool, size: int = SIZE) -> Iterator[BlockViews]:
    """The analysed window from its start to its end. Without `blame`, no event is named but syncs: that is faster."""
    return _Walk(trace, HostRules.of(trace, blame), with_wall, size).in_order()


class _Walk:
    """Goes through the blocks, and remembers what a block has to know of those before it."""

    def __init__(self, trace: "Trace", rules: HostRules, with_wall: bool, size: int) -> None:
        self._trace, self._with_wall = trace, with_wall
        self._window = trace.steps.window
        self._rules = rules
        self._gpu = trace.device == "gpu"
        driving = trace.threads.is_driving

        def takes_part(part: Events) -> Bools:
            kind = part.roles.kind
            takes_part: Bools = part.lasting & (
                (kind <= SET) | (kind == OVERHEAD) | (part.roles.host & driving[part.track])
            )
            return takes_part

        self._blocks = Blocks(trace, takes_part, size)
        self._helped = False  # the main thread is idle, and since it is, a helper has been at work
        self._foreseen = (self._window[0], False)  # up to a moment: whether a helper will be at work before it
        self._gap: Gaps | None = None  # the gap of the GPU that is open
        self._coming = 0  # the next lasting activity of the GPU is at this row, or after it

    def in_order(self) -> Iterator[BlockViews]:
        """Block by block."""
        start, end = self._window
        for block in self._blocks:
            low, high = max(block.low, start), min(block.high, end)
            if low < high:
                yield self._views(block, low, high)
            if block.high >= end:
                return

    def _views(self, block: Block, low: int, high: int) -> BlockViews:
        kind = self._trace.kinds[block.rows]
        host = self._host(block, kind, low, high)
        if not self._with_wall:
            return BlockViews(host, None)
        if not self._gpu:
            return BlockViews(host, without_gpu(host))
        rows = block.rows[kind <= SET]
        gpu = activity(self._trace, rows, low, high)
        gaps = self._gaps(gpu.busy.gaps(low, high), rows, host, high, block.stop)
        self._gap = gaps.last() if len(gaps.start) and gaps.end[-1] > high else None
        return BlockViews(host, wall_view(gpu, gaps, host, low, high))

    # ------------------------------------------------------------------ host

    def _host(self, block: Block, kind: NDArray[np.int8], low: int, high: int) -> HostView:
        tools = overhead(self._trace, block.rows[kind == OVERHEAD], low, high)
        rows = block.rows[(kind >= RUNTIME) & (kind <= PYTHON)]
        threads = driving_states(self._trace, self._rules, rows, low, high, *(union.edges for union in tools))
        # Whether the main thread is idle at the end, and a helper has been at work since it became idle.
        spoke = np.flatnonzero(~threads.idle)
        since = int(spoke[-1]) + 1 if len(spoke) else 0
        works = bool(threads.working[since:].any()) or (since == 0 and self._helped)
        helped = since < len(threads.idle) and works
        after = helped and not threads.working[-1] and self._helper_comes_back(block, high)
        is_backward = first_to_last(threads.idle, threads.working, self._helped, after)
        self._helped = helped
        return host_view(threads, is_backward, self._rules, tools)

    def _helper_comes_back(self, block: Block | None, moment: int) -> bool:
        """Whether a helper is at work again before the main thread is, from the end of a block on."""
        if moment < self._foreseen[0]:
            return self._foreseen[1]
        end, size = self._window[1], _GLANCE  # mostly a short look is enough
        self._foreseen = end, False
        while block is not None and block.high < end and (block := self._blocks.after(block, size)) is not None:
            size = min(2 * size, SIZE)
            kind = self._trace.kinds[block.rows]
            rows = block.rows[(kind >= RUNTIME) & (kind <= PYTHON)]
            threads = driving_states(self._trace, self._rules, rows, block.low, min(block.high, end))
            busy, works = threads.first(~threads.idle), threads.first(threads.working & threads.idle)
            if works is not None and (busy is None or works < busy):
                self._foreseen = works, True
                break
            if busy is not None:
                self._foreseen = busy, False
                break
        return self._foreseen[1]

    # ------------------------------------------------------------------ wall

    def _gaps(self, idle: Union, rows: Ints, host: HostView, high: int, following: int) -> Gaps:
        """The gaps of a block: the open one, and those that begin here, each with its true end."""
        if self._gap is not None:
            idle = Union(idle.starts[1:], idle.ends[1:])
        if len(idle.ends) and idle.ends[-1] == high < self._window[1]:
            comes, enders = self._next_activity(following)
            idle.ends[-1] = min(comes, self._window[1])
            rows = np.concatenate((rows, enders))
        elif high == self._window[1]:
            rows = np.concatenate((rows, self._next_activity(following)[1]))
        new = find_gaps(self._trace, host, idle, rows, self._window[1])
        return new if self._gap is None else self._gap.before(new)

    def _next_activity(self, row: int) -> tuple[int, Ints]:
        """When the next lasting activity of the GPU starts, at that row or after it, and all that start then."""
        trace = self._trace
        self._coming = max(self._coming, row)
        while self._coming < len(trace.ts_ns):
            end = min(self._coming + 4096, len(trace.ts_ns))
            part = trace.events_at(slice(self._coming, end))
            activities = part.rows(part.roles.gpu & part.lasting)
            self._coming = int(activities[0]) if len(activities) else end
            if len(activities):
                moment = int(trace.ts_ns[self._coming])
                part = trace.events_at(slice(self._coming, int(np.searchsorted(trace.ts_ns, moment, side="right"))))
                return moment, part.rows(part.roles.gpu & part.lasting)
        return self._window[1] + 1, NO_INTS
