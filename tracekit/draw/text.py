"""The report for the terminal, in rich renderables. Names are Text, never markup."""

from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from tracekit.analyses import Answer
from tracekit.draw.cells import cell, heading, is_number, readable
from tracekit.draw.wording import note_lines, run_lines, title_of, uncertainty, variant_lines
from tracekit.engine.buckets import BUCKETS
from tracekit.headline import headline
from tracekit.report import Grid, Report, grid
from tracekit.sanitize import sanitize
from tracekit.units import percent, thousandths


def show(found: Report, console: Console, rows: int | None = 5) -> None:
    """Print the report; of each answer the first `rows` rows, None for all."""
    for part in _parts(found, rows, console.width):
        console.print(part)


def _parts(found: Report, rows: int | None, width: int) -> Iterator[RenderableType]:
    for sentence in headline(found):
        yield Text(sanitize(sentence), style="bold")
    for line in ("; ".join(run_lines(found)), *variant_lines(found)):
        if line:
            yield Text(sanitize(line), style="dim")
    if found.facts:
        yield Text()
        yield _facts(found)
    for view in ("wall", "host"):
        numbers = grid(found, view)
        if numbers is not None:
            yield Text()
            yield from _grid(found, numbers, width)
    notes = note_lines(found)
    if notes:
        yield Text("\nWhat to know", style="bold")
        for line in notes:
            kind, _, text = line.partition(": ")
            yield Text.assemble("• ", (kind, "yellow"), ": ", sanitize(text))
    title = ""
    for profile, answer in found.answers:
        if answer.title != title:
            title = answer.title
            yield Text(f"\n{sanitize(title)}", style="bold")
        yield _answer(profile.name, answer, rows)


def _facts(found: Report) -> Table:
    table = Table(title="The run", title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    table.add_column("", no_wrap=True)
    for profile in found.profiles:
        table.add_column(Text(sanitize(profile.name, 28)), justify="right")
    for fact in found.facts:
        table.add_row(fact.label, *(Text(sanitize(fact.values.get(profile.name, "–"))) for profile in found.profiles))
    return table


def _grid(found: Report, numbers: Grid, width: int) -> Iterator[Table]:
    """One table where there is room for it; else the variants, and below them each comparison by itself.

    Where room is shorter still, the shares are left out, and then there are fewer variants to a table: no time is cut.
    """
    names = [profile.name for profile in found.profiles if profile.name in numbers.cells[""]]
    others = [name for name in names if name in numbers.deltas[""]]
    title = f"{title_of(numbers.view)} ({numbers.unit})"
    needed = _LABEL_WIDTH + _VARIANT_WIDTH * len(names) + _DELTA_WIDTH * len(others)
    if len(others) <= 1 and needed <= width:
        yield _buckets(title, numbers, names, others)
        return
    shares = _LABEL_WIDTH + _VARIANT_WIDTH * len(names) <= width
    room = max((width - _LABEL_WIDTH) // (_VARIANT_WIDTH if shares else _NUMBER_WIDTH), 1)
    for at in range(0, len(names), room):
        yield _buckets(title, numbers, names[at : at + room], [], shares)
    for name in others:
        yield _buckets(
            f"{sanitize(name)} against {sanitize(found.baseline.name)} ({numbers.unit})", numbers, [], [name]
        )


_LABEL_WIDTH, _NUMBER_WIDTH, _VARIANT_WIDTH, _DELTA_WIDTH = 22, 12, 24, 42


def _buckets(title: str, numbers: Grid, names: list[str], others: list[str], shares: bool = True) -> Table:
    table = Table(title=Text(title), title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    table.add_column("bucket", no_wrap=True)
    for name in names:
        table.add_column(Text(sanitize(name, 28)), justify="right", overflow="ellipsis")
        if shares:
            table.add_column("", justify="right", no_wrap=True, style="dim")
    for _ in others:
        table.add_column("Δ", justify="right", no_wrap=True)
        table.add_column("95 %", justify="right", style="dim")
    for key in numbers.keys:
        total = not key
        if total:
            table.add_section()
        line: list[RenderableType] = [
            Text("total") if total else Text.assemble(("■ ", BUCKETS[key].colour), BUCKETS[key].label)
        ]
        for name in names:
            value, whole = numbers.cells[key][name], numbers.cells[""][name]
            line.append(thousandths(value) if value or total else "·")
            if shares:
                line.append(percent(value / whole) if whole and value else "")
        for name in others:
            delta = numbers.deltas[key][name]
            sure = uncertainty(numbers, key, name)
            line += [Text(thousandths(delta, signed=True), style="dim" if "noise" in sure else ""), sure]
        table.add_row(*line, style="bold" if total else "")
    return table


def _answer(name: str, answer: Answer, rows: int | None) -> RenderableType:
    sentence = Text.assemble((sanitize(name), "cyan"), ": ", sanitize(answer.sentence))
    if not answer.table.num_rows or rows == 0:
        return sentence
    fields = readable(answer.table)
    table = Table(box=SIMPLE_HEAD)
    for field in fields:
        table.add_column(
            Text(heading(field)),
            justify="right" if is_number(field) else "left",
            overflow="fold",
            no_wrap=is_number(field),
        )
    shown = answer.table.slice(0, rows).to_pylist()
    for row in shown:
        table.add_row(*(Text(cell(row[field.name], field)) for field in fields))
    if len(shown) < answer.table.num_rows:
        return Group(sentence, table, Text(f"  {len(shown)} of {answer.table.num_rows} rows", style="dim"))
    return Group(sentence, table)
