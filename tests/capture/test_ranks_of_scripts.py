"""`tracekit capture --nproc N`: the processes of a script that uses torch.distributed, as ranks of one variant."""

from math import inf
from pathlib import Path

import pytest

from tests.capture.arrivals import fits, lateness_ns
from tracekit.capture import process
from tracekit.capture.harness import Options, capture
from tracekit.capture.job import Job, PassResult, combined
from tracekit.errors.capturing import OnlyScriptsHaveRanksError
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
KILLED = """
import os, signal
import torch.distributed as dist
dist.init_process_group("gloo")
dist.barrier()
if dist.get_rank() == 1:
    os.kill(os.getpid(), signal.SIGKILL)
dist.barrier()
"""


def test_a_planted_straggler_is_found_with_its_bucket_and_milliseconds(tmp_path):
    """One rank sleeps in each step, from when the other has arrived: it is late on a busy machine, too. How late it was
    is judged by what both measured."""
    out, arrivals = tmp_path / "run.json", tmp_path / "arrivals"
    arrivals.mkdir()
    arguments = ["--late", "1", "--how", "python", "--ms", "200", "--steps", "10", "--arrivals", str(arrivals)]
    capture(
        Options(STRAGGLER, ["eager"], steps=6, warmup=3, passes=1, ranks=2, arguments=arguments, out=out, in_place=True)
    )
    made = report(open_subject([out]))
    (variant,) = as_document(made)["variants"]
    assert [each["rank"] for each in variant["ranks"]] == [0, 1]
    assert all(Path(each["trace"]).is_file() and each["note"] is None for each in variant["ranks"])
    (finding,) = (each for each in made.diagnoses["eager"].findings if each.id == "late_rank")
    assert finding.title.startswith("Rank 1 delays the others")  # rank 0, which waits in backward, is not blamed
    matched = collectives(made.ranks["eager"])
    assert len(matched.steps) >= 3
    lateness = [*lateness_ns(arrivals, late=1, ranks=2)]
    for step in matched.steps:
        assert fits(lateness, sum(matched.caused_ns(1, step).values()), matched.clocks.values())
    caused = matched.caused_ns(1)
    assert max(caused, key=caused.__getitem__) == "python"


@pytest.mark.parametrize(
    ("failing", "outcome", "error"),
    [
        (FAILING, "error", "rank 1: ValueError: the second rank has no data"),
        (KILLED, "crash", "rank 1: killed, perhaps because memory ran out"),
    ],
)
def test_the_rank_that_failed_first_is_named(tmp_path, failing, outcome, error):
    script = tmp_path / "train.py"
    script.write_text(failing)
    job = Job(stage="measure", program=str(script), is_script=True, ranks=2)
    with process.scratch() as scratch:
        result = process.perform(job, scratch, tmp_path / "measure.log", 120)
    assert (result.outcome, result.error) == (outcome, error)


RESET = "RuntimeError: pair.cc:537 Read error [127.0.0.1]:21145: Connection reset by peer"
OWN, KILL, ABORT = "ValueError: no data", "killed, perhaps because memory ran out", "died of SIGABRT"
NCCL = "DistBackendError: NCCL error: ncclRemoteError, or a remote process exiting prematurely"


@pytest.mark.parametrize(
    ("failures", "first"),
    [
        ([(RESET, 10.0), (KILL, 10.01)], 1),  # the connection breaks before anybody sees that the rank is gone
        ([(OWN, 10.0), (RESET, 10.1)], 0),
        ([(RESET, 10.1), (OWN, 10.0), (KILL, inf)], 1),
        ([(KILL, inf), (RESET, 10.0)], 1),  # one that was killed in the end waited for the other
        ([(OWN, 10.2), (OWN, 10.1)], 1),
        ([(NCCL, 10.0), (ABORT, 10.5), (OWN, 9.9)], 2),
        ([(RESET, 10.2), (NCCL, 10.1)], 1),
        ([(None, 9.0), (ABORT, 10.0)], 1),
    ],
)
def test_the_first_failure_is_told_by_how_and_when_each_rank_ended(failures, first):
    results = [
        (PassResult(outcome="error" if error else "ok", error=error, traceback=f"of {rank}"), when)
        for rank, (error, when) in enumerate(failures)
    ]
    result = combined(results)
    assert (result.error, result.traceback) == (f"rank {first}: {failures[first][0]}", f"of {first}")


def test_a_recipe_has_one_process(tmp_path):
    recipe = Path(__file__).parents[2] / "recipes" / "gcn_cora.py"
    with pytest.raises(OnlyScriptsHaveRanksError, match="--nproc is for scripts"):
        capture(Options(recipe, ranks=2, out=tmp_path / "run.json"))
