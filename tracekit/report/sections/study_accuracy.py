"""Does each variant train as well as the baseline of its setting, over the seeds?"""

import pyarrow as pa

from tracekit.report.blocks import Sentences, Table
from tracekit.report.model import Report
from tracekit.report.section import Contents, of_study
from tracekit.report.sections.accuracy import ACCURACY_COLUMNS, accuracy_row
from tracekit.report.sections.study_cells import SETTING, VARIANT
from tracekit.run.accuracy import accuracy_contrast, in_words
from tracekit.study import Study
from tracekit.study.settings import groups_of

_MAX_SENTENCES = 6  # sentences that are said one by one
ACCURACY = pa.schema([SETTING, VARIANT, *ACCURACY_COLUMNS])


@of_study("study_accuracy", "Accuracy", rank=6, stage="lead")
def accuracy(_: Report, study: Study) -> Contents | None:
    """A row for each setting and variant that was trained to its end. If there are few, a sentence for each; if many,
    how many lose nothing, and a sentence for each that may."""
    table_rows, sentences, doubtful = [], [], []
    for setting, group in groups_of(study):
        first = setting.groups[0]
        base_trainings = first.trainings if group is not first else []
        if group.trainings:
            row = accuracy_row(group.trainings, base_trainings)
            table_rows.append({"setting": setting.name, "variant": group.variant, **row})
        if (contrast := accuracy_contrast(group.trainings, base_trainings)) is not None:
            sentence = f"{setting.name}: {in_words(contrast, group.variant, first.variant)}."
            sentences.append(sentence)
            if contrast.verdict not in ("better", "no loss"):
                doubtful.append(sentence)
    if not table_rows:
        return None
    if len(sentences) > _MAX_SENTENCES:
        fine = len(sentences) - len(doubtful)
        sentences = [f"No loss of accuracy at {fine} of {len(sentences)} settings and variants.", *doubtful]
    table = Table.of("study_accuracy", table_rows, ACCURACY, detail=True)
    return Contents((Sentences(tuple(sentences)), table) if sentences else (table,))
