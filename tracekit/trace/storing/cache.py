"""The cache of traces on disk: tables as Arrow files, keyed by the content of the trace and verified when read.

    TRACEKIT_CACHE_DIR/traces/KEY/events.columns  the columns, mapped into memory on request
                                 /tracks.arrow …  and what was computed from them
                                 /entry.json      size and checksum of each file; written last
                      /work/                      unfinished entries; see tracekit/base/workspace.py

An entry that is truncated, of another user or of another version counts as missing. If an entry cannot be written, that
is not an error. What was worked out from a trace is kept in its entry, and found again until something it depends on
changes; a package that keeps such results does so in functions named `known_…`.
"""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
from msgspec import Struct

from tracekit.base.atomic import put
from tracekit.base.workspace import is_ours
from tracekit.trace.storing.code_version import code_version, digest_of

FORMAT = 1  # of the entries; the version of the code that makes their content is part of their key
DIRECTORY, LIMIT, OFF = "TRACEKIT_CACHE_DIR", "TRACEKIT_CACHE_BYTES", "TRACEKIT_NO_CACHE"
LIMIT_BYTES = 10_000_000_000
WORTH_BYTES = 16 << 20  # of a trace; reading a smaller one again is faster than looking it up
_SMALLEST = WORTH_BYTES // 250  # a smaller file cannot hold such a trace, however packed
_ENTRY = "entry.json"
_READER = "tracekit.trace.sources"  # the code that makes an entry is this module and all that it imports
Result = TypeVar("Result")
_FACTS = b"facts"


def home() -> Path:
    """The folder of the cache; it need not exist."""
    configured = os.environ.get(DIRECTORY)
    if configured:
        return Path(configured)
    import platformdirs

    return platformdirs.user_cache_path("tracekit", appauthor=False)


def is_on() -> bool:
    """Whether the environment allows the cache."""
    return not os.environ.get(OFF)


def content_of(path: Path) -> str | None:
    """A name for the content of a file; None if it is too small to be worth an entry, or cannot be read."""
    try:
        if path.stat().st_size < _SMALLEST:
            return None
        return digest_of(path)
    except (OSError, ValueError):
        return None


def file_state(path: Path) -> tuple[str, int, int]:
    """What distinguishes a file from its earlier versions in the names of cache entries: its path, size and time."""
    try:
        status = path.stat()
    except OSError:
        return str(path), 0, 0
    return str(path), status.st_size, status.st_mtime_ns


class Entry(Struct, frozen=True):
    """What the cache holds about one trace."""

    folder: Path
    files: dict[str, Any]  # name → size and checksum
    facts: dict[str, Any]  # what else was known about the trace when it was stored
    prefix: str = ""  # of the names of computed results, which differ if steps are inferred

    def table(self, name: str) -> pa.Table:
        """A table of the entry, mapped into memory. Raises OSError or pa.ArrowInvalid if it has changed since it was
        stored."""
        return pa.ipc.open_file(pa.memory_map(str(self._checked(name)))).read_all()

    def columns(self, name: str, schema: pa.Schema) -> pa.Table:
        """A table of plain columns, which is how events are stored, mapped into memory. Raises like `table`."""
        from tracekit.trace.storing.column_file import labels_of, mapped

        file = self._checked(name)
        self._checked(labels_of(file).name)
        return mapped(file, schema, int(self.facts["events"]))

    def _checked(self, name: str) -> Path:
        file = self.folder / name
        if _checksum_of(file) != self.files[name]["crc32"]:
            raise pa.ArrowInvalid(f"{name} is not what was written")
        return file

    def recall(self, name: str) -> bytes | None:
        """What was stored under a name; None if there is nothing, or it is damaged."""
        with suppress(OSError):
            file = self.folder / f"{self.prefix}{name}"
            content = file.read_bytes() if is_ours(file.lstat()) else b""
            if _checksum(content[:-4]).to_bytes(4, "little") == content[-4:]:
                return content[:-4]
        return None

    def remember(self, name: str, content: bytes) -> None:
        """Store a result computed from the trace, if it can be written."""
        with suppress(OSError):
            put(self.folder / f"{self.prefix}{name}", content + _checksum(content).to_bytes(4, "little"))

    def drop(self) -> None:
        """Remove the entry."""
        _remove(self.folder)

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(file.stat().st_size for file in self.folder.iterdir())

    @property
    def used(self) -> float:
        """When the entry was last used, seconds since the epoch."""
        return (self.folder / _ENTRY).stat().st_mtime


def find(content: str) -> Entry | None:
    """The entry of a file with that content, if this code made one and it is complete."""
    traces = home() / "traces"
    if next(traces.glob(f"{content}-*"), None) is None:  # working out the version of the code takes a while
        return None
    folder = traces / _key(content)
    entry = _opened(folder)
    if entry is not None:
        with suppress(OSError):
            os.utime(folder / _ENTRY)
    return entry


def publish(folder: Path, content: str, facts: dict[str, Any]) -> Entry | None:
    """Make a finished folder of Arrow files the entry of a file with that content, at once or not at all.

    None if that cannot be done.
    """
    try:
        files = {file.name: {"bytes": file.stat().st_size, "crc32": _checksum_of(file)} for file in folder.iterdir()}
        (folder / _ENTRY).write_text(json.dumps({"format": FORMAT, "files": files, "facts": facts}))
        target = home() / "traces" / _key(content)
        target.parent.mkdir(parents=True, exist_ok=True)
        for _ in range(2):
            try:
                folder.rename(target)
                break
            except OSError:  # another process was faster, or something else is there
                if (published := find(content)) is not None:
                    return published
                _remove(target)
        else:
            return None
    except (OSError, ValueError):
        return None
    bound()
    return _opened(target)


def entries() -> list[Entry]:
    """All complete entries, the most recently used first."""
    with suppress(OSError):
        complete = [entry for folder in (home() / "traces").iterdir() if (entry := _opened(folder)) is not None]
        return sorted(complete, key=lambda entry: -entry.used)
    return []


def clear() -> int:
    """Remove all entries; returns how many there were."""
    from tracekit.base.workspace import remove_abandoned

    count = len(entries())
    with suppress(OSError):
        for folder in (home() / "traces").iterdir():
            _remove(folder)
    remove_abandoned(home() / "work")
    return count


def bound() -> None:
    """Remove the least recently used entries, until the rest stays within the limit."""
    limit = int(os.environ.get(LIMIT) or LIMIT_BYTES)
    total = 0
    for rank, entry in enumerate(entries()):
        with suppress(OSError):
            total += entry.size
            if total > limit and rank:
                entry.drop()


def _key(content: str) -> str:
    return f"{content}-{code_version(_READER)}"


def _opened(folder: Path) -> Entry | None:
    try:
        listing = json.loads((folder / _ENTRY).read_bytes())
        files, facts = listing["files"], listing["facts"]
        found = {name: (folder / name).lstat() for name in files}
        is_complete = all(found[name].st_size == file["bytes"] for name, file in files.items())
        # What is mapped into memory is taken as it is: whoever writes it decides what this process does.
        are_ours = all(map(is_ours, (folder.lstat(), (folder / _ENTRY).lstat(), *found.values())))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return Entry(folder, files, facts) if is_complete and are_ours and listing["format"] == FORMAT else None


def _checksum_of(file: Path) -> int:
    total = 0
    with file.open("rb", buffering=0) as opened:
        while piece := opened.read(1 << 20):
            total = _checksum(piece, total)
    return total


def _checksum(content: bytes, before: int = 0) -> int:
    from isal import isal_zlib  # 12 GB/s

    return int(isal_zlib.crc32(content, before))


def _remove(folder: Path) -> None:
    """Move an entry out of the way first and then delete it, so that no process finds half of it."""
    aside = home() / "work" / f"gone-{os.getpid()}-{time.monotonic_ns()}"
    with suppress(OSError):
        aside.parent.mkdir(parents=True, exist_ok=True)
        folder.rename(aside)
        folder = aside
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder, ignore_errors=True)
    else:
        with suppress(OSError):
            folder.unlink()


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


def kept(entry: Entry | None, name: Callable[[], str], kind: type[Result], make: Callable[[], Result]) -> Result:
    """What `make` gives, or gave when it was stored under that name. The name is asked for only if there is an entry:
    it takes the state of files."""
    if entry is None:
        return make()
    stored_as = name()
    if (result := recall(entry, stored_as, kind)) is None:
        result = make()
        remember(entry, stored_as, result)
    return result


def recall_table(entry: Entry | None, name: str) -> tuple[pa.Table, dict[str, Any]] | None:
    """A stored table and the facts that were kept with it; None if there is nothing, or it is damaged."""
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
