"""`tracekit capture --nproc N`: the processes of a script that uses torch.distributed, as ranks of one variant."""

from pathlib import Path

import pytest

from tracekit.capture import process
from tracekit.capture.harness import Options, capture
from tracekit.capture.job import Job
from tracekit.errors import OnlyScriptsHaveRanksError
from tracekit.faces.shared.document import as_document
from tracekit.profile import open_subject
from tracekit.ranks import collectives
from tracekit.report import report

STRAGGLER = Path(__file__).parents[1] / "capture" / "straggler.py"
FAILING = """
import torch.distributed as dist
dist.init_process_group("gloo")
if dist.get_rank() == 1:
    raise ValueError("the second rank has no data")
dist.barrier()
"""


def test_a_planted_straggler_is_found_with_its_bucket_and_milliseconds(tmp_path):
    """One rank sleeps in each step. A busy machine delays both, so the ranks themselves measure how late it was."""
    out, arrivals = tmp_path / "run.json", tmp_path / "arrivals"
    arrivals.mkdir()
    arguments = ["--late", "1", "--how", "python", "--ms", "200", "--steps", "10", "--arrivals", str(arrivals)]
    capture(
        Options(STRAGGLER, ["eager"], steps=6, warmup=3, passes=1, nproc=2, arguments=arguments, out=out, in_place=True)
    )
    made = report(open_subject([out]))
    (variant,) = as_document(made)["variants"]
    assert [each["rank"] for each in variant["ranks"]] == [0, 1]
    assert all(Path(each["trace"]).is_file() and each["note"] is None for each in variant["ranks"])
    early, late = (list(map(int, (arrivals / rank).read_text().split())) for rank in ("0", "1"))
    lateness = [after - before for before, after in zip(early, late, strict=True)]
    matched = collectives(made.ranks["eager"])
    assert len(matched.steps) >= 3
    for step in matched.steps:
        caused = matched.caused_ns(1, step)
        total = sum(caused.values())
        assert min(lateness, key=lambda ns: abs(ns - total)) == pytest.approx(total, rel=0.02)
        assert caused["python"] > 0.9 * total


def test_the_rank_that_failed_first_is_named(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(FAILING)
    job = Job(stage="measure", program=str(script), is_script=True, ranks=2)
    with process.scratch() as scratch:
        result = process.perform(job, scratch, tmp_path / "measure.log", 120)
    assert result.outcome == "error"
    assert result.error == "rank 1: ValueError: the second rank has no data"


def test_a_recipe_has_one_process(tmp_path):
    recipe = Path(__file__).parents[2] / "recipes" / "gcn_cora.py"
    with pytest.raises(OnlyScriptsHaveRanksError, match="--nproc is for scripts"):
        capture(Options(recipe, nproc=2, out=tmp_path / "run.json"))
