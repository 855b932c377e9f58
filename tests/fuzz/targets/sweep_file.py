"""A sweep file, as far as `tracekit sweep --dry-run` reads it: to the list of the cells."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from real import ROOT

from tests.fuzz import verbs
from tests.fuzz.mutation import changed

WORDS = (
    *("sweep", "recipes", "scripts", "variants", "seeds", "workloads", "params", "interpreters", "options", "grid"),
    *("exclude", "labels", "arguments", "steps", "warmup", "epochs", "budget", "threads", "training", "inference"),
    *("eager", "compiled", "reduce-overhead", "max-autotune", "compiled:dynamic=true", "compiled:mode=x", "here.py"),
)


def seeds() -> Iterator[bytes]:
    for path in sorted((ROOT / "recipes" / "sweeps").glob("*.toml")):
        yield path.read_bytes()
        content = tomllib.loads(path.read_text())
        for grid in (content["sweep"], *content["sweep"].get("grid", [])):
            grid |= {kind: ["here.py"] for kind in ("recipes", "scripts") if kind in grid}
        yield _toml(content)


def change(data: bytes, random: Random) -> bytes:
    return _toml(changed(tomllib.loads(data.decode()), random, WORDS))


def take(data: bytes, folder: Path) -> None:
    file = folder / "sweep.toml"
    file.write_bytes(data)
    (folder / "here.py").touch()
    verbs.run("sweep", file, "--dry-run", "-o", folder / "study")


def _toml(tree: dict[str, Any]) -> bytes:
    text = "".join(f"{_text(key)} = {_value(value)}\n" for key, value in tree.items())
    return text.encode("utf-8", "surrogatepass")


def _value(value: Any) -> str:
    """A value, with tables on one line."""
    match value:
        case bool():
            return str(value).lower()
        case dict():
            return "{" + ", ".join(f"{_text(key)} = {_value(entry)}" for key, entry in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_value, value)) + "]"
        case str() | None:
            return _text(value or "")
        case _:
            return str(value)


def _text(text: str) -> str:
    """A string of TOML, with what has no place in one escaped."""
    escaped = (f"\\U{ord(c):08x}" if c in '"\\' or ord(c) < 0x20 or ord(c) == 0x7F else c for c in str(text))
    return '"' + "".join(escaped) + '"'
