"""Chunks of events, damaged at random, and what a decoder makes of them in one piece or in many."""

import gzip
import random
from pathlib import Path
from typing import Any

from tracekit.trace.reading import decode
from tracekit.trace.reading.chunks import SEPARATOR
from tracekit.trace.schema import values

SEEDS = (
    "pyg_timeline_rtx4090_no_kernels",
    "tracelens_compile_triton_mi300x",
    "amd_mi300x_replay",
    "hta_triton_example",
)
_WITH_COMMUNICATION = ("hta_alexnet_cuda_sync", "param_dlrm_v100_rank0")  # and waits
TOKENS = (
    *(b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"\0", b"\xff", b"\xed\xa0\x80", b"\n", b"},{", b'},{"ph"'),
    *(b'"traceEvents":[', b"]}", b"NaN", b"-Infinity", b"1e999", b"9" * 40, b"-5", b"null", b'"X"', b"\xe2\x80"),
    *(b'"ph":"X"', b'"ts":', b'"dur":-1,', b'"name":"a"b",', b"[" * 2000, b'{"a":' * 2000, b"\x1b[2J", b"\\ud800"),
)
PIECES = (50, 400, 3000)


def mutated(content: bytes, rnd: random.Random) -> bytes:
    """The bytes after some random damage."""
    broken = bytearray(content)
    for _ in range(rnd.choice((1, 1, 2, 5, 30))):
        at, length = rnd.randrange(len(broken) + 1), rnd.choice((1, 1, 3, 50, 2000))
        kind = rnd.randrange(6)
        if kind == 0 and at < len(broken):
            broken[at] ^= 1 << rnd.randrange(8)
        elif kind == 1:
            del broken[at : at + length]
        elif kind == 2:
            broken[at:at] = rnd.choice(TOKENS)
        elif kind == 3:
            broken[at:at] = broken[at : at + length]
        elif kind == 4:
            source = rnd.randrange(len(broken) + 1)
            broken[at : at + length] = broken[source : source + length]
        elif rnd.random() < 0.2:
            del broken[at:]
    return bytes(broken)


def blocks(traces: Path, rnd: random.Random, each: int) -> list[bytes]:
    """Some stretches of events from several traces."""
    stretches = []
    for seed in (*SEEDS, *_WITH_COMMUNICATION):
        text = gzip.decompress((traces / f"{seed}.json.gz").read_bytes())
        separators = list(SEPARATOR.finditer(text))
        for _ in range(each):
            first = rnd.randrange(len(separators) - 1)
            last = min(first + rnd.choice((3, 20, 80)), len(separators) - 1)
            stretches.append(text[separators[first].end() : separators[last].start() + 1])
    return stretches


def decoded(chunk: bytes, piece_bytes: int, communicates: bool = False) -> dict[str, Any]:
    """All that a decoder makes of a chunk that it cuts into pieces of about that size, and whether or not it has read
    events about communication before."""
    size, decode.PIECE_BYTES = decode.PIECE_BYTES, piece_bytes
    try:
        decoder = decode.Decoder(communicates=communicates)
        batch = decoder.batch(chunk)
    finally:
        decode.PIECE_BYTES = size
    counts = {name: getattr(decoder, name) for name in ("events", "lost", "mended", "closing")}
    rows = {name: sorted(map(repr, getattr(decoder, name))) for name in ("communications", "notes")}
    values_of = {
        name: repr(list(getattr(decoder, name).items())) for name in ("categories", "names", "tracks", "labels")
    }
    columns = {name: repr(batch.column(name).to_pylist()) for name in batch.schema.names}
    assert (values(batch.column(0))[1:] >= values(batch.column(0))[:-1]).all()
    return {**counts, **rows, **values_of, **columns, "spans": decoder.spans}
