"""The result of an audit, for people and for programs."""

from collections.abc import Iterator
from itertools import groupby

import msgspec

from tracekit.capture.audit.rows import KINDS, Audit, Kind, Row
from tracekit.sanitize import sanitize
from tracekit.units import many

SCHEMA = "tracekit.audit/1"
_WIDTH = 100  # of a line of source
_HEADS: dict[Kind, str] = {
    "sync": "sync – the host waits until the GPU has caught up",
    "copy": "copy – the host waits for a copy to the GPU",
    "mixed": "mixed – crashes on a GPU: tensors on several devices",
    "break": "break – torch.compile would break its graph",
}
_LIMITS = (
    "This was found on a CPU that pretends to be a GPU: it shows what would wait, but not for how long, and only on "
    "lines that these steps reached."
)


def as_json(audit: Audit, file: object) -> str:
    """The audit as JSON."""
    rows = [msgspec.to_builtins(row) for row in audit.rows]
    whole = {"schema": SCHEMA, "file": str(file), "steps": audit.steps, "rows": rows, "notes": audit.notes}
    return msgspec.json.format(msgspec.json.encode({**whole, "failure": audit.failure}), indent=2).decode() + "\n"


def as_text(audit: Audit, file: object) -> str:
    """The audit as text, in which nothing from the script can control the terminal."""
    return "".join(f"{sanitize(line)}\n" for line in _lines(audit, file))


def _lines(audit: Audit, file: object) -> Iterator[str]:
    yield f"{file} on an emulated GPU, {many(audit.steps, 'step')}: {_summary(audit)}"
    for kind, rows in groupby(audit.rows, key=lambda row: row.kind):
        yield ""
        yield _HEADS[kind]
        for row in rows:
            yield from _described(row)
    yield ""
    yield _LIMITS
    for note in audit.notes:
        yield f"Left open: {note}{_end(note)}"
    if audit.failure:
        yield f"The audit did not finish: {audit.failure}"


def _end(note: str) -> str:
    return "" if note.endswith("?") else "."


def _summary(audit: Audit) -> str:
    if not audit.rows:
        return "nothing blocks there"
    per_step = {kind: sum(row.per_step for row in audit.rows if row.kind == kind) for kind in KINDS}
    lines = {kind: sum(row.kind == kind for row in audit.rows) for kind in KINDS}
    costs = [_times(per_step[kind], _NOUNS[kind]) for kind in KINDS if kind != "mixed" and lines[kind]]
    crashes = [f"it would crash at {many(lines['mixed'], 'line')}"] if lines["mixed"] else []
    return "; ".join([*crashes, *([f"{', '.join(costs)} a step"] if costs else [])])


_NOUNS = {
    "sync": ("wait", "waits"),
    "copy": ("blocking copy", "blocking copies"),
    "break": ("graph break", "graph breaks"),
}


def _described(row: Row) -> Iterator[str]:
    often = f"{_count(row.per_step)} ×" if row.per_step else "once"
    yield f"{often:>8} {row.file}:{row.line} {row.function}"
    if row.source:
        yield f"{'':9}{sanitize(row.source, _WIDTH)}"
    yield f"{'':9}{row.operator} {row.why}" + (f", in {row.via}" if row.via else "")


def _count(per_step: float) -> str:
    return f"{per_step:.2f}".rstrip("0").rstrip(".")


def _times(per_step: float, noun: tuple[str, str]) -> str:
    return f"{_count(per_step)} {noun[per_step != 1]}"
