"""python -m tests.verify.scanner MODULE SECONDS: mutates chunks of real traces for so long, and reads each with the
scanner in that file and without one. Prints how many were read; fails at the first difference.
"""

from __future__ import annotations

import random
import sys
import time
from importlib.util import module_from_spec, spec_from_file_location

NAME = "tracekit.trace.reading.native._scan"
_CHUNK_BYTES = 30_000
_AT_A_TIME = 200  # mutations of a chunk


def main(module: str, seconds: str) -> int:
    spec = spec_from_file_location(NAME, module)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[NAME] = scanner = module_from_spec(spec)
    spec.loader.exec_module(scanner)
    # Imported now, so that they find this scanner.
    from pieces import mutated
    from real import trace_names, trace_path

    from tests.trace.test_native import assert_read_alike
    from tracekit.trace.reading import native
    from tracekit.trace.reading.chunks import Chunks
    from tracekit.trace.reading.source import Source

    assert native._scan is scanner
    until, read, seed = time.monotonic() + float(seconds), 0, 0
    while time.monotonic() < until:
        for name in trace_names():
            with Source(trace_path(name)) as source:
                for number, chunk in enumerate(Chunks(source, chunk_bytes=_CHUNK_BYTES)):
                    if number == seed % 7:
                        original = bytes(chunk)
                        break
                else:
                    continue
            for _ in range(_AT_A_TIME):
                seed += 1
                broken = mutated(original, random.Random(seed))
                if len(broken) > 2:
                    assert_read_alike(b"[" + broken[1:-1] + b"]")
                    read += 1
            if time.monotonic() > until:
                break
    print(read)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
