"""The table of buckets as columns of text, the heading on top."""

from rich.text import Text

from tracekit.names import short
from tracekit.tui.breakdown import Breakdown
from tracekit.tui.paint import chip

_NAMES = (40, 28, 20, 12)  # cells for a name in a heading: the most that fits


def fitting(numbers: Breakdown, width: int) -> list[list[Text]]:
    """Columns, heading first, whose names are cut no more than the width asks for."""
    for longest in _NAMES:
        columns = _columns(numbers, longest)
        if sum(2 + max(map(len, column)) for column in columns) <= width:
            break
    return columns


def _columns(numbers: Breakdown, longest: int) -> list[list[Text]]:
    title_of = dict(zip(numbers.names, short(numbers.names, longest), strict=True))
    others = list(numbers.lines[-1].changes)
    columns = [[Text("  bucket"), *map(chip, numbers.lines)]]
    columns += [_shares(numbers, name, title) for name, title in title_of.items()]
    for name in others:
        columns += _changes(numbers, name, f"Δ {title_of[name]}" if len(others) > 1 else "Δ")
    return columns


def _shares(numbers: Breakdown, name: str, title: str) -> list[Text]:
    shares = [line.shares[name] for line in numbers.lines]
    return _column(title, [f"{share.value} {share.share:>7}" for share in shares], [""] * len(shares))


def _changes(numbers: Breakdown, name: str, title: str) -> list[list[Text]]:
    changes = [line.changes[name] for line in numbers.lines]
    styles = ["dim" if change.noise else "" for change in changes]
    return [
        _column(title, [change.value for change in changes], styles),
        _column(
            "95 %  ",
            [f"{change.interval} {'~' if change.noise else ' '}" for change in changes],
            ["dim"] * len(changes),
        ),
    ]


def _column(title: str, values: list[str], styles: list[str]) -> list[Text]:
    """A heading and its cells, flush right by spaces: Rich would strip those that keep shares and marks in line."""
    width = max(map(len, [title, *values]))
    styles[-1] = styles[-1] or "bold"
    return [
        Text(title.rjust(width)),
        *(Text(value.rjust(width), style) for value, style in zip(values, styles, strict=True)),
    ]
