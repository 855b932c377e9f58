"""How fast the terminal UI is: its first frame, a trace that was read before, keys, quitting, a long table.

    python -m tests.benchmarks.tui [--bytes 600e6] [--trace SEED.json.gz] [--rows 2e6]

Keys are pressed on a pseudo-terminal of 160 × 45 cells, and the clock runs from the bytes of the key to the last byte
that the app draws in response. Only the app is measured in this way: Textual's pilot, which the tests use, waits after
each key in slices of 20 ms until the process idles, for 40 to 60 ms in all, however soon the key was answered. CPU
seconds are shown beside seconds, because a busy machine disturbs them less. The exit code is 1 if the median of a key
is more than 50 ms.
"""

import argparse
import asyncio
import os
import resource
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
from textual.app import App, ComposeResult

from tests.benchmarks.__main__ import SEED
from tests.benchmarks.replicate import replicate
from tests.terminal import Terminal, terminal
from tracekit.profile import open_subject
from tracekit.trace.schema import column
from tracekit.tui.model.sheet import Sheet
from tracekit.tui.widgets.grid import Grid

_KEY_MS = 50
_TURNS = 20
_PATIENCE_S = 600.0
_SIZE = (160, 45)

# What is measured, the keys that lead there, and the keys pressed in turn.
_KEYS = (
    ("down, in the kernels", (b"2",), (b"\x1b[B", b"\x1b[A")),
    ("another pane", (), (b"3", b"2")),
    ("sort the kernels", (), (b"o", b"O")),
    ("down, in the instances of a kernel", (b"2", b"\r"), (b"\x1b[B", b"\x1b[A")),
    ("page down, there", (), (b"\x1b[6~", b"\x1b[6~")),
    ("sort them", (), (b"o", b"O")),
    ("widen, and narrow again", (), (b"\x1b", b"\r")),
    ("zoom the timeline", (b"t",), (b"+", b"-")),
    ("pan the timeline", (), (b"\x1b[D", b"\x1b[C")),
    ("a key that does nothing", (), (b"\x1b[20~",)),
)
_AWAITED = {"zoom the timeline": b"on the screen"}  # the timeline is indexed first


def main() -> int:
    """Measure everything, and print a line for each result."""
    parser = argparse.ArgumentParser(prog="tests.benchmarks.tui", description=__doc__)
    parser.add_argument("--bytes", type=float, default=600e6, help="of JSON (default: 600e6, two million events)")
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
        _print_time("read for the first time", *_until(trace, b"Overview"))
        _print_time("first frame", *min(_until(trace, b"Reading") for _ in range(5)))
        _print_time("usable, read before", *min(_until(trace, b"Overview") for _ in range(5)))
        (profile,) = open_subject([trace]).profiles
        print(f"{len(profile.trace.ts_ns):,} events:")
        slowest = max(_pressed(trace))
        _print_time("left after the terminal hung up", _left(trace, lambda app: os.close(app.master)))
        _print_time("left after SIGHUP", _left(trace, _hang_up))
    asyncio.run(_table(int(options.rows)))
    return int(slowest > _KEY_MS / 1000)


def _print_time(what: str, seconds: float, cpu: float | None = None) -> None:
    print(
        f"{what:<40} {1000 * seconds:9.1f} ms" + (f" {1000 * cpu:9.1f} ms CPU" if cpu is not None else ""), flush=True
    )


def _until(trace: Path, word: bytes) -> tuple[float, float]:
    """Seconds and CPU seconds from the start of the command until this text is drawn."""
    began, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with terminal(trace, size=_SIZE) as app:
        app.until(word, patience_s=_PATIENCE_S)
        seconds = time.perf_counter() - began
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime


@contextmanager
def _ready(trace: Path) -> Iterator[Terminal]:
    """The app once everything has been read and every question has been answered."""
    with terminal(trace, size=_SIZE) as app:
        app.until(b"wall time", patience_s=_PATIENCE_S)
        app.press(b"")
        yield app


def _pressed(trace: Path) -> Iterator[float]:
    """Print how long each key takes. Returns the medians in seconds."""
    with _ready(trace) as app:
        for what, way, keys in _KEYS:
            for key in way:
                app.press(key)
            app.until(_AWAITED.get(what, b""), patience_s=_PATIENCE_S)
            for key in keys:  # the first time, an answer may have to be computed
                app.press(key)
            answers = [app.press(keys[turn % len(keys)]) for turn in range(_TURNS)]
            last = [answer.last for answer in answers]
            first, median = (statistics.median(each) for each in ([answer.first for answer in answers], last))
            cpu = statistics.mean(answer.cpu for answer in answers)
            print(
                f"  {what:<38} {1000 * median:9.1f} ms {1000 * cpu:9.1f} ms CPU, "
                f"begun after {1000 * first:.1f} ms, slowest {1000 * max(last):.1f} ms",
                flush=True,
            )
            yield median


def _left(trace: Path, end: Callable[[Terminal], None]) -> float:
    with _ready(trace) as app:
        began = time.perf_counter()
        end(app)
        app.process.wait(_PATIENCE_S)
        return time.perf_counter() - began


def _hang_up(app: Terminal) -> None:
    app.process.send_signal(signal.SIGHUP)
    app.until(b"\x1b[?1049l")  # unread output would keep it from writing more


class _Alone(App[None]):
    """A table that fills the screen; `drawn` is when it was last drawn."""

    def __init__(self, sheet: Sheet) -> None:
        super().__init__()
        self.grid = Grid(sheet)
        self.drawn = 0.0

    def compose(self) -> ComposeResult:
        yield self.grid

    def on_mount(self) -> None:
        self.grid.styles.height = "100%"
        self.grid.focus()

    def _display(self, screen, renderable) -> None:
        super()._display(screen, renderable)
        self.drawn = time.perf_counter()


async def _table(rows: int) -> None:
    """Measure showing, sorting and filtering a long table: from the key to the last time that the table is drawn."""
    began = time.perf_counter()
    app = _Alone(_long_sheet(rows))
    async with app.run_test(size=_SIZE) as pilot:
        await pilot.pause()
        _print_time(f"mount {rows:,} rows", app.drawn - began)
        for what, key in (("sort by text", "o"), ("sort by numbers", "o"), ("turn", "O"), ("page", "pagedown")):
            began = time.perf_counter()
            await pilot.press(key)
            await pilot.pause()
            _print_time(f"{what}, {rows:,} rows", app.drawn - began)
        began = time.perf_counter()
        app.grid.change(app.grid.sheet.filtered("kernel_17"))
        await pilot.pause()
        _print_time(f"filter {rows:,} rows", app.drawn - began)


def _long_sheet(rows: int) -> Sheet:
    names = pa.DictionaryArray.from_arrays(
        pa.array(np.arange(rows) % 300, pa.int32()), pa.array([f"kernel_{k}" for k in range(300)])
    )
    durations = np.random.default_rng(1).integers(1, 1 << 20, rows)
    fields = [column("name", names.type, "", role="kernel"), column("dur_ns", pa.int64(), "", "ns")]
    return Sheet("long", pa.Table.from_arrays([names, pa.array(durations)], schema=pa.schema(fields)))


if __name__ == "__main__":
    sys.exit(main())
