"""What was worked out from a trace, in its entry of the cache: found again until something it depends on changes.

A package that keeps such results does so in functions named `known_…`.
"""

import hashlib
import json
from typing import Any, TypeVar

import msgspec
import pyarrow as pa

from tracekit.trace.storing.cache import Entry
from tracekit.trace.storing.code_version import code_version

Result = TypeVar("Result")
_FACTS = b"facts"


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


def recall_table(entry: Entry | None, name: str) -> tuple[pa.Table, dict[str, Any]] | None:
    """The same for a table and the facts that were kept with it."""
    content = entry.recall(name) if entry is not None else None
    if content is None:
        return None
    try:
        table = pa.ipc.open_stream(content).read_all().combine_chunks()
        facts = json.loads(table.schema.metadata[_FACTS])
    except (pa.ArrowInvalid, OSError, ValueError, KeyError, TypeError):
        return None
    return table.replace_schema_metadata(None), facts


def remember_table(entry: Entry | None, name: str, table: pa.Table, facts: dict[str, Any]) -> None:
    """Keep a table, and with it facts that JSON can hold."""
    if entry is None:
        return
    table = table.replace_schema_metadata({_FACTS: json.dumps(facts)}).unify_dictionaries()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    entry.remember(name, bytes(sink.getvalue()))
