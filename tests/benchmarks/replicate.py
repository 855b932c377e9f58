"""Makes a long trace from a short one: the same recording again and again, later in time and with new ids."""

import gzip
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

_IDS = ("correlation", "External id", "external id", "Ev Idx")
_PAUSE_US = 1000  # between one copy and the next
_ENCODER = msgspec.json.Encoder(decimal_format="number")  # a float cannot represent every digit of a start


def replicate(seed: Path, out: Path, size: int) -> int:
    """Write a compressed trace of about `size` bytes of JSON. Returns the actual number of bytes."""
    opened = gzip.open if seed.suffix == ".gz" else open
    with opened(seed, "rb") as file:
        document = json.loads(file.read(), parse_float=Decimal)
    events = document.pop("traceEvents")
    timed = [event for event in events if "ts" in event and event.get("ph") != "M"]
    once = [event for event in events if event.get("ph") == "M"]
    starts = [Decimal(event["ts"]) for event in timed]
    ends = [start + Decimal(event.get("dur", 0)) for start, event in zip(starts, timed, strict=True)]
    period = int(max(ends) - min(starts)) + _PAUSE_US
    stride = 1 + max((value for event in timed for value in _ids(event)), default=0)
    steps = 1 + max((int(event["name"].split("#")[1]) for event in timed if _is_step(event)), default=0)
    written = 0
    with gzip.open(out, "wb", compresslevel=4) as file:
        head = json.dumps(document, default=float)[:-1]
        written += file.write(f'{head}{", " if len(head) > 1 else ""}"traceEvents": [\n'.encode())
        written += file.write(",\n".join(_text(event) for event in once).encode())
        for copy in _copies():
            shifted = (_shifted(event, copy, period, stride, steps) for event in timed)
            written += file.write(b",\n" + ",\n".join(_text(event) for event in shifted).encode())
            if written >= size:
                break
        written += file.write(b"\n]}\n")
    return written


def _copies() -> Iterator[int]:
    copy = 0
    while True:
        yield copy
        copy += 1


def _shifted(event: dict[str, Any], copy: int, period: int, stride: int, steps: int) -> dict[str, Any]:
    moved = {**event, "ts": Decimal(event["ts"]) + copy * period}
    if "id" in event and isinstance(event["id"], int):
        moved["id"] = event["id"] + copy * stride
    if _is_step(event):
        moved["name"] = f"ProfilerStep#{int(event['name'].split('#')[1]) + copy * steps}"
    args = event.get("args")
    if isinstance(args, dict):
        shifted = {key: args[key] + copy * stride for key in _IDS if isinstance(args.get(key), int) and args[key] > 0}
        moved["args"] = {**args, **shifted}
    return moved


def _ids(event: dict[str, Any]) -> Iterator[int]:
    args = event.get("args")
    for value in [event.get("id"), *(args.get(key) for key in _IDS)] if isinstance(args, dict) else [event.get("id")]:
        if isinstance(value, int):
            yield value


def _is_step(event: dict[str, Any]) -> bool:
    name = str(event.get("name", ""))
    return name.startswith("ProfilerStep#") and name.removeprefix("ProfilerStep#").isdigit()


def _text(event: dict[str, Any]) -> str:
    return msgspec.json.format(_ENCODER.encode(event), indent=0).decode()
