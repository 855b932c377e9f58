"""The facts of a report in plain lines, most valuable first, in no more tokens than requested: for language models.

A token is counted as three bytes of UTF-8. Today's tokenizers make about four bytes of English into one, and about
three of names and figures, so the estimate is too high rather than too low.
"""

from collections.abc import Iterator
from functools import singledispatch

from tracekit.base.names import sanitize
from tracekit.base.units import thousandths
from tracekit.errors.asking import FewTokensError
from tracekit.faces.shared.cells import heading, lines, readable
from tracekit.faces.shared.wording import certainty, label, legend, margins, note_text, rests_on
from tracekit.report import Report
from tracekit.report.blocks import Block, Excerpt, Notes, Sentences, Series, Table
from tracekit.report.breakdown import TOTAL, Breakdown
from tracekit.report.section import Section

BYTES_A_TOKEN = 3
_FIRST_ROWS = 3  # of a table, before the rows of others
_ROWS = 30
_LONGEST = 600  # letters of a fact


def tokens(text: str) -> int:
    """How many tokens a text counts as."""
    return -(-len(text.encode()) // BYTES_A_TOKEN)


def explain(report: Report, budget: int) -> str:
    """Lines of facts in at most that many tokens; the last line says how many are left out, if it fits.

    Raises FewTokensError if no fact fits.
    """
    written, left_out, spent = "", 0, 0
    facts = [sanitize(fact, _LONGEST) for fact in facts_of(report)]
    for fact in facts:
        line = f"{fact}\n"
        if tokens(written + line) <= budget:
            written, spent = written + line, spent + 1
        else:
            left_out += 1
    if not spent:
        raise FewTokensError(budget, min(tokens(f"{fact}\n") for fact in facts))
    closing = f"({left_out} further facts are left out; a larger budget has them.)\n"
    return written + closing if left_out and tokens(written + closing) <= budget else written


def facts_of(report: Report) -> Iterator[str]:
    """Every fact, most valuable first: what leads the report, its notes, its other sentences, and then its tables."""
    ranked = [
        (_rank(section, block, position), f"{prefix}{fact}")
        for section in report.sections
        for prefix in [f"{section.subject}: " if section.subject else ""]
        for block in section.blocks
        for position, fact in enumerate(facts(block))
    ]
    yield from dict.fromkeys(fact for _, fact in sorted(ranked, key=lambda ranked_fact: ranked_fact[0]))


def _rank(section: Section, block: Block, position: int) -> int:
    if isinstance(block, Table | Excerpt):
        return 4 if position < _FIRST_ROWS and not block.detail else 5
    if isinstance(block, Notes):
        return 2
    if isinstance(block, Sentences) and block.tone == "lead":
        return 0
    return 1 if section.stage == "lead" else 3


@singledispatch
def facts(block: Block) -> Iterator[str]:
    """The facts in a block."""
    raise TypeError(f"{type(block).__name__}: is not a kind of block")


@facts.register(Sentences)
def _(block: Sentences) -> Iterator[str]:
    yield from block.lines


@facts.register(Notes)
def _(block: Notes) -> Iterator[str]:
    for note in block.notes:
        yield f"{note.kind}: {note_text(note)}"


@facts.register(Series)
def _(block: Series) -> Iterator[str]:
    for line in block.lines:
        yield f"{line.name}, {legend(line, marked=False)}"


@facts.register(Breakdown)
def _(block: Breakdown) -> Iterator[str]:
    for name in block.variants:
        parts = [
            f"{label(block, key)} {thousandths(block.cells[key][name])}"
            for key in block.keys
            if key != TOTAL and block.cells[key][name]
        ]
        total = thousandths(block.cells[TOTAL][name])
        yield f"{block.title}, {name}: {total} {block.unit} = {' + '.join(parts)}"
    for name in block.compared:
        changes = [
            f"{label(block, key)} {thousandths(block.deltas[key][name], signed=True)}"
            + (f" ({doubted})" if (doubted := certainty(block, key, name)) else "")
            for key in block.keys
            if block.deltas[key][name]
        ]
        yield (
            f"{name} against {block.baselines[name]}, {block.unit}, from {rests_on(block, name)} each: "
            f"{', '.join(changes)}"
        )
    for name, reason in block.unanswered.items():
        yield f"{block.title}, {name}: cannot be answered: {reason}"


@facts.register(Table)
def _(block: Table) -> Iterator[str]:
    shown_rows = block.rows.slice(0, _ROWS)
    fields = readable(shown_rows, full=False)
    for row in lines(shown_rows, fields):
        pairs = [f"{heading(field)} {text}".strip() for field, text in zip(fields, row, strict=True) if text != "–"]
        yield f"{block.name}: {', '.join(pairs)}"


@facts.register(Excerpt)
def _(block: Excerpt) -> Iterator[str]:
    for number, line in enumerate(block.lines, block.first):
        costs = [f"{cost} ({name})" for name, cost in zip(block.costs, margins(block, number), strict=True) if cost]
        if costs:
            yield f"{block.file}:{number} {line.strip()} costs {', '.join(costs)}"
