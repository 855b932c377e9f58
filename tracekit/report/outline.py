"""What a person reads of a report: each thing once, ordered by worth, short unless all is asked for."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tracekit.report.blocks import Block, Excerpt, Sentences, Table
from tracekit.report.model import Report
from tracekit.report.section import WORTH, Section

ROWS = 3  # of a table, unless more are asked for
FOLDED = 10  # where the others are one click away


@dataclass(frozen=True)
class Entry:
    """One section as it is shown: whose it is, its blocks, and how many rows of their tables."""

    of: str  # variants, traces or nothing, as a label
    section: Section
    blocks: tuple[Block, ...]
    rows: int | None  # None: all of them


@dataclass(frozen=True)
class Chapter:
    """The sections of one question, under one title."""

    id: str
    title: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Outline:
    """Chapters in order, and the titles of those that have nothing to say here."""

    chapters: tuple[Chapter, ...]
    absent: tuple[str, ...]  # the question does not arise
    unanswered: tuple[str, ...]  # it does, and what was recorded cannot tell

    @property
    def closing(self) -> list[str]:
        """What is not here, in at most two sentences."""
        sentences = []
        if self.absent:
            sentences.append(f"Not in this run: {_listed(self.absent)}.")
        if self.unanswered:
            sentences.append(f"Not told by what was recorded: {_listed(self.unanswered)}.")
        return sentences


def outline(report: Report, rows: int | None = None, full: bool = False, fold: bool = False) -> Outline:
    """The report as people read it. `rows` of each table, or else few; `full` leaves nothing out.

    A face that can `fold` gets every table: what need not be seen at once is one click away.
    """
    by_id: dict[str, list[Section]] = {}
    for section in report.sections:
        by_id.setdefault(section.id, []).append(section)
    chapters, absent, unanswered = [], [], []
    for sections in by_id.values():
        title = sections[0].title
        statuses = {section.contents.status for section in sections}
        if full or "answered" in statuses:
            chapter = _chapter(sections, report, rows, full, fold)
            if chapter.entries:
                chapters.append(chapter)
        elif "unanswered" in statuses:
            unanswered.append(title)
        else:
            absent.append(title)
    return Outline(tuple(chapters), tuple(absent), tuple(unanswered))


def _chapter(sections: list[Section], report: Report, rows: int | None, full: bool, fold: bool) -> Chapter:
    first = sections[0]
    shown = [each for each in sections if full or each.contents.status != "absent"]
    worth = max(each.worth for each in sections)
    tables = full or first.stage != "body" or (worth >= WORTH if rows is None else rows > 0)
    wanted = (FOLDED if fold else ROWS) if rows is None else rows
    opened = None if full or first.stage != "body" else wanted if tables else 0
    only = len(report.subject.members) == 1 and first.scope == "variant"  # then nobody asks whose it is
    entries = [
        Entry("" if only else _of(each), each, _blocks(each, tables or fold, full or fold), opened) for each in shown
    ]
    return Chapter(first.id, first.title, tuple(_merged([entry for entry in entries if entry.blocks], report)))


def _blocks(section: Section, tables: bool, full: bool) -> tuple[Block, ...]:
    """The blocks of a section, with or without its tables; details only where all is wanted."""
    return tuple(
        block
        for block in section.blocks
        if (tables or not isinstance(block, Table)) and (full or not _is_detail(block))
    )


def _is_detail(block: Block) -> bool:
    return isinstance(block, Table | Excerpt) and block.detail


def _merged(entries: Iterable[Entry], report: Report) -> list[Entry]:
    """Variants of which the same is said, and nothing but sentences, share an entry."""
    merged: list[Entry] = []
    names = [profile.name for profile in report.profiles]
    for entry in entries:
        same = [k for k, other in enumerate(merged) if _only_sentences(entry) and other.blocks == entry.blocks]
        if same:
            merged[same[0]] = replace(merged[same[0]], of=f"{merged[same[0]].of}, {entry.of}")
        else:
            merged.append(entry)
    everyone = ", ".join(names)
    return [replace(entry, of="") if entry.of == everyone and len(names) > 1 else entry for entry in merged]


def _only_sentences(entry: Entry) -> bool:
    return entry.section.scope == "variant" and all(isinstance(block, Sentences) for block in entry.blocks)


def _of(section: Section) -> str:
    """Whose the section is."""
    if section.scope == "trace":
        return f"{section.variant}, {section.trace}"
    if section.scope == "comparison":
        return f"{section.variant} against {section.baseline}"
    return section.variant or ""


def _listed(titles: Iterable[str]) -> str:
    return ", ".join(title[:1].lower() + title[1:] if not title[1:2].isupper() else title for title in titles)
