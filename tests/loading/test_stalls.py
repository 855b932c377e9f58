"""Where the time of a worker's batches went, told from samples."""

from statistics import fmean

import pytest

from tests.loading.made import LINE, OTHER_LINE, at
from tracekit.loading.record import Batch, Facts, Recorded, Sample
from tracekit.loading.stalls import Worker


def lines(batches, samples):
    """How many ms of these batches, each of which begins and is made, are whose, by the samples."""
    made = [Batch(0, 0, at(began), at(end), at(end), at(end), at(end), at(end), 0, 0) for began, end in batches]
    recorded = Recorded(
        Facts(process=1, began_ns=0),
        made,
        [],
        [Sample(at(ms), place) for ms, place in samples],
        {0: LINE, 1: OTHER_LINE},
    )
    return {place: ns / 1e6 for place, ns in Worker(recorded).lines(made).items()}


def test_a_sample_stands_for_the_time_around_it():
    assert lines([(0, 100)], [(10, 0), (40, 0), (60, 1)]) == {LINE: 50, OTHER_LINE: 50}


def test_samples_between_two_batches_stand_for_none_of_their_time():
    assert lines([(0, 100), (200, 300)], [(50, 0), (150, 1), (250, 0)]) == {LINE: 200}
    assert lines([(0, 100)], [(150, 1)]) == {}


@pytest.mark.parametrize("every_ms", [5, 25])
def test_lines_get_their_time_on_average_however_rare_the_samples_are(every_ms):
    told = [
        lines([(0, 300)], [(ms, 0 if ms < 270 else 1) for ms in range(phase, 300, every_ms)])
        for phase in range(every_ms)
    ]
    assert fmean(each[LINE] for each in told) == pytest.approx(270, abs=0.6)
