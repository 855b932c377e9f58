"""An export of Nsight Systems: a database whose rows, tables and pages are not as Nsight Systems writes them.

An input that begins with `{` says what the tables are and holds, and becomes a database; any other is the file itself.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import small

from tests.fuzz import verbs
from tests.fuzz.targets import changed_json, written
from tests.trace import nsys_export

WORDS = (
    *("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_MEMCPY", "NVTX_EVENTS"),
    *("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "StringIds", "ThreadNames", "TARGET_INFO_GPU", "OSRT_API", "sqlite_master"),
    *("start", "end", "globalTid", "globalPid", "deviceId", "streamId", "correlationId", "nameId", "value", "id"),
    *("train step 1", "aten::mm, seq = 3", "aten::mm, op_id = 99999999999999999999", "cudaLaunchKernel_v7000"),
)
_VIEWS = (
    "CREATE VIEW {0} AS WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM n) SELECT x AS start FROM n",
    "CREATE VIRTUAL TABLE {0} USING fts5(start)",
    "CREATE TABLE {0} (start INT, end INT GENERATED ALWAYS AS (start || load_extension('x')) VIRTUAL)",
)
_MOST_TABLES = 40


def seeds() -> Iterator[bytes]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        events = json.loads(small.training(folder / "trace.json").read_bytes())["traceEvents"]
        for event in events:
            event["args"] = {"device": 0, "stream": 7, "correlation": 0, **event.get("args", {})}
        header = {"baseTimeNanoseconds": 10**18, "deviceProperties": [_GPU]}
        nsys_export.write(folder / "export.sqlite", events, header)
        with closing(sqlite3.connect(folder / "export.sqlite")) as database:
            yield written(_content(database))
        yield (folder / "export.sqlite").read_bytes()


_GPU = {"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 1 << 36, "numSms": 132}


def change(data: bytes, random: Random) -> bytes:
    if data.startswith(b"{"):
        return changed_json(data, random, WORDS)
    return _torn(data, random)


def take(data: bytes, folder: Path) -> None:
    path = folder / "export.sqlite"
    path.unlink(missing_ok=True)
    if data.startswith(b"{"):
        try:
            _build(path, json.loads(data))
        except (ValueError, RecursionError, sqlite3.Error, AttributeError, TypeError):
            return  # no database has such tables
    else:
        path.write_bytes(data)
    verbs.run("report", path, "--full", "--no-cache")


def _content(database: sqlite3.Connection) -> dict[str, Any]:
    names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {name: _table(database, name) for name in names}


def _table(database: sqlite3.Connection, name: str) -> dict[str, Any]:
    rows = database.execute(f'SELECT * FROM "{name}"')
    return {"columns": [column for column, *_ in rows.description], "rows": [[*row] for row in rows]}


def _build(path: Path, content: dict[str, Any]) -> None:
    with closing(sqlite3.connect(path)) as database:
        for name, table in [*content.items()][:_MOST_TABLES]:
            quoted = _quoted(name)
            if not isinstance(table, dict):  # a table of another kind
                with suppress(sqlite3.Error):
                    database.execute(_VIEWS[len(str(table)) % len(_VIEWS)].format(quoted))
                continue
            columns = [str(column) for column in table.get("columns") or ["x"]]
            with suppress(sqlite3.Error):  # no type: a column takes what it is given
                database.execute(f"CREATE TABLE {quoted} ({', '.join(map(_quoted, columns))})")
                for row in table.get("rows") or []:
                    values = [_stored(value) for value in row][: len(columns)] if isinstance(row, list) else []
                    database.execute(
                        f"INSERT INTO {quoted} VALUES ({', '.join('?' * len(columns))})",
                        values + [None] * (len(columns) - len(values)),
                    )
        database.commit()


def _stored(value: object) -> object:
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float(value) if abs(value) < 10**300 else "huge"
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "surrogatepass")
    return value if value is None or isinstance(value, int | float) else json.dumps(value)


def _quoted(name: object) -> str:
    return '"' + str(name).encode("utf-8", "replace").decode().replace('"', '""').replace("\0", "") + '"'


def _torn(data: bytes, random: Random) -> bytes:
    """The file with some bytes of a page, or whole pages, replaced."""
    content = bytearray(data)
    page = 4096
    for _ in range(random.choice((1, 2, 8))):
        at = random.randrange(len(content))
        if random.random() < 0.2:
            source = random.randrange(len(content)) // page * page
            content[at // page * page : at // page * page + page] = content[source : source + page]
        else:
            content[at] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
    return bytes(content)
