"""Four ranks on a CPU, one planted late in each way that a CPU knows: rank, bucket and milliseconds are found."""

import os
from pathlib import Path

import pytest

from tracekit.capture.harness import Options, capture
from tracekit.profile import open_subject
from tracekit.ranks import collectives
from tracekit.report import report

STRAGGLER = Path(__file__).parents[1] / "capture" / "straggler.py"
LATE_MS = 200

pytestmark = pytest.mark.skipif(not os.environ.get("TRACEKIT_VERIFY"), reason="TRACEKIT_VERIFY is not set: make verify")


@pytest.mark.parametrize("bucket", ["python", "dataload", "cpu_compute", "compile"])
def test_a_planted_straggler_among_four_is_found(bucket, tmp_path):
    out = tmp_path / "run.json"
    arguments = [
        "--late",
        "2",
        "--how",
        bucket,
        "--ms",
        str(LATE_MS),
        "--steps",
        "14",
        "--slept",
        str(tmp_path / "slept"),
    ]
    capture(
        Options(STRAGGLER, ["eager"], steps=6, warmup=3, passes=1, nproc=4, arguments=arguments, out=out, in_place=True)
    )
    made = report(open_subject([out]))
    matched = collectives(made.ranks["eager"])
    assert matched.ranks == [0, 1, 2, 3]
    assert max(matched.ranks, key=lambda rank: sum(matched.caused_ns(rank).values())) == 2
    for step in matched.steps:
        caused = matched.caused_ns(2, step)
        assert max(caused, key=lambda key: caused[key]) == bucket
    per_step = [matched.caused_ns(2, step)[bucket] for step in matched.steps]
    slept = tmp_path / "slept"  # what it took: a busy machine wakes late, and only ever adds
    took = min(map(int, slept.read_text().split())) if slept.exists() else LATE_MS * 1e6
    assert min(per_step) == pytest.approx(took, rel=0.02)
