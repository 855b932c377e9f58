"""Reading and attribution beside HTA and the simdjson ceiling, on the same file.

    python -m tests.benchmarks [--bytes 200e6] [--trace SEED.json.gz] [--workers 2] [--without-hta]

HTA and simdjson are asked only where they are installed: pip install traceinsight pysimdjson
(`--python` names another interpreter that has them). Nothing is installed or kept.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.benchmarks.replicate import replicate

ROOT = Path(__file__).parent.parent.parent
SEED = Path(os.environ.get("TRACEKIT_TRACES", ROOT.parent / "shared" / "traces")) / "hta_ns_resolution.json.gz"


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="tests.benchmarks", description=__doc__)
    parser.add_argument("--bytes", type=float, default=200e6, help="of JSON to read (default: 200e6)")
    parser.add_argument("--trace", type=Path, default=SEED, help="what to repeat")
    parser.add_argument("--workers", default="2")
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has HTA and pysimdjson")
    parser.add_argument("--without-hta", action="store_true")
    options = parser.parse_args()
    if not options.trace.exists():
        print(f"{options.trace}: no such trace to repeat; name one with --trace", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="tracekit-bench-") as name:
        folder = Path(name)
        path = folder / "trace.json.gz"
        size = replicate(options.trace, path, int(options.bytes))
        print(f"{size / 1e6:,.0f} MB of JSON, {path.stat().st_size / 1e6:,.0f} MB packed; {_machine()}\n")
        show(path, folder, size, options)
    return 0


def show(path: Path, folder: Path, size: int, options: argparse.Namespace) -> None:
    """Run each task, and print it beside the others."""
    ceiling = best(options.python, folder / "c0", "ceiling", str(path))
    read = best(sys.executable, folder / "c1", "read", str(path), options.workers)
    alone = best(sys.executable, folder / "c2", "read", str(path), "1")
    assert read is not None
    assert alone is not None
    line("read, one process", alone, size, ceiling)
    line(f"read, {options.workers} processes", read, size, ceiling)
    if ceiling is not None:
        line("ceiling: igzip, cut, simdjson", ceiling, size, ceiling)
    hta = None if options.without_hta else run(options.python, folder / "c3", "hta", str(path))
    if hta is not None:
        line("HTA loads it", hta, size, ceiling)
        ratio = hta["seconds"] / read["seconds"]
        print(f"{'':32}HTA takes {ratio:,.1f} × as long, {hta['peak'] / read['peak']:,.1f} × the memory")
    short = folder / "short.json.gz"
    replicate(options.trace, short, size // 10)
    few, many = (
        run(sys.executable, folder / "c4", "attribution", str(each), options.workers) for each in (short, path)
    )
    assert few is not None
    assert many is not None
    million = many["events"] / 1e6
    print(
        f"\nattribution of {million:,.2f} M events: {million / many['attribute_seconds']:,.2f} M/s, "
        f"{many['bytes_an_event']:,.0f} bytes an event on top ({many['resident_an_event']:,.0f} resident); "
        f"{many['events'] / few['events']:,.1f} × the events take "
        f"{many['attribute_seconds'] / few['attribute_seconds']:,.1f} × the time"
    )
    tiny = timed(options.trace, folder / "c5")
    first, again = (timed(path, folder / "c5") for _ in range(2))
    print(f"tracekit report: {tiny:,.2f} s of the short trace; of this one {first:,.2f} s, again {again:,.2f} s")


def timed(path: Path, cache: Path) -> float:
    """Seconds of a whole `tracekit report`."""
    import time

    began = time.perf_counter()
    command = [sys.executable, "-m", "tracekit", "report", str(path)]
    subprocess.run(command, env=environment(cache), capture_output=True, check=True)
    return time.perf_counter() - began


def run(python: str, cache: Path, *arguments: str) -> dict[str, Any] | None:
    """A task in a process of its own; None where what it needs is not installed."""
    command = [python, "-m", "tests.benchmarks.tasks", *arguments]
    done = subprocess.run(command, env=environment(cache), capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode == 0:
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found
    why = (done.stderr.splitlines() or ["failed"])[-1]
    print(f"{arguments[0]}: left out ({why}). pip install traceinsight pysimdjson isal", file=sys.stderr)
    return None


def best(python: str, cache: Path, *arguments: str) -> dict[str, Any] | None:
    """The fastest of three, each with an empty cache."""
    found = []
    for turn in range(3):
        os.sync()  # what was written before is not written now
        found.append(run(python, cache / str(turn), *arguments))
        shutil.rmtree(cache, ignore_errors=True)
    return min((each for each in found if each is not None), key=lambda each: float(each["seconds"]), default=None)


def environment(cache: Path) -> dict[str, str]:
    """The cache is empty and its own."""
    return {**os.environ, "TRACEKIT_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)}


def line(what: str, found: dict[str, Any], size: int, ceiling: dict[str, Any] | None) -> None:
    """One row: speed, against the ceiling, memory."""
    rate = size / found["seconds"] / 1e6
    part = f"{ceiling['seconds'] / found['seconds']:5.2f} of the ceiling" if ceiling is not None else ""
    helper = f" + {found['helper_peak'] / 1e6:,.0f}" if found["helper_peak"] else ""
    peak = found.get("read_peak", found["peak"])  # with links, what is mapped of the file counts, too
    busy = size / found["cpu"] / 1e6
    print(f"{what:32}{rate:7,.0f} MB/s {busy:6,.0f} MB a CPU second {part}  {peak / 1e6:,.0f}{helper} MB peak")


def _machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


if __name__ == "__main__":
    sys.exit(main())
