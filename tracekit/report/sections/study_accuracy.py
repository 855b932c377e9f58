"""Does each variant train as well as the baseline of its setting, over the seeds?"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from tracekit.report.blocks import Block, Sentences, Table
from tracekit.report.model import Report
from tracekit.report.section import Contents, of_study
from tracekit.report.sections.accuracy import ACCURACY_COLUMNS, accuracy_row
from tracekit.report.sections.study_cells import SETTING, VARIANT
from tracekit.run.accuracy import accuracy_contrast, in_words
from tracekit.study import Study
from tracekit.study.settings import Setting, settings

_MAX_SENTENCES = 6  # sentences that are said one by one
ACCURACY = pa.schema(
    [
        SETTING,
        VARIANT,
        *ACCURACY_COLUMNS,
    ]
)


@of_study("study_accuracy", "Accuracy", rank=6, stage="lead")
def accuracy(_: Report, study: Study) -> Contents | None:
    """A sentence and a row for each setting and variant that was trained to its end."""
    all_settings = settings(study)
    table_rows = [row for setting in all_settings for row in _rows(setting)]
    if not table_rows:
        return None
    blocks: list[Block] = [Table("study_accuracy", pa.Table.from_pylist(table_rows, ACCURACY), detail=True)]
    sentences = _sentences(all_settings)
    return Contents((Sentences(sentences), *blocks) if sentences else tuple(blocks))


def _rows(setting: Setting) -> Iterator[dict[str, Any]]:
    first = setting.groups[0]
    for group in setting.groups:
        if group.trainings:
            against = first.trainings if group is not first else []
            row = accuracy_row(group.trainings, against)
            yield {"setting": setting.name, "variant": group.variant, **row}


def _sentences(all_settings: list[Setting]) -> tuple[str, ...]:
    """If there are few, a sentence for each; if many, how many lose nothing, and a sentence for each that may."""
    compared = [comparison for setting in all_settings for comparison in _compared(setting)]
    if len(compared) <= _MAX_SENTENCES:
        return tuple(sentence for _, sentence in compared)
    fine = [verdict in ("better", "no loss") for verdict, _ in compared]
    counted = f"No loss of accuracy at {sum(fine)} of {len(compared)} settings and variants."
    return counted, *(sentence for (_, sentence), is_fine in zip(compared, fine, strict=True) if not is_fine)


def _compared(setting: Setting) -> Iterator[tuple[str, str]]:
    first, *other_groups = setting.groups
    for group in other_groups:
        if (contrast := accuracy_contrast(group.trainings, first.trainings)) is not None:
            yield contrast.verdict, f"{setting.name}: {in_words(contrast, group.variant, first.variant)}."
