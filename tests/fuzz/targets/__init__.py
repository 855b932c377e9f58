"""One file per thing that tracekit reads. Each says what to begin with (`seeds`), how an input is changed so that it
gets far (`change`), what is done with it (`take`), and which words mean something in it (`WORDS`).
"""

import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, Protocol

from tests.fuzz.mutation import changed, dumped

_GZIP = b"\x1f\x8b"
_MOST_UNPACKED = 1 << 22
# What `change` raises if an input is not what it can change; then only its bytes can be.
UNCHANGEABLE = (ValueError, TypeError, AttributeError, RecursionError, OverflowError, zlib.error)


class Target(Protocol):
    """What a module in this package offers."""

    WORDS: Sequence[str]

    def seeds(self) -> Iterator[bytes]: ...
    def change(self, data: bytes, random: Random) -> bytes: ...
    def take(self, data: bytes, folder: Path) -> None: ...


def changed_json(data: bytes, random: Random, words: Sequence[str]) -> bytes:
    """JSON with another tree."""
    tree = json.loads(data.decode("utf-8", "surrogatepass"), strict=False)
    return dumped(changed(tree, random, words), random)


def changed_packed(data: bytes, random: Random, change: Callable[[bytes, Random], bytes]) -> bytes:
    """The same for what may be packed by gzip: now and then, it is packed, or no longer."""
    is_packed = data.startswith(_GZIP)
    result = change(zlib.decompressobj(31).decompress(data, _MOST_UNPACKED) if is_packed else data, random)
    return gzip.compress(result, 1, mtime=0) if is_packed != (random.random() < 0.05) else result


def written(data: Any) -> bytes:
    """A document as writers write it."""
    return json.dumps(data).encode()
