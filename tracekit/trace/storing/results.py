"""Results computed from a trace, in its entry of the cache; they are valid until something they depend on changes."""

import hashlib
from typing import TypeVar

import msgspec

from tracekit.trace.storing.cache import Entry
from tracekit.trace.storing.code_version import code_version

Result = TypeVar("Result")


def result_name(kind: str, *modules: str, causes: object = ()) -> str:
    """The name in the cache of what the code of these modules computes from the trace and these inputs."""
    digest = hashlib.sha256(repr(causes).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{kind}-{code_version(*modules)}-{digest}"


def recall(entry: Entry | None, name: str, kind: type[Result]) -> Result | None:
    """A result of that type; None if there is no entry, nothing was stored, or it is damaged."""
    content = entry.recall(name) if entry is not None else None
    try:
        return msgspec.json.decode(content, type=kind) if content is not None else None
    except msgspec.DecodeError:
        return None


def remember(entry: Entry | None, name: str, result: object) -> None:
    """Store a result, if there is an entry for it."""
    if entry is not None:
        entry.remember(name, msgspec.json.encode(result))
