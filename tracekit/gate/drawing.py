"""The rows of a check as text, as Markdown for a pull request, as JSON, and as JUnit XML for a build server."""

import json
from collections.abc import Sequence
from xml.etree import ElementTree

import pyarrow as pa

from tracekit.faces import Options, markdown, text
from tracekit.gate.rows import Check, Row, failed
from tracekit.report.blocks import Block, Note, Notes, Sentences, Table
from tracekit.sanitize import sanitize
from tracekit.trace.schema import LABEL, column

SCHEMA = "tracekit.check/1"
_COLUMNS = pa.schema(
    [
        column("variant", LABEL, "the variant", role="name"),
        column("metric", LABEL, "what is limited, with its unit"),
        column("limit", pa.string(), "highest value that passes", role="figure"),
        column("value", pa.string(), "value that was measured", role="figure"),
        column("interval", pa.string(), "interval in which the value may lie", role="figure"),
        column("outcome", LABEL, "pass, noise, fail, unanswered or allowed"),
        column("why", pa.string(), "the reason, if the numbers do not show it"),
    ]
)


def as_text(check: Check, options: Options) -> str:
    """The check as text for a terminal."""
    return text.draw_blocks(_blocks(check), options)


def as_markdown(check: Check, options: Options) -> str:
    """The check as Markdown for a pull request."""
    return markdown.draw_blocks(_blocks(check), options)


def as_json(check: Check, options: Options) -> str:
    """The check as JSON, `tracekit.check/1`."""
    content = {
        "schema": SCHEMA,
        "failed": failed(check.rows),
        "warnings": check.warnings,
        "rows": [row.document() for row in check.rows],
    }
    return json.dumps(content, indent=1, allow_nan=False).replace("\x7f", "\\u007f") + "\n"


def as_junit(check: Check, options: Options) -> str:
    """The check as JUnit XML for a build server, with a test case for each row."""
    rows, failures = check.rows, sum(row.fails for row in check.rows)
    suite = ElementTree.Element("testsuite", name="tracekit check", tests=str(len(rows)), failures=str(failures))
    for row in rows:
        case = ElementTree.SubElement(suite, "testcase", classname=sanitize(row.variant), name=sanitize(row.metric))
        if row.fails:
            ElementTree.SubElement(case, "failure", type=row.outcome, message=sanitize(_sentence(row)))
        elif row.outcome == "allowed":
            ElementTree.SubElement(case, "skipped", message=sanitize(row.why))
    if check.warnings:
        ElementTree.SubElement(suite, "system-out").text = sanitize("\n".join(check.warnings))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


FORMATS = {"text": as_text, "markdown": as_markdown, "json": as_json, "junit": as_junit}


def _blocks(check: Check) -> list[Block]:
    rows = check.rows
    columns = [
        [row.variant for row in rows],
        [row.metric for row in rows],
        [_number(row.limit) for row in rows],
        [_number(row.value) for row in rows],
        [None if row.interval is None else " … ".join(map(_figure, row.interval)) for row in rows],
        [row.outcome for row in rows],
        [row.why or None for row in rows],
    ]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, _COLUMNS, strict=True)]
    blocks: list[Block] = [Table("check", pa.Table.from_arrays(arrays, schema=_COLUMNS)), Sentences((_summary(rows),))]
    if check.warnings:
        blocks.append(Notes(tuple(Note("warning", (), f"{warning}.") for warning in check.warnings)))
    return blocks


def _summary(rows: Sequence[Row]) -> str:
    failing = sum(row.fails for row in rows)
    unsure = sum(row.outcome == "noise" for row in rows)
    if not rows:
        return "Nothing was checked."
    checks = "1 check" if len(rows) == 1 else f"{len(rows)} checks"
    passed = "it passes" if len(rows) == 1 else "all pass"
    said = f"{failing} of {checks} {'fails' if failing == 1 else 'fail'}." if failing else f"{checks}: {passed}."
    if not unsure:
        return said
    are = "1 of them is" if unsure == 1 else f"{unsure} of them are"
    return f"{said} {are} beyond the limit, but within noise: captures with more passes would settle it."


def _sentence(row: Row) -> str:
    if row.value is None:
        return f"{row.metric} of {row.variant}: {row.why}"
    interval = "" if row.interval is None else f" ({' … '.join(map(_figure, row.interval))})"
    return f"{row.metric} of {row.variant} is {_figure(row.value)}{interval}; the limit is {_number(row.limit)}"


def _number(value: float | None) -> str | None:
    return None if value is None else _figure(value)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.4g}"
