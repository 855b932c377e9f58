"""A record of a watch, in place of the beginning of each of whose parts comes what the input says.

An input is the verb to run, how long the facts are, the facts, and pieces of the three rings with how many entries they
have; the rest of the file is empty.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from tests.fuzz import verbs
from tests.fuzz.targets import changed_json
from tests.watched.written import MS, steps, write
from tracekit.watched import Minute, Step
from tracekit.watched.record import LAYOUT, SLOW, STEPS

COMMANDS: tuple[tuple[tuple[str, ...], str | None], ...] = (
    (("report", "--full"), None),
    *((("report", "--full", "--format", name), f"report.{name}") for name in ("html", "json", "markdown", "latex")),
    (("report", "--format", "csv"), "tables"),
    (("report", "--confidential"), None),
    (("explain",), None),
)
WORDS = ("cpu", "cuda:0", "perf_counter", "cuda events", "rank", "ranks", "job", "script", "began_ns", "versions")
_STEPS, _SLOW, _MINUTES = 300, 3, 3  # entries in the input
_STEP_BYTES, _MINUTE_BYTES = 8 * len(Step._fields), 8 * len(Minute._fields)
_RINGS = (  # where each of them is in the file, and how many bytes of it are in the input
    (LAYOUT.rings_at, _STEPS * _STEP_BYTES),
    (LAYOUT.rings_at + STEPS * _STEP_BYTES, _SLOW * _STEP_BYTES),
    (LAYOUT.rings_at + (STEPS + SLOW) * _STEP_BYTES, _MINUTES * _MINUTE_BYTES),
)
_ABSURD = (0, 1, -1, -2, 7, 1 << 31, 1 << 48, 1 << 62, -(1 << 63), (1 << 63) - 1)


def seeds() -> Iterator[bytes]:
    slow = {100: {"step_ns": 40 * MS, "waited_ns": 41 * MS}, 200: {"step_ns": 90 * MS, "queued_ns": 80 * MS}}
    with TemporaryDirectory() as name:
        content = write(Path(name), steps(_STEPS, slow), minute_steps=_STEPS // _MINUTES).read_bytes()
    facts = content[len(LAYOUT.beginning) : LAYOUT.counts_at].rstrip()
    rings = b"".join(content[at : at + length] for at, length in _RINGS)
    counts = content[LAYOUT.counts_at : LAYOUT.rings_at]
    for number in range(len(COMMANDS)):
        yield bytes([number]) + struct.pack("<H", len(facts)) + facts + counts + rings


def change(data: bytes, random: Random) -> bytes:
    length = struct.unpack_from("<H", data, 1)[0]
    facts, rest = data[3 : 3 + length], bytearray(data[3 + length :])
    if random.random() < 0.3:
        facts = changed_json(facts, random, WORDS)[: LAYOUT.facts_bytes]
    for _ in range(random.choice((0, 1, 3, 50))):
        struct.pack_into("<q", rest, random.randrange(len(rest) // 8) * 8, random.choice(_ABSURD))
    return data[:1] + struct.pack("<H", len(facts)) + facts + bytes(rest)


def take(data: bytes, folder: Path) -> None:
    if len(data) < 3:
        return
    length = struct.unpack_from("<H", data, 1)[0]
    facts, rest = data[3 : 3 + length], data[3 + length :]
    content = bytearray(LAYOUT.size)
    head = LAYOUT.beginning + facts[: LAYOUT.facts_bytes].ljust(LAYOUT.facts_bytes)
    content[: len(head)] = head
    at = LAYOUT.counts_at
    for begin, size in ((at, LAYOUT.rings_at - LAYOUT.counts_at), *_RINGS):
        piece, rest = rest[:size], rest[size:]
        content[begin : begin + len(piece)] = piece
    (folder / "watch").mkdir(exist_ok=True)
    path = folder / "watch" / "a.watch"
    path.write_bytes(content)
    (verb, *options), output = COMMANDS[data[0] % len(COMMANDS)]
    verbs.run(verb, str(path), *options, "--no-cache", output=None if output is None else folder / output)
