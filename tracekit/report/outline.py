"""What people read of a report: without repetition, ordered by worth, and short unless everything is requested: what
fits on two screens. Every face that prints from top to bottom shows the same sections, whatever its width: heights
are estimated for lines of 120 characters.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.units import many
from tracekit.profile import LEAST_SHARE
from tracekit.report.blocks import Block, Card, Cards, Excerpt, Headline, Notes, Sentences, Series, Table, is_detail
from tracekit.report.breakdown import Breakdown
from tracekit.report.model import Report
from tracekit.report.section import Section
from tracekit.report.sections.findings import cards

ROWS = 3  # rows of a table, unless more are requested
CARDS = 3  # findings that are told in full
_MIN_BODY_LINES = 10  # lines for the sections that are ordered by worth, even where the others are long
FOLDED = 10  # where the remaining rows are one click away
OF_CELLS = 24  # rows of a table of cells or settings, even where everything is requested
_LONGEST = 2000  # letters of a sentence: a name in it may have millions
_SHORTENED = (
    f"Tables of cells show {OF_CELLS} rows: --only AXIS=VALUE selects cells, --rows all shows every row, and so do "
    "--format xlsx and tracekit export."
)
SCREENS = 2 * 45 - 12  # lines; the rest of two screens is for lines that wrap and for the closing sentences
_LINE, _PROSE = 120, 96  # characters; cards are narrower than lines may be
_HEAD = 2  # the headings and the rule below them
TITLE = 2  # a chapter's title and the empty line before it


class Entry(Struct, frozen=True):
    """One section as it is shown: its subject, its blocks, and how many rows of their tables."""

    subject: str  # the variants or traces it is about, as a label; may be empty
    section: Section
    blocks: tuple[Block, ...]
    rows: int | None  # None: all of them


class Chapter(Struct, frozen=True):
    """The sections of one question, under one title."""

    id: str
    title: str
    entries: tuple[Entry, ...]

    @property
    def leads(self) -> bool:
        """Whether the chapter is the report's lead, which has no title."""
        first = self.entries[0].blocks[0]
        return isinstance(first, Sentences) and first.tone == "lead"


class Outline(Struct, frozen=True):
    """Chapters in order, and the titles of those that are left out."""

    chapters: tuple[Chapter, ...]
    left_out: tuple[str, ...]  # for lack of room
    absent: tuple[str, ...]  # the question does not arise
    unanswered: tuple[str, ...]  # the question arises, but what was recorded cannot answer it
    shortened: bool = False  # whether tables of a study are shown in part, although everything was requested
    unlisted: str = ""  # how many findings are not listed, because others were chosen; empty if all are

    @property
    def closing(self) -> list[str]:
        """What is left out, in a few sentences."""
        sentences = [self.unlisted] if self.unlisted else []
        if self.left_out:
            sentences.append(f"Left out for brevity (--full shows all): {_listed(self.left_out)}.")
        if self.shortened:
            sentences.append(_SHORTENED)
        if self.absent:
            sentences.append(f"Does not apply here: {_listed(self.absent)}.")
        if self.unanswered:
            sentences.append(f"Cannot be answered from what was recorded: {_listed(self.unanswered)}.")
        return sentences


class _Reading(Struct, frozen=True):
    """How much of a report people read."""

    rows: int | None  # of each table, where a number is requested
    full: bool  # nothing is left out
    fold: bool  # what need not be seen at once is folded, one click away

    def opens_tables(self, sections: list[Section]) -> bool:
        """Whether the tables of a question are seen at once."""
        if self.full or sections[0].stage != "body":  # only the body is ordered by worth
            return True
        return max(section.worth for section in sections) >= LEAST_SHARE if self.rows is None else self.rows > 0

    def rows_of(self, section: Section, opened: bool, report: Report) -> int | None:
        """How many rows of its tables are seen at once; None for all."""
        is_of_cells = section.stage == "body" or any(map(is_detail, section.blocks))  # or of settings
        if self.full and not self.fold and report.subject.study is not None and is_of_cells:
            return OF_CELLS if self.rows is None else self.rows  # a study may have thousands of cells
        if self.full or section.stage != "body":  # what leads and ends a report is short, and meant to be read whole
            return None
        if not opened:  # there may be a table all the same, where it is folded
            return 0
        return (FOLDED if self.fold else ROWS) if self.rows is None else self.rows


def outline(report: Report, rows: int | None = None, full: bool = False, fold: bool = False) -> Outline:
    """The report as people read it, with `rows` of each table or else a few; `full` leaves nothing out.

    A face that can `fold` gets every table, because what need not be seen at once can be folded.
    """
    reading = _Reading(rows, full, fold)
    by_id: dict[str, list[Section]] = {}
    for section in report.sections:
        by_id.setdefault(section.id, []).append(section)
    chapters, absent, unanswered = [], [], []
    for sections in by_id.values():
        title = sections[0].title
        statuses = {section.contents.status for section in sections}
        if full or "answered" in statuses:
            chapter = _chapter(sections, report, reading)
            if chapter.entries:
                chapters.append(chapter)
        elif "unanswered" in statuses:
            unanswered.append(title)
        else:
            absent.append(title)
    left_out: list[str] = []
    if rows is None and not full and not fold:  # not where more is requested, or where tables fold
        chapters = [replace(chapter, entries=tuple(map(_with_few_cards, chapter.entries))) for chapter in chapters]
        chapters, left_out = _on_two_screens(chapters)
    shortened = (
        full
        and rows is None
        and not fold
        and any(
            isinstance(block, Table) and entry.rows is not None and block.rows.num_rows > entry.rows
            for chapter in chapters
            for entry in chapter.entries
            for block in entry.blocks
        )
    )
    unlisted = ""
    if report.choice.words:
        number = sum(diagnosis.unlisted for diagnosis in report.diagnoses.values())
        unlisted = f"{report.choice.words} leaves out {many(number, 'finding')}; all figures stay the same."
    return Outline(tuple(chapters), tuple(left_out), tuple(absent), tuple(unanswered), shortened, unlisted)


def _on_two_screens(chapters: list[Chapter]) -> tuple[list[Chapter], list[str]]:
    """As many of the sections that are ordered by worth as there is room for, and the titles of the others."""
    body = [chapter for chapter in chapters if chapter.entries[0].section.stage == "body"]
    fixed_height = sum(
        TITLE + sum(height(block, entry.rows) for entry in chapter.entries for block in entry.blocks)
        for chapter in chapters
        if chapter not in body
    )
    wishes = [
        RoomRequest(
            max(entry.section.worth for entry in chapter.entries),
            [(entry.blocks, entry.rows) for entry in chapter.entries],
        )
        for chapter in body
    ]
    granted_blocks = allotted_lines(wishes, max(SCREENS - fixed_height, _MIN_BODY_LINES))
    blocks_by_id = {chapter.id: positions for chapter, positions in zip(body, granted_blocks, strict=True)}
    shown, left_out = [], []
    for chapter in chapters:
        positions, entries = blocks_by_id.get(chapter.id), []
        for k, entry in enumerate(chapter.entries):
            blocks = [block for j, block in enumerate(entry.blocks) if positions is None or (k, j) in positions]
            if blocks:
                entries.append(replace(entry, blocks=tuple(blocks)))
        if entries:
            shown.append(replace(chapter, entries=tuple(entries)))
        else:
            left_out.append(chapter.title)
    return shown, left_out


def _with_few_cards(entry: Entry) -> Entry:
    """The entry with the costliest findings in full; of the others only what is slow, and what it costs."""
    blocks = (
        replace(
            block,
            cards=(
                *block.cards[:CARDS],
                *(Card(card.headline, card.costs, id=card.id) for card in block.cards[CARDS:]),
            ),
        )
        if isinstance(block, Cards)
        else block
        for block in entry.blocks
    )
    return replace(entry, blocks=tuple(blocks))


def _chapter(sections: list[Section], report: Report, reading: _Reading) -> Chapter:
    first, opened = sections[0], reading.opens_tables(sections)
    is_single_subject = len(report.subject.members) == 1 and first.scope == "variant"  # then its subject is obvious
    entries = [
        Entry(
            "" if is_single_subject else section.subject,
            section,
            # With or without its tables; details only where everything is requested.
            tuple(
                _readable(block)
                for block in section.blocks
                if (opened or reading.fold or not isinstance(block, Table))
                and (reading.full or reading.fold or not is_detail(block))
            ),
            reading.rows_of(section, opened, report),
        )
        for section in sections
        if reading.full or section.contents.status != "absent"
    ]
    return Chapter(first.id, first.title, tuple(_merged([entry for entry in entries if entry.blocks], report)))


def _readable(block: Block) -> Block:
    """The block, with sentences cut in the middle where they are too long to be read."""
    if isinstance(block, Sentences) and any(len(line) > _LONGEST for line in block.lines):
        block = replace(block, lines=tuple(map(_cut_short, block.lines)))
        if not isinstance(block, Cards):
            return block
        cards_cut_short = (
            replace(
                card,
                headline=_cut_short(card.headline),
                place=_cut_short(card.place),
                why=_cut_short(card.why),
                do=_cut_short(card.do),
                costs=tuple((_cut_short(name), cost) for name, cost in card.costs),
                also=tuple(map(_cut_short, card.also)),
            )
            for card in block.cards
        )
        return replace(block, cards=tuple(cards_cut_short))
    if isinstance(block, Notes) and any(len(note.text) > _LONGEST for note in block.notes):
        return replace(block, notes=tuple(replace(note, text=_cut_short(note.text)) for note in block.notes))
    return block


def _cut_short(text: str) -> str:
    half = _LONGEST // 2
    return text if len(text) <= _LONGEST else f"{text[:half]}…{text[-half:]}"


def _merged(entries: Iterable[Entry], report: Report) -> list[Entry]:
    """The findings of several variants are one list, at the beginning; and variants whose sections are equal, and have
    only sentences, share an entry."""
    with_cards: list[Entry] = []
    other_entries: list[Entry] = []
    for entry in entries:
        (with_cards if isinstance(entry.blocks[0], Cards) else other_entries).append(entry)
    if with_cards and with_cards[0].subject:  # not of a single trace
        names = [entry.section.variant or "" for entry in with_cards]
        listed = replace(cards({name: report.diagnoses[name] for name in names}), several=True)
        with_cards = [
            replace(with_cards[0], subject="", blocks=(_readable(listed),)),
            *(replace(entry, blocks=entry.blocks[1:]) for entry in with_cards if len(entry.blocks) > 1),
        ]
    merged: list[Entry] = []
    for entry in (*with_cards, *other_entries):
        of_sentences = entry.section.scope == "variant" and all(isinstance(block, Sentences) for block in entry.blocks)
        equal = next((k for k, listed in enumerate(merged) if of_sentences and listed.blocks == entry.blocks), None)
        if equal is None:
            merged.append(entry)
        else:
            merged[equal] = replace(merged[equal], subject=f"{merged[equal].subject}, {entry.subject}")
    names = [profile.name for profile in report.profiles]
    everyone = ", ".join(names)
    return [replace(entry, subject="") if entry.subject == everyone and len(names) > 1 else entry for entry in merged]


def _listed(titles: Iterable[str]) -> str:
    return ", ".join(title[:1].lower() + title[1:] if not title[1:2].isupper() else title for title in titles)


class RoomRequest(Struct, frozen=True):
    """What a chapter would show if it had room, entry by entry: blocks that can be left out one by one."""

    worth: float
    entries: Sequence[tuple[Sequence[Block], int | None]]  # the blocks, and the number of rows of their tables


def allotted_lines(wishes: Sequence[RoomRequest], lines: int) -> list[set[tuple[int, int]]]:
    """For each chapter, the blocks that fit into that many lines, as (entry, block); none if the chapter does not fit.

    The most valuable chapter is complete. Then come the sentences of the others, and last their tables and excerpts.
    """
    granted_blocks: list[set[tuple[int, int]]] = [set() for _ in wishes]
    order = sorted(range(len(wishes)), key=lambda k: -wishes[k].worth)
    for k in order:
        first_blocks = {
            position
            for position, block, _ in _wished_blocks(wishes[k])
            if isinstance(block, Sentences) or k == order[0]
        }
        cost = TITLE + sum(
            height(block, rows) for position, block, rows in _wished_blocks(wishes[k]) if position in first_blocks
        )
        if first_blocks and cost <= lines:
            granted_blocks[k], lines = first_blocks, lines - cost
    for k in order:
        for position, block, rows in _wished_blocks(wishes[k]) if granted_blocks[k] else ():
            cost = height(block, rows)
            if position not in granted_blocks[k] and cost <= lines:
                granted_blocks[k].add(position)
                lines -= cost
    return granted_blocks


def _wished_blocks(wish: RoomRequest) -> Iterable[tuple[tuple[int, int], Block, int | None]]:
    for entry, (blocks, rows) in enumerate(wish.entries):
        for index, block in enumerate(blocks):
            yield (entry, index), block, rows


def height(block: Block, rows: int | None) -> int:
    """How many lines a block takes, with `rows` of its tables."""
    match block:
        case Headline():
            return sum(_wrapped(line, _PROSE) for line in (block.first, *block.lines, block.last) if line)
        case Cards():
            parts = ((card.place, card.why, card.do, *card.also) for card in block.cards)
            costs = sum(len(card.costs) for card in block.cards)
            return len(block.cards) + costs + sum(_wrapped(text, _PROSE) for texts in parts for text in texts if text)
        case Sentences():
            return sum(_wrapped(line) for line in block.lines)
        case Notes():
            return sum(_wrapped(note.text) for note in block.notes)
        case Series():
            return len(block.lines)
        case Breakdown():
            return 1 + _HEAD + len(block.keys)
        case Table(layout="records"):
            return _HEAD + len(block.rows.schema)
        case Table():
            row_count: int = block.rows.num_rows
            return _HEAD + (row_count if rows is None or row_count <= rows else rows + 1)
        case Excerpt():
            return 1 + _HEAD + len(block.lines)
    raise TypeError(f"{type(block).__name__}: is not a kind of block")


def _wrapped(text: str, width: int = _LINE) -> int:
    return max(1, -(-len(text) // width))
