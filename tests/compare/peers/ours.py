"""tracekit itself."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.compare.peer import Breakdown, Peer, main

_BUSY = ["gpu_compute", "gpu_comm", "gpu_copy"]

PEER = Peer(
    "ours",
    "tracekit",
    "tracekit-torch",
    command=lambda python, files, _: [str(python), "-m", "tracekit", "report", *map(str, files)],
)


def breakdowns(file: Path) -> list[Breakdown]:
    """Its steps, and the buckets of all of them."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "report.json"
        command = [sys.executable, "-m", "tracekit", "report", str(file), "--format", "json", "-o", str(target)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "TRACEKIT_CACHE_DIR": folder})
        (variant,) = json.loads(target.read_text(encoding="utf-8"))["variants"]
    parts: dict[str, float] = {}
    for step in variant["steps"]:
        for bucket, took_ns in step["wall"].items():
            parts[bucket] = parts.get(bucket, 0) + took_ns
    windows = [[step["start_ns"], step["start_ns"] + step["wall_ns"]] for step in variant["steps"]]
    return [Breakdown(parts, _BUSY, {name: took for name, took in parts.items() if name not in _BUSY}, windows)]


if __name__ == "__main__":
    main(breakdowns)
