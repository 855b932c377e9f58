"""What do the tables say? A query in SQL, over all that `tracekit export` writes."""

from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct, field

from tracekit.agent.answers import Answer, Call, QuestionAboutInputs, Words
from tracekit.agent.inputs import Workplace
from tracekit.errors.asking import QueryError, UnknownReferenceError
from tracekit.report.tables import every_table
from tracekit.sql import query as ask
from tracekit.trace.schema import metadata

MOST_ROWS = 50
_MOST_SECONDS = 30.0
_MOST_BYTES = 16 << 20  # of the rows: as Python's objects they take many times as much


class QueryQuestion(QuestionAboutInputs, kw_only=True, forbid_unknown_fields=True):
    """What to ask; nothing lists the tables."""

    sql: Annotated[str, Meta(description="one statement in DuckDB's SQL; leave it out to list the tables")] | None = (
        None
    )
    table: Annotated[str, Meta(description="a table, to list its columns with their units")] | None = None


class Table(Struct, forbid_unknown_fields=True):
    """A table that a query can read."""

    table: str
    columns: int


class Column(Struct, forbid_unknown_fields=True):
    """A column of a table: its unit, and in `untrusted` its name, which may hold that of a variant, and its meaning."""

    unit: str
    untrusted: Words


class Row(Struct, forbid_unknown_fields=True):
    """A row: its values by the names of the columns."""

    untrusted: dict[str, Any]


class Rows(Answer, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """At most 50 rows, or what there is to query. `more` says that the query has further rows: aggregate, or add
    LIMIT and OFFSET."""

    lists: ClassVar = ("rows", "tables", "columns")
    rows: list[Row] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    columns: list[Column] = field(default_factory=list)
    more: bool = False


def query(workplace: Workplace, question: QueryQuestion) -> Rows:
    """A read-only SQL query over the tables of the inputs: events, attribution, segments, kernels and what analyses
    found. It reaches no file and no address. Times are ns. Without sql, lists the tables."""
    opened = workplace.open(question.inputs)
    inputs = {"inputs": question.inputs}
    limits = opened.limits()
    if question.sql is not None:
        answer = ask(opened.report, question.sql, most=MOST_ROWS + 1, seconds=_MOST_SECONDS)
        first = answer.slice(0, MOST_ROWS)
        if first.nbytes > _MOST_BYTES:
            raise QueryError(f"its rows take {first.nbytes >> 20} MiB: select less", sorted(every_table(opened.report)))
        rows = [Row(row) for row in first.to_pylist()]
        following = [Call("evidence", inputs, "of=v1.e255 for 255 in a column event: what is around it")]
        return Rows(rows=rows, more=len(answer) > MOST_ROWS, **limits, next=following)
    tables = every_table(opened.report)
    if question.table is not None:
        if question.table not in tables:
            raise UnknownReferenceError(question.table, f"the tables are {', '.join(tables)}")
        columns = [
            Column(metadata(field, "unit"), Words(name=field.name, text=metadata(field, "comment")))
            for field in tables[question.table].schema
        ]
        example = f'select * from "{question.table}" limit 5'
        return Rows(columns=columns, **limits, next=[Call("query", {**inputs, "sql": example}, "some rows")])
    listed = [Table(name, len(stream.schema)) for name, stream in tables.items()]
    return Rows(tables=listed, **limits, next=[Call("query", {**inputs, "table": "events"}, "the columns of a table")])
