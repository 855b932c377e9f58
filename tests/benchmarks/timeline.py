"""What a timeline of millions of events costs, in CPU time. `python -m tests.benchmarks.timeline [--bytes 450e6]`.

A real trace is repeated until it is that long, read, attributed and indexed; then its screen is drawn with one step,
with many steps and with all of them. The exit code is 1 if a frame takes longer than allowed.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.benchmarks.__main__ import SEED
from tests.benchmarks.replicate import replicate
from tracekit.profile import Profile, open_subject
from tracekit.timeline import Index
from tracekit.tui.timeline.canvas import Inkwell, Palette
from tracekit.tui.timeline.frame import rendered
from tracekit.tui.timeline.state import State
from tracekit.tui.timeline.view import Viewport

FRAME_MS = 30
_TURNS = 20


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="tests.benchmarks.timeline", description=__doc__)
    parser.add_argument("--bytes", type=float, default=450e6, help="of JSON (default: 450e6, two million events)")
    parser.add_argument("--trace", type=Path, default=SEED, help="what to repeat")
    parser.add_argument("--width", type=int, default=320)
    parser.add_argument("--height", type=int, default=60)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tracekit-bench-") as name:
        os.environ["TRACEKIT_CACHE_DIR"] = str(Path(name) / "cache")
        path = Path(name) / "trace.json.gz"
        replicate(options.trace, path, int(options.bytes))
        (profile,) = open_subject([path]).profiles
        return int(_measured(profile, options.width, options.height) > FRAME_MS)


def _measured(profile: Profile, width: int, height: int) -> float:
    """Print what indexing and frames take. Returns the slowest frame in ms."""
    for read in (profile.trace.dur_ns, profile.attribution.pieces, profile.trace.links):  # not part of the index's time
        assert read is not None
    spent, index = _spent(lambda: Index.of(profile), turns=1)
    lanes = [lane for group in index.groups for lane in group.lanes]
    print(f"{len(profile.trace.ts_ns):,} events in {len(lanes)} lanes")
    per_event = spent / len(profile.trace.ts_ns) * 1e6
    print(f"  index          {spent:8.1f} ms, {_held(lanes) / 1e6:.0f} MB, {per_event:.0f} ns an event")
    view = Viewport.of([index])
    slowest = 0.0
    for title, shown in (
        ("all of it", view.everything()),
        ("a tenth", view.everything().zoomed(10)),
        ("a step", view),
        ("a hundredth", view.zoomed(100)),
    ):
        state = State(shown).lane(1)
        frame, _ = _spent(lambda state=state: rendered(state, (), width, height, Inkwell(Palette())))  # type: ignore[misc]
        slowest = max(slowest, frame)
        print(f"  frame, {title:12}{frame:7.1f} ms at {width} × {height}")
    for key, move in (
        ("the next instance", lambda: State(view).lane(1).alike(1)),
        ("the next sync", lambda: State(view).jump(1, "sync")),
    ):
        print(f"  {key:18}{_spent(move)[0]:7.1f} ms")
    return slowest


def _spent(work: Callable[[], Any], turns: int = _TURNS) -> tuple[float, Any]:
    """The CPU time of the fastest run in ms, and its result."""
    best, answer = float("inf"), None
    for _ in range(turns):
        began = time.process_time()
        answer = work()
        best = min(best, (time.process_time() - began) * 1000)
    return best, answer


def _held(lanes: list[Any]) -> int:
    """Bytes of the lanes' columns and of everything computed from them."""
    columns = [array for lane in lanes for array in (lane.start, lane.end, lane.row, lane.category, *lane._pyramid)]
    columns += [array for lane in lanes for pair in lane._busy.values() for array in pair]
    return sum(array.nbytes for array in columns)


if __name__ == "__main__":
    sys.exit(main())
