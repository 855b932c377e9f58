"""No sentence contradicts the bucket table: of every real trace and of random worlds, each figure is checked."""

import pytest
from real import trace_names, trace_path
from small import training

from tests.findings.healthy import healthy
from tests.report.figures import BUSY, IDLES, OF_BUCKET, PACE, PART_OF, contradictions, said, wrong, wrong_buckets
from tests.world.worlds import world
from tracekit.profile import open_subject
from tracekit.report import report


@pytest.mark.parametrize("name", trace_names())
def test_of_a_real_trace(name):
    made = report(open_subject([trace_path(name)]))
    if len(made.profiles) == 1:
        assert not contradictions(made)


@pytest.mark.parametrize("seed", range(0, 120, 3))
def test_of_a_random_world(tmp_path, seed):
    assert not contradictions(report(open_subject([world(seed).write(tmp_path / "trace")])))


def test_sentences_have_such_figures(tmp_path):
    """Otherwise, the tests above would check nothing."""
    asked = dict.fromkeys((PART_OF, OF_BUCKET, PACE, BUSY, IDLES), 0)
    for path in (
        world(3).write(tmp_path / "a"),
        world(21).write(tmp_path / "b"),
        healthy(tmp_path / "c.json"),
    ):
        for _, sentence in said(report(open_subject([path]))):
            for kind in asked:
                asked[kind] += len(kind.findall(sentence))
    assert all(asked.values()), asked


@pytest.mark.parametrize(
    "sentence",
    [
        "GPU-bound: 99.8 % of 91.0 µs a step.",
        "The GPU idles for 90.0 µs a step.",
        "The GPU idles for 5.00 µs of 40.0 µs a step.",
        "The GPU idles for 40.0 µs of 111 µs a step (90.0 %).",
        "The GPU idles 1.00 µs of 111 µs a step: 1.00 µs dispatch.",
        "Copies take their time – cost: 40.0 µs of 111 µs a step (5.0 %).",
        "It reaches 104.2 % of its bandwidth.",
        "4 steady steps take 111 µs; the GPU is busy 99.0 % of the time: GPU-bound.",
    ],
)
def test_a_false_sentence_is_found(tmp_path, sentence):
    profile = open_subject([training(tmp_path / "t.json", steps=4)]).profiles[0]
    assert [*wrong(profile, sentence)]


def test_a_false_bucket_is_found(tmp_path):
    profile = open_subject([training(tmp_path / "t.json", steps=4)]).profiles[0]
    truth = profile.means["wall"].parts["gpu_compute"] / 1000
    assert not [*wrong_buckets(profile, f"t takes 111 µs a step: {truth:.1f} µs GPU compute (27.0 %)")]
    assert [*wrong_buckets(profile, f"t takes 111 µs a step: {truth + 9:.1f} µs GPU compute (27.0 %)")]
