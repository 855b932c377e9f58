"""SQL queries over the tables of a report: each table that a query names is a view in DuckDB, however long it is.

A query sees these tables and nothing else: no file, no address, no variable of Python's, and it cannot change that.
"""

import re
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from tracekit.errors.asking import NeedsPackageError, QueryError
from tracekit.faces.parquet import write_table
from tracekit.report import Report
from tracekit.report.tables import every_table

_WORD = re.compile(r"\w+")
_CLOSED = (
    "autoinstall_known_extensions = false",
    "autoload_known_extensions = false",
    "python_enable_replacements = false",
    "enable_external_access = false",
    "lock_configuration = true",  # the last
)
# What a query that has a limit in time may take beside it: somebody may be training on this machine.
_MODEST = ("memory_limit = '2GB'", "max_temp_directory_size = '4GB'", "threads = 2")


def query(report: Report, text: str, most: int | None = None, seconds: float | None = None) -> pa.Table:
    """The answer of DuckDB: its first `most` rows, or all. Raises NeedsPackageError, and QueryError also where it takes
    longer than `seconds`; with such a limit, it may not take all memory or fill the disk either."""
    try:
        import duckdb
    except ImportError:
        raise NeedsPackageError("tracekit sql", "duckdb", "sql") from None
    tables = every_table(report)
    words = {word.lower() for word in _WORD.findall(text)}
    asked_tables = [name for name in tables if name.lower() in words] or [*tables]
    with tempfile.TemporaryDirectory(prefix="tracekit-") as folder, duckdb.connect(":memory:") as database:
        home = _quoted(folder, "'")
        database.execute(f"SET temp_directory = {home}")
        database.execute(f"SET allowed_directories = [{home}]")
        for setting in (*(_MODEST if seconds is not None else ()), *_CLOSED):
            database.execute(f"SET {setting}")
        for name in asked_tables:
            path = Path(folder) / f"{name}.parquet"
            write_table(name, tables[name], path)
            view, file = _quoted(name, '"'), _quoted(str(path), "'")
            database.execute(f"CREATE VIEW {view} AS SELECT * FROM read_parquet({file})")
        with _interrupted(database, seconds):
            try:
                answer = database.sql(text)
                if answer is not None:
                    return _rows(answer if most is None else answer.limit(most))
            except duckdb.InterruptException:
                raise QueryError(f"it took longer than {seconds:g} s: select less", sorted(tables)) from None
            except duckdb.Error as error:
                raise QueryError(str(error).splitlines()[0], sorted(tables)) from None
        raise QueryError("it is empty: begin with select", sorted(tables))


@contextmanager
def _interrupted(database: Any, seconds: float | None) -> Iterator[None]:
    """A context in which queries end after that many seconds."""
    if seconds is None:
        yield
        return
    timer = threading.Timer(seconds, database.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _rows(answer: Any) -> pa.Table:
    """The rows as Arrow, with decimals as integers or, if they have a fraction, as floats."""
    # Older versions of DuckDB have another method.
    rows: pa.Table = answer.to_arrow_table() if hasattr(answer, "to_arrow_table") else answer.fetch_arrow_table()
    for index, field in enumerate(rows.schema):
        if not pa.types.is_decimal(field.type):
            continue
        numbers = rows[field.name]
        if field.type.scale:  # not by Arrow's cast, which is not exact to the last digit
            floats = [None if number is None else float(number) for number in numbers.to_pylist()]
            rows = rows.set_column(index, field.name, pa.array(floats, pa.float64()))
        else:
            with suppress(pa.ArrowInvalid):  # a sum beyond int64 stays a decimal
                rows = rows.set_column(index, field.name, numbers.cast(pa.int64()))
    return rows


def _quoted(text: str, mark: str) -> str:
    return mark + text.replace(mark, 2 * mark) + mark
