"""The report as Markdown, for an issue or a pull request."""

import html
import re
from collections.abc import Iterable, Iterator

from tracekit.draw.cells import cell, heading, is_number, readable
from tracekit.draw.wording import note_lines, run_lines, title_of, uncertainty, variant_lines
from tracekit.engine.buckets import BUCKETS
from tracekit.headline import headline
from tracekit.report import Grid, Report, grid
from tracekit.sanitize import sanitize
from tracekit.units import percent, thousandths

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~])")
# Addresses become links, @name notifies people and #12 an issue, all of it after escapes were undone: only an element
# in between, of which nothing is seen, prevents that.
_LIVE = re.compile(r"(?<=@)|(?<=#)(?=\d)|(?<=:)(?=//)|(?<=www)(?=\.)", re.IGNORECASE)


def render(found: Report, rows: int | None = 10) -> str:
    """The report as Markdown; of each answer the first `rows` rows, None for all."""
    return "\n".join(_lines(found, rows)) + "\n"


def escape(text: str) -> str:
    """Text that Markdown and HTML show as it stands."""
    return _LIVE.sub("<span></span>", _SPECIAL.sub(r"\\\1", html.escape(sanitize(text), quote=False)))


def _lines(found: Report, rows: int | None) -> Iterator[str]:
    yield "# " + " against ".join(
        escape(p.name) for p in (*(q for q in found.profiles if q is not found.baseline), found.baseline)
    )
    yield ""
    for sentence in headline(found):
        yield f"**{escape(sentence)}**  "
    for sentence in (*run_lines(found), *variant_lines(found)):
        yield f"{escape(sentence)}  "
    if found.facts:
        names = [profile.name for profile in found.profiles]
        lines = [[fact.label, *(fact.values.get(name, "–") for name in names)] for fact in found.facts]
        yield from ("", "## The run", "", *_table(["", *names], [False, *([True] * len(names))], lines))
    for view in ("wall", "host"):
        numbers = grid(found, view)
        if numbers is not None:
            yield from ("", f"## {title_of(view)}", "", *_grid(found, numbers))
    notes = note_lines(found)
    if notes:
        yield from ("", "## What to know", "", *(f"- {escape(line)}" for line in notes))
    for profile, answer in found.answers:
        yield from ("", f"## {escape(answer.title)}: {escape(profile.name)}", "", escape(answer.sentence))
        if answer.table.num_rows:
            fields = readable(answer.table)
            shown = answer.table.slice(0, rows).to_pylist()
            yield ""
            yield from _table(
                [heading(field) for field in fields],
                [is_number(field) for field in fields],
                [[cell(row[field.name], field) for field in fields] for row in shown],
            )
            if len(shown) < answer.table.num_rows:
                yield from ("", f"{len(shown)} of {answer.table.num_rows} rows.")


def _grid(found: Report, numbers: Grid) -> Iterator[str]:
    names = [profile.name for profile in found.profiles if profile.name in numbers.cells[""]]
    others = [name for name in names if name in numbers.deltas[""]]
    head = ["bucket", *(f"{name} {numbers.unit}" for name in names), *(f"Δ {name} {numbers.unit}" for name in others)]
    head += [f"95 % {name}" for name in others]
    lines = []
    for key in numbers.keys:
        row = numbers.cells[key]
        line = [BUCKETS[key].label if key else "total"]
        line += [_with_share(row[name], numbers.cells[""][name]) for name in names]
        line += [thousandths(numbers.deltas[key][name], signed=True) for name in others]
        line += [uncertainty(numbers, key, name) for name in others]
        lines.append(line)
    yield from _table(head, [False, *([True] * (len(head) - 1))], lines)


def _with_share(value: int, total: int) -> str:
    return f"{thousandths(value)} ({percent(value / total)})" if total and value != total else thousandths(value)


def _table(head: list[str], numeric: list[bool], lines: Iterable[list[str]]) -> Iterator[str]:
    yield "| " + " | ".join(escape(title) for title in head) + " |"
    yield "|" + "|".join("---:" if right else "---" for right in numeric) + "|"
    for line in lines:
        yield "| " + " | ".join(escape(text) for text in line) + " |"
