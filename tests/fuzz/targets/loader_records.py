"""What the loop and the workers of a data loader recorded, beside a trace of the loop."""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.fuzz import verbs
from tests.fuzz.targets import changed_json, written
from tests.loading.made import taking_turns
from tracekit.loading.record import _LAYOUT, _PLACE_BYTES, FOLDER

WORDS = ("process", "began_ns", "worker", "workers", "rank", "cores", "data.py", "../../etc/passwd", "<b>", "\u202e")
_LARGEST = (1 << 63) - 1


def seeds() -> Iterator[bytes]:
    for made in (
        taking_turns(lambda worker, _: (45.0 if worker == 2 else 6.0, 1000), 8.0, 30),
        taking_turns(lambda *_: (93.0, 1000), 20.0, 16),
    ):
        yield written([{**_facts(one), "rings": one[1:4], "places": [*one.places.values()]} for one in made.records()])


def change(data: bytes, random: Random) -> bytes:
    return changed_json(data, random, WORDS)


def take(data: bytes, folder: Path) -> None:
    loader, trace = folder / FOLDER, folder / "trace.json"
    if not trace.exists():
        taking_turns(lambda worker, _: (45.0 if worker == 2 else 6.0, 1000), 8.0, 30).trace(folder)
    for left in loader.iterdir():
        left.unlink()
    processes = json.loads(data.decode("utf-8", "surrogatepass"), strict=False)
    for number, process in enumerate(processes if isinstance(processes, list) else ()):
        if isinstance(process, dict):
            _write(loader / f"{number}-{number}.loading", process)
    verbs.run("report", trace, "--full", "--no-cache")


def _facts(recorded: object) -> dict[str, object]:
    import msgspec

    return {"facts": msgspec.to_builtins(recorded.facts)}


def _write(path: Path, process: dict[str, object]) -> None:
    """The file with whatever it says, as far as a file can hold it."""
    memory = _LAYOUT.create(path, json.dumps(process.get("facts")).encode("utf-8", "replace")[: _LAYOUT.facts_bytes])
    rings, places = process.get("rings"), process.get("places")
    for which, entries in enumerate(rings[:3] if isinstance(rings, list) else ()):
        ring, width = _LAYOUT.ring(memory, which), len(_LAYOUT.rings[which][0]._fields)
        for entry in entries if isinstance(entries, list) else ():
            values = [one for one in entry if type(one) is int] if isinstance(entry, list) else []
            ring.append([max(min(one, _LARGEST), -_LARGEST) for one in (values + [0] * width)[:width]])
    for number, place in enumerate(places if isinstance(places, list) else ()):
        at = _LAYOUT.rest_at + number * _PLACE_BYTES
        if at + _PLACE_BYTES <= _LAYOUT.size:
            encoded = json.dumps(place).encode("utf-8", "replace")[:_PLACE_BYTES]
            memory[at : at + _PLACE_BYTES] = encoded.ljust(_PLACE_BYTES)
    memory.close()
