"""The rows of a check as text, as Markdown for a pull request, as JSON, and as JUnit XML for a build server."""

from collections.abc import Sequence
from xml.etree import ElementTree

import pyarrow as pa
from msgspec.structs import asdict

from tracekit.base.names import sanitize
from tracekit.base.units import percent
from tracekit.faces import Options, markdown, text
from tracekit.faces.shared.document import as_json as json_text
from tracekit.gate.rows import Check, Row, failed
from tracekit.report.blocks import Block, Note, Notes, Sentences, Table
from tracekit.statistics.uncertainty import TOO_UNSURE, UNSEEN, says_nothing
from tracekit.trace.schema import LABEL, column

SCHEMA = "tracekit.check/1"
_MORE_PASSES = "take more passes, as with tracekit capture --min-detectable 5%"
_CLOSER = "capture both anew, one right after the other"
_MAX_NAMED_ROWS = 3  # rows that a sentence names
_COLUMNS = pa.schema(
    [
        column("variant", LABEL, "the variant", role="name"),
        column("metric", LABEL, "what is limited, with its unit"),
        column("limit", pa.string(), "highest value that passes", role="figure"),
        column("value", pa.string(), "value that was measured", role="figure"),
        column("interval", pa.string(), "interval in which the value may lie", role="figure"),
        column("outcome", LABEL, "pass, noise, unseen, fail, unanswered or allowed"),
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
        "seen": sensitivity(check),
        "detectable": worst.detectable if (worst := _least_certain(check.rows)) else None,
        "failed": failed(check.rows),
        "warnings": check.warnings,
        "rows": [asdict(row) for row in check.rows],
    }
    return json_text(content)


def as_junit(check: Check, options: Options) -> str:
    """The check as JUnit XML for a build server, with a test case for each row; what could not be checked is an
    error."""
    failing = [row for row in check.rows if row.fails]
    errors = sum(row.outcome == "unanswered" for row in failing)
    suite = _suite(len(check.rows), len(failing) - errors, errors)
    properties = ElementTree.SubElement(suite, "properties")
    ElementTree.SubElement(properties, "property", name="seen", value=sanitize(sensitivity(check)))
    for row in check.rows:
        case = ElementTree.SubElement(suite, "testcase", classname=sanitize(row.variant), name=sanitize(row.metric))
        if row.fails:
            kind = "error" if row.outcome == "unanswered" else "failure"
            sentence = f"{_name_of(row)}: {row.why}"
            if row.value is not None:
                interval = "" if row.interval is None else f" ({_ends(row)})"
                why = f"; {row.why}" if row.why else ""
                limit = _number(row.limit)
                sentence = f"{_name_of(row)} is {_number(row.value)}{interval}; the limit is {limit}{why}"
            ElementTree.SubElement(case, kind, type=row.outcome, message=sanitize(sentence))
        elif row.outcome == "allowed":
            ElementTree.SubElement(case, "skipped", message=sanitize(row.why))
    ElementTree.SubElement(suite, "system-out").text = sanitize("\n".join([sensitivity(check), *check.warnings]))
    return _xml(suite)


def junit_error(why: str) -> str:
    """A check that could not be made as JUnit XML: an error, not a failure."""
    suite = _suite(1, 0, 1)
    case = ElementTree.SubElement(suite, "testcase", classname="tracekit", name="check")
    ElementTree.SubElement(case, "error", type="not checked", message=sanitize(why))
    return _xml(suite)


def _suite(tests: int, failures: int, errors: int) -> ElementTree.Element:
    return ElementTree.Element(
        "testsuite", name="tracekit check", tests=str(tests), failures=str(failures), errors=str(errors)
    )


def _xml(suite: ElementTree.Element) -> str:
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


FORMATS = {"text": as_text, "markdown": as_markdown, "json": as_json, "junit": as_junit}


def _blocks(check: Check) -> list[Block]:
    rows = check.rows
    texts = [{"limit": _number(row.limit), "value": _number(row.value), "interval": _ends(row)} for row in rows]
    cells = [asdict(row) | row_texts for row, row_texts in zip(rows, texts, strict=True)]
    table = Table("check", pa.Table.from_pylist(cells, schema=_COLUMNS))
    could_see, names_by_reason = sensitivity(check), dict[str, list[str]]()
    for row in rows:
        if row.why and f": {row.why}." not in could_see:
            names_by_reason.setdefault(row.why, []).append(_name_of(row))
    reasons = [Note("remark", tuple(names), f"{why}.") for why, names in names_by_reason.items()]
    notes = (*(Note("warning", (), f"{warning}.") for warning in check.warnings), *reasons)
    blocks: list[Block] = [Sentences((could_see,)), table, Sentences((_summary(rows),))]
    return [*blocks, Notes(notes)] if notes else blocks


def sensitivity(check: Check) -> str:
    """What the check could have seen: the smallest regression that none of its times would have hidden."""
    unknown = [row for row in check.rows if row.value is not None and not row.exact and row.detectable is None]
    unknown = [row for row in unknown if row.why]
    sentences = []
    if worst := _least_certain(check.rows):
        sentence = "Values more than {} above their limit" if check.base == "limit" else "Regressions of more than {}"
        weakest = f"; {_name_of(worst)} is the least certain" if len(check.rows) > 1 else ""
        if (worst.detectable or 0.0) > TOO_UNSURE:
            sentences.append(f"{UNSEEN}{weakest}.")
        else:
            clause = sentence.format(percent(worst.detectable))
            sentences.append(f"{clause} would have been seen, 19 times in 20{weakest}.")
    if unknown:
        rows = ", ".join(map(_name_of, unknown[:_MAX_NAMED_ROWS])) + (
            " and others" if len(unknown) > _MAX_NAMED_ROWS else ""
        )
        sentences.append(f"What could have been seen is unknown for {rows}: {unknown[0].why}.")
    if not sentences:
        counted = any(row.exact for row in check.rows)
        sentences.append("Any difference would have been seen." if counted else "Nothing could have been seen.")
    return " ".join(sentences)


def _least_certain(rows: Sequence[Row]) -> Row | None:
    return max((row for row in rows if row.detectable is not None), key=lambda row: row.detectable or 0, default=None)


def _name_of(row: Row) -> str:
    return f"{row.metric} of {row.variant}"


def _summary(rows: Sequence[Row]) -> str:
    if not rows:
        return "Nothing was checked."
    failing = sum(row.fails for row in rows)
    checks = "1 check" if len(rows) == 1 else f"{len(rows)} checks"
    unseen = [row for row in rows if row.outcome == "unseen"]
    unsure = sum(row.outcome == "noise" for row in rows)
    if failing:
        sentences = [f"{failing} of {checks} {'fails' if failing == 1 else 'fail'}."]
    elif unseen or unsure:
        sentences = [f"{checks}: none fails." if len(rows) > 1 else f"{checks}: it does not fail."]
    else:
        sentences = [f"{checks}: {'it passes' if len(rows) == 1 else 'all pass'}."]
    if unsure:
        are = "1 of them is" if unsure == 1 else f"{unsure} of them are"
        sentences.append(f"{are} beyond the limit, but within noise: captures with more passes would settle it.")
    if unseen:
        are = "1 of them is" if len(unseen) == 1 else f"{len(unseen)} of them are"
        cures = dict.fromkeys(_CLOSER if row.far_apart else _MORE_PASSES for row in unseen)
        sentences.append(f"{are} too uncertain to be called a pass: {', and '.join(cures)}.")
    return " ".join(sentences)


def _ends(row: Row) -> str | None:
    """The interval, or the end of it that says something: the lower one is beyond the limit where the row fails."""
    if row.interval is None or not says_nothing(row.interval):
        return row.interval and " … ".join(map(_figure, row.interval))
    return f"more than {_figure(row.interval[0])}" if row.outcome == "fail" else "too far apart to tell"


def _number(value: float | None) -> str | None:
    return None if value is None else _figure(value)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.4g}"
