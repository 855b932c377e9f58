"""How quick the terminal UI is: its first frame, a trace that was read before, a key, a frame of the timeline.

    python -m tests.benchmarks.tui [--bytes 1e9] [--trace SEED.json.gz] [--rows 2e6]

What the pilot itself costs is taken off: that of a key which does nothing. CPU seconds stand beside seconds, for a
machine that is busy disturbs them less.
"""

import argparse
import asyncio
import os
import pty
import resource
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
from textual.app import App, ComposeResult

from tests.benchmarks.__main__ import SEED
from tests.benchmarks.replicate import replicate
from tracekit.trace.schema import column
from tracekit.tui.app import TracekitApp, build_app
from tracekit.tui.model.sheet import Sheet
from tracekit.tui.widgets.grid import Grid
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
        # Compiled, as an installed package is.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
        _print_time("read for the first time", *_on_screen(trace, b"Overview"))
        _print_time("first frame", *min(_on_screen(trace, b"Reading") for _ in range(5)))
        _print_time("usable, read before", *min(_on_screen(trace, b"Overview") for _ in range(5)))
        asyncio.run(_keys(trace))
    asyncio.run(_table(int(options.rows)))
    return 0


def _print_time(what: str, seconds: float, cpu: float | None = None) -> None:
    print(
        f"{what:<40} {1000 * seconds:9.1f} ms" + (f" {1000 * cpu:9.1f} ms CPU" if cpu is not None else ""), flush=True
    )


def _on_screen(trace: Path, word: bytes) -> tuple[float, float]:
    """Seconds and CPU seconds from the start of the command until that is drawn."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (45, 160))
    began, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "tracekit", "tui", str(trace)]
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    drawn = b""
    try:
        while word not in drawn and time.perf_counter() - began < _LATEST:
            if select.select([master], [], [], 0.01)[0]:
                drawn += os.read(master, 1 << 16)
        seconds = time.perf_counter() - began
    finally:
        process.kill()
        process.wait()
        os.close(master)
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime


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
            _print_time(f"{what}: {events:,} events, {rows:,} rows", seconds - nothing[0], cpu - nothing[1])
        await _go(app, pilot, "t")
        view = app.query_one(LanesView)
        while view.state is None:
            await pilot.pause(0.05)
        seconds, cpu = await _pressed(pilot, "plus")
        _print_time("timeline: zoom", seconds - nothing[0], cpu - nothing[1])
        frames = [_timed(lambda: (view._redraw(), view._drawn())) for _ in range(_TURNS)]
        _print_time("timeline: a frame of 160 columns", statistics.median(frames))


async def _settled(app: TracekitApp, pilot: Any) -> None:
    while app.opened is None or app.shown != app.now or app.is_reading:
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


class _Alone(App[None]):
    """A table that fills the screen."""

    def __init__(self, sheet: Sheet) -> None:
        super().__init__()
        self.grid = Grid(sheet)

    def compose(self) -> ComposeResult:
        yield self.grid

    def on_mount(self) -> None:
        self.grid.styles.height = "100%"
        self.grid.focus()


async def _table(rows: int) -> None:
    """A long table: what showing, sorting and filtering it cost, less what a table of one row does."""
    await _shown(1)  # what is imported on the way
    nothing = await _shown(1)
    for what, seconds in (await _shown(rows)).items():
        _print_time(f"{what} {rows:,} rows", seconds[0] - nothing[what][0], seconds[1] - nothing[what][1])


async def _shown(rows: int) -> dict[str, tuple[float, float]]:
    """Seconds and CPU seconds of each."""
    took = {}
    began, used = time.perf_counter(), time.process_time()
    app = _Alone(_long_sheet(rows))
    async with app.run_test(size=(160, 45)) as pilot:
        await pilot.pause()
        took["mount"] = time.perf_counter() - began, time.process_time() - used
        for what, key in (("sort by text", "o"), ("sort by numbers", "o"), ("turn", "O"), ("page", "pagedown")):
            began, used = time.perf_counter(), time.process_time()
            await pilot.press(key)
            await pilot.pause()
            took[what] = time.perf_counter() - began, time.process_time() - used
        began, used = time.perf_counter(), time.process_time()
        app.grid.change(app.grid.sheet.filtered("kernel_17"))
        await pilot.pause()
        took["filter"] = time.perf_counter() - began, time.process_time() - used
    return took


def _long_sheet(rows: int) -> Sheet:
    names = pa.DictionaryArray.from_arrays(
        pa.array(np.arange(rows) % 300, pa.int32()), pa.array([f"kernel_{k}" for k in range(300)])
    )
    durations = np.random.default_rng(1).integers(1, 1 << 20, rows)
    fields = [column("name", names.type, "", role="kernel"), column("dur_ns", pa.int64(), "", "ns")]
    return Sheet("long", pa.Table.from_arrays([names, pa.array(durations)], schema=pa.schema(fields)))


if __name__ == "__main__":
    sys.exit(main())
