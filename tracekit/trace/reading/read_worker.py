"""A second process, which decompresses the whole file and converts every n-th chunk, without communicating.

    python -m tracekit.trace.reading.read_worker FILE OUT FIRST EVERY PARENT

writes the batches to OUT.arrow and, last of all, the meaning of their codes to OUT.json.
"""

import gc
import os
import signal
import sys
from pathlib import Path


def main(file: str, out: str, first: str, every: str, parent: str) -> int:
    """Convert chunks FIRST, FIRST + EVERY, …; end if the parent process is gone."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from tracekit.trace.reading.batch_store import BatchStore, Part
    from tracekit.trace.reading.chunks import Chunks
    from tracekit.trace.reading.decode import Decoder
    from tracekit.trace.reading.source import Source

    gc.disable()
    store, decoder = BatchStore(Path(f"{out}.arrow"), few=0), Decoder()
    with Source(Path(file)) as source:
        for number, chunk in enumerate(Chunks(source)):
            if number >= int(first) and (number - int(first)) % int(every) == 0:
                store.add(decoder.batch(chunk))
                if decoder.closing is not None or os.getppid() != int(parent):
                    return 1
    store.close()
    Part.of(store, decoder).write(Path(f"{out}.json"))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
