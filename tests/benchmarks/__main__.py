"""Reading, attribution and whole reports compared with HTA and with the limit set by simdjson, on the same files.

    python -m tests.benchmarks [--bytes 200e6,1e9] [--only read,report] [--trace SEED.json.gz] [--python PYTHON]
        [--before CHECKOUT] [--page docs/traces.md]

HTA (traceinsight) needs other versions of packages, so it is installed in a separate environment (pip install
traceinsight==0.6.1 pysimdjson isal), whose interpreter `--python` names. Without one, its rows are left out. `--only`
names the pieces to measure, each of which takes less than five minutes at 200 MB; `--before` names another checkout,
whose cold reports are measured in turns with those of this one. With `--page`, the table between the markers in that
file is replaced. Every time is the best of several, with an empty cache; a busy machine disturbs seconds more than CPU
seconds, so both are given.
"""

import argparse
import os
import platform
import re
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.measure import PIECES, Measured, Suite
from tests.benchmarks.replicate import replicate

ROOT = Path(__file__).parent.parent.parent
SEED = Path(os.environ.get("TRACEKIT_TRACES", ROOT.parent / "shared" / "traces")) / "hta_ns_resolution.json.gz"
_TABLE = re.compile(r"(<!-- bench -->\n).*?(<!-- /bench -->)", re.DOTALL)


def main() -> int:
    """Measure, print, and write the table."""
    parser = argparse.ArgumentParser(prog="tests.benchmarks", description=__doc__)
    parser.add_argument("--bytes", default="200e6,1e9", help="of JSON to read, one or several (default: 200e6,1e9)")
    parser.add_argument("--trace", type=Path, default=SEED, help="what to repeat")
    parser.add_argument("--workers", default="2")
    parser.add_argument("--turns", type=int, default=3, help="of each task; the best counts (default: 3)")
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has HTA and pysimdjson")
    parser.add_argument("--without-hta", action="store_true")
    parser.add_argument("--only", default=",".join(PIECES), help=f"some of {', '.join(PIECES)} (default: all)")
    parser.add_argument("--before", type=Path, metavar="CHECKOUT", help="another state of the code")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the table there, between its markers")
    options = parser.parse_args()
    if not options.trace.exists():
        print(f"{options.trace}: no such trace to repeat; name one with --trace", file=sys.stderr)
        return 1
    options.pieces = options.only.split(",")
    if unknown := set(options.pieces) - set(PIECES):
        parser.error(f"--only: {', '.join(sorted(unknown))} is none of {', '.join(PIECES)}")
    if options.without_hta:
        options.pieces = [piece for piece in options.pieces if piece != "hta"]
    with tempfile.TemporaryDirectory(prefix="tracekit-bench-") as name:
        columns = [_measured(Path(name), int(float(size)), options) for size in options.bytes.split(",")]
    table = "\n".join(_rows(columns))
    print(f"\n{table}\n")
    if options.page is not None:
        text = options.page.read_text(encoding="utf-8")
        options.page.write_text(
            _TABLE.sub(lambda markers: f"{markers[1]}{table}\n{markers[2]}", text), encoding="utf-8"
        )
    return 0


def _measured(folder: Path, size: int, options: argparse.Namespace) -> Measured:
    path = folder / "trace.json.gz"
    written = replicate(options.trace, path, size)
    print(f"{written / 1e6:,.0f} MB of JSON, {path.stat().st_size / 1e6:,.0f} MB packed; {_machine()}", flush=True)
    suite = Suite(path, written, folder / "cache", options.workers, options.turns)
    return suite.measure(options.pieces, options.python, options.trace, options.before)


def _rows(columns: list[Measured]) -> list[str]:
    """The table, as Markdown: one column for each size."""
    names = list(dict.fromkeys(name for column in columns for name in column.rows))
    head = [f"| {_machine()} | {' | '.join(column.title for column in columns)} |", "|---" * (len(columns) + 1) + "|"]
    return head + [f"| {name} | {' | '.join(column.rows.get(name, '') for column in columns)} |" for name in names]


def _machine() -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{platform.machine()}, {cores} cores, Python {platform.python_version()}"


if __name__ == "__main__":
    sys.exit(main())
