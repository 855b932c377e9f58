"""How much of a report fits on two screens? Chapters get room in the order of their worth.

Every face that prints from top to bottom shows the same sections, whatever its width: heights are estimated for lines
of 120 characters.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import singledispatch

from tracekit.report.blocks import Block, Cards, Excerpt, Headline, Notes, Sentences, Series, Table
from tracekit.report.breakdown import Breakdown

SCREENS = 2 * 45 - 12  # lines; the rest of two screens is for lines that wrap and for the closing sentences
_LINE, _PROSE = 120, 96  # characters; cards are narrower than lines may be
_HEAD = 2  # the headings and the rule below them
TITLE = 2  # a chapter's title and the empty line before it


@dataclass(frozen=True)
class Wish:
    """What a chapter would show if it had room, entry by entry: blocks that can be left out one by one."""

    worth: float
    entries: Sequence[tuple[Sequence[Block], int | None]]  # the blocks, and the number of rows of their tables


def granted(wishes: Sequence[Wish], lines: int) -> list[set[tuple[int, int]]]:
    """For each chapter, the blocks that fit into that many lines, as (entry, block); none if the chapter does not fit.

    The most valuable chapter is complete. Then come the sentences of the others, and last their tables and excerpts.
    """
    granted_blocks: list[set[tuple[int, int]]] = [set() for _ in wishes]
    order = sorted(range(len(wishes)), key=lambda k: -wishes[k].worth)
    for k in order:
        first_blocks = {
            position for position, block, _ in _blocks(wishes[k]) if isinstance(block, Sentences) or k == order[0]
        }
        cost = TITLE + sum(
            height(block, rows) for position, block, rows in _blocks(wishes[k]) if position in first_blocks
        )
        if first_blocks and cost <= lines:
            granted_blocks[k], lines = first_blocks, lines - cost
    for k in order:
        for position, block, rows in _blocks(wishes[k]) if granted_blocks[k] else ():
            cost = height(block, rows)
            if position not in granted_blocks[k] and cost <= lines:
                granted_blocks[k].add(position)
                lines -= cost
    return granted_blocks


def _blocks(wish: Wish) -> Iterable[tuple[tuple[int, int], Block, int | None]]:
    for entry, (blocks, rows) in enumerate(wish.entries):
        for index, block in enumerate(blocks):
            yield (entry, index), block, rows


@singledispatch
def height(block: Block, rows: int | None) -> int:
    """How many lines a block takes, with `rows` of its tables."""
    raise TypeError(f"{type(block).__name__}: is not a kind of block")


@height.register
def _(block: Sentences, rows: int | None) -> int:
    return sum(_wrapped(line) for line in block.lines)


@height.register
def _(block: Headline, rows: int | None) -> int:
    return sum(_wrapped(line, _PROSE) for line in (block.first, *block.lines, block.last) if line)


@height.register
def _(block: Cards, rows: int | None) -> int:
    parts = ((card.place, card.why, card.do, *card.also) for card in block.cards)
    costs = sum(len(card.costs) for card in block.cards)
    return len(block.cards) + costs + sum(_wrapped(text, _PROSE) for texts in parts for text in texts if text)


@height.register
def _(block: Notes, rows: int | None) -> int:
    return sum(_wrapped(note.text) for note in block.notes)


@height.register
def _(block: Series, rows: int | None) -> int:
    return len(block.lines)


@height.register
def _(block: Breakdown, rows: int | None) -> int:
    return 1 + _HEAD + len(block.keys)


@height.register
def _(block: Table, rows: int | None) -> int:
    if block.layout == "records":
        return _HEAD + len(block.rows.schema)
    row_count = block.rows.num_rows
    return _HEAD + (row_count if rows is None or row_count <= rows else rows + 1)


@height.register
def _(block: Excerpt, rows: int | None) -> int:
    return 1 + _HEAD + len(block.lines)


def _wrapped(text: str, width: int = _LINE) -> int:
    return max(1, -(-len(text) // width))
