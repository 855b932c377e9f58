"""How quick the terminal UI is: its first frame, a trace that was read before, a key, a frame of the timeline.

    python -m tests.benchmarks.tui [--bytes 1e9] [--trace SEED.json.gz] [--rows 2e6]

What the pilot itself costs is taken off: that of a key which does nothing. CPU seconds stand beside seconds, for a
machine that is busy disturbs them less.
"""

import argparse
import asyncio
import os
import pty
import select
import statistics
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tests.benchmarks.__main__ import SEED
from tests.benchmarks.replicate import replicate
from tracekit.trace.schema import column
from tracekit.tui.app import TracekitApp, build_app
from tracekit.tui.model.sheet import Sheet
from tracekit.tui.widgets.lanes import LanesView

_NOTHING = "f9"  # a key that nothing answers
_TURNS = 25
_LATEST = 600.0  # seconds that any of it may take


def main() -> int:
    """Measure and print, a line each: what, seconds, CPU seconds."""
    parser = argparse.ArgumentParser(prog="tests.benchmarks.tui", description=__doc__)
    parser.add_argument("--bytes", type=float, default=1e9, help="of JSON in the trace (default: 1e9)")
    parser.add_argument("--trace", type=Path, default=SEED, help="what to repeat")
    parser.add_argument("--rows", type=float, default=2e6, help="of the long table (default: 2e6)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tracekit-bench-") as name:
        folder = Path(name)
        os.environ["TRACEKIT_CACHE_DIR"] = str(folder / "cache")
        trace = folder / "long.json.gz"
        replicate(options.trace, trace, int(options.bytes))
        _say("read for the first time", _on_screen(trace, b"Overview"))
        _say("first frame", min(_on_screen(trace, b"Reading") for _ in range(5)))
        _say("usable, read before", min(_on_screen(trace, b"Overview") for _ in range(3)))
        asyncio.run(_keys(trace))
    _table(int(options.rows))
    return 0


def _say(what: str, seconds: float, cpu: float | None = None) -> None:
    print(
        f"{what:<40} {1000 * seconds:9.1f} ms" + (f" {1000 * cpu:9.1f} ms CPU" if cpu is not None else ""), flush=True
    )


def _on_screen(trace: Path, word: bytes) -> float:
    """Seconds from the start of the command until that is drawn."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (45, 160))
    began = time.perf_counter()
    command = [sys.executable, "-m", "tracekit", "tui", str(trace)]
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    drawn = b""
    try:
        while word not in drawn and time.perf_counter() - began < _LATEST:
            if select.select([master], [], [], 0.01)[0]:
                drawn += os.read(master, 1 << 16)
        return time.perf_counter() - began
    finally:
        process.kill()
        process.wait()
        os.close(master)


async def _keys(trace: Path) -> None:
    app = build_app([trace])
    async with app.run_test(size=(160, 45)) as pilot:
        await _settled(app, pilot)
        await _go(app, pilot, "2")
        await _go(app, pilot, "enter")
        events = len(app.opened.report.profiles[0].trace.ts_ns) if app.opened is not None else 0
        rows = len(app.grid.sheet) if app.grid is not None else 0
        nothing = await _pressed(pilot, _NOTHING)
        for what, key in (("down", "down"), ("page down", "pagedown"), ("sort", "o")):
            seconds, cpu = await _pressed(pilot, key)
            _say(f"{what}: {events:,} events, {rows:,} rows", seconds - nothing[0], cpu - nothing[1])
        await _go(app, pilot, "t")
        view = app.query_one(LanesView)
        while view.state is None:
            await pilot.pause(0.05)
        seconds, cpu = await _pressed(pilot, "plus")
        _say("timeline: zoom", seconds - nothing[0], cpu - nothing[1])
        frames = [_timed(lambda: (view._redraw(), view._drawn())) for _ in range(_TURNS)]
        _say("timeline: a frame of 160 columns", statistics.median(frames))


async def _settled(app: TracekitApp, pilot: Any) -> None:
    while app.opened is None or app.shown != app.now:
        await pilot.pause(0.02)
    await pilot.pause()


async def _go(app: TracekitApp, pilot: Any, key: str) -> None:
    await pilot.press(key)
    await _settled(app, pilot)


async def _pressed(pilot: Any, key: str) -> tuple[float, float]:
    """Median seconds and CPU seconds of a key, until it is answered on screen."""
    seconds, cpu = [], []
    for _ in range(_TURNS):
        began, used = time.perf_counter(), time.process_time()
        await pilot.press(key)
        seconds.append(time.perf_counter() - began)
        cpu.append(time.process_time() - used)
    return statistics.median(seconds), statistics.median(cpu)


def _timed(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _table(rows: int) -> None:
    """A long table without a screen: what showing, sorting and filtering it cost."""
    names = pa.DictionaryArray.from_arrays(
        pa.array(np.arange(rows) % 300, pa.int32()), pa.array([f"kernel_{k}" for k in range(300)])
    )
    durations = np.random.default_rng(1).integers(1, 1 << 20, rows)
    fields = [column("name", names.type, "", role="kernel"), column("dur_ns", pa.int64(), "", "ns")]
    sheet = Sheet("long", pa.Table.from_arrays([names, pa.array(durations)], schema=pa.schema(fields)))
    steps: dict[str, Callable[[], object]] = {
        "show": lambda: (sheet.widths, sheet.cells(0, 40)),
        "sort": lambda: sheet.sorted_by("dur_ns", True).cells(0, 40),
        "filter": lambda: sheet.filtered("kernel_17").cells(0, 40),
    }
    for what, work in steps.items():
        _say(f"{what} {rows:,} rows", _timed(work))


if __name__ == "__main__":
    sys.exit(main())
