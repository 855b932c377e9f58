"""What did the analyses find? Each of them is a section of its variant."""

from collections.abc import Iterator

from tracekit.analyses import Answer
from tracekit.report.blocks import Block, Sentences, Table
from tracekit.report.model import Report
from tracekit.report.registry import made_by
from tracekit.report.section import Contents, Section


@made_by("analyses")
def answers(report: Report) -> Iterator[Section]:
    """A section for each analysis and variant."""
    for profile, answer in report.answers:
        yield Section(
            id=answer.analysis,
            title=answer.title,
            scope="variant",
            stage="body",
            rank=answer.rank,
            contents=_contents(answer),
            variant=profile.name,
        )


def _contents(answer: Answer) -> Contents:
    blocks: list[Block] = [Sentences((answer.sentence,))]
    if answer.table.num_rows:
        blocks.append(Table(answer.analysis, answer.table))
    return Contents(tuple(blocks), worth=answer.worth, status=answer.status)
