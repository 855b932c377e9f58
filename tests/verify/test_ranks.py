"""Four ranks on a CPU, one of them late for each possible reason: rank, bucket and milliseconds are found."""

import os
from pathlib import Path

import pytest

from tests.capture.arrivals import fits, lateness_ns
from tracekit.capture.harness import Options, capture
from tracekit.profile import open_subject
from tracekit.ranks import collectives
from tracekit.report import report

STRAGGLER = Path(__file__).parents[1] / "capture" / "straggler.py"
LATE_MS = 200

pytestmark = pytest.mark.skipif(not os.environ.get("TRACEKIT_VERIFY"), reason="TRACEKIT_VERIFY is not set: make verify")


@pytest.mark.parametrize("bucket", ["python", "dataload", "cpu_compute", "compile"])
def test_a_planted_straggler_among_four_is_found(bucket, tmp_path):
    out, arrivals = tmp_path / "run.json", tmp_path / "arrivals"
    arrivals.mkdir()
    arguments = ["--late", "2", "--how", bucket, "--ms", str(LATE_MS), "--steps", "14", "--arrivals", str(arrivals)]
    capture(
        Options(STRAGGLER, ["eager"], steps=6, warmup=3, passes=1, ranks=4, arguments=arguments, out=out, in_place=True)
    )
    made = report(open_subject([out]))
    matched = collectives(made.ranks["eager"])
    assert matched.ranks == [0, 1, 2, 3]
    assert max(matched.ranks, key=lambda rank: sum(matched.caused_ns(rank).values())) == 2
    # A busy machine delays any rank, so the ranks themselves say how late the third came.
    lateness = [*lateness_ns(arrivals, late=2, ranks=4)]
    for step in matched.steps:
        assert fits(lateness, sum(matched.caused_ns(2, step).values()), matched.clocks.values())
    caused = matched.caused_ns(2)
    assert max(caused, key=caused.__getitem__) == bucket
