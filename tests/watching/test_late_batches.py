"""A batch that comes late is told with the worker that made it and the line that took the time."""

import time

import pytest
from torch.utils.data import DataLoader, Dataset, get_worker_info

from tests.watching.small_training import Training, watch
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.report.sections.watch_slow_steps import why
from tracekit.watched import Cause
from tracekit.watched.reading import read_watch

SLOW_BATCH, OF_WORKER, WORKERS = 61, 1, 3
PAUSE_S = 0.4


class Pictures(Dataset):
    def __len__(self):
        return 90

    def __getitem__(self, index):
        if index == SLOW_BATCH and get_worker_info().id == OF_WORKER:
            time.sleep(PAUSE_S)  # the line
        return float(index)


def line():
    with open(__file__) as file:
        return 1 + next(number for number, text in enumerate(file) if text.endswith("# the line\n"))


@pytest.mark.filterwarnings("ignore:This DataLoader will create 3 worker processes")
def test_a_slow_line_in_one_of_three_workers_is_named(tmp_path):
    training = Training()
    with watch(tmp_path):
        for batch in DataLoader(Pictures(), batch_size=None, num_workers=WORKERS):
            time.sleep(0.002)
            training.step(batch)
    slow = slow_step(tmp_path)
    late = slow.late_batch
    assert slow.explanation.cause is Cause.BATCH
    assert (late.worker, late.place.file, late.place.line) == (OF_WORKER, "watching/test_late_batches.py", line())
    assert late.place_ns > 0.9 * PAUSE_S * 1e9
    assert why(slow).endswith(f" of them in __getitem__ at watching/test_late_batches.py:{line()}.")
    said = [text for section in report(open_subject([tmp_path])).sections for text in sentences(section)]
    assert any("where workers spend most of the time for which batches are late" in text for text in said)
    for record in tmp_path.glob("loader-*/*"):
        record.unlink()
    assert slow_step(tmp_path).late_batch is None  # then only the wait is known
    assert why(slow_step(tmp_path)) == slow.sentence


def slow_step(folder):
    return next(slow for slow in read_watch(folder).slow if slow.step.number == SLOW_BATCH)


def sentences(section):
    return [str(line) for block in section.blocks for line in getattr(block, "lines", ())]
