"""Many damaged chunks, decoded piece by piece and at once."""

import os
import random

import pytest

from tests.pieces import PIECES, blocks, decoded, mutated
from tests.real import TRACES

_COUNT = 10_000


@pytest.mark.skipif(not os.environ.get("TRACEKIT_VERIFY"), reason="TRACEKIT_VERIFY is not set: make verify")
@pytest.mark.skipif(not TRACES.is_dir(), reason=f"the real traces are not here ({TRACES}); set TRACEKIT_TRACES")
def test_pieces_of_damaged_chunks() -> None:
    rnd = random.Random(2)
    whole = blocks(TRACES, rnd, 12)
    for number in range(_COUNT):
        chunk = b"[%b]" % mutated(rnd.choice(whole), rnd)
        pieces = decoded(chunk, rnd.choice(PIECES))
        assert pieces == decoded(chunk, 1 << 30) == decoded(chunk, 1 << 30, communicates=True), number
