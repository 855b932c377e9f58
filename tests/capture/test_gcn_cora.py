"""The simplest recipe, as Inductor compiles it."""

from pathlib import Path

import pytest
import warm
from msgspec.structs import replace

from tests.capture.capturing import read_trace
from tracekit import run as runs
from tracekit.capture import process
from tracekit.capture.job import Job
from tracekit.run import Requested

RECIPE = Path(runs.__file__).parents[2] / "recipes" / "gcn_cora.py"


@pytest.fixture(scope="module")
def passes(tmp_path_factory):
    """The normalised variant, without Cora on disk: its traces, and its losses beside those of eager."""
    folder = tmp_path_factory.mktemp("gcn")
    params = {"norm_ahead": True, "root": str(folder)}
    job = Job(stage="profile", program=str(RECIPE), params=params, steps=3, folder=str(folder))
    compiled = Requested(compile=True, backend="inductor")
    jobs = {
        "profile": replace(job, requested=compiled),
        "check": replace(job, requested=compiled, stage="check"),
        "eager": replace(job, stage="check"),
    }
    with pytest.MonkeyPatch.context() as patch, process.scratch() as scratch:
        patch.setenv("OMP_NUM_THREADS", "1")
        results = {name: process.perform(each, scratch, folder / f"{name}.log", 600) for name, each in jobs.items()}
    assert [result.error for result in results.values()] == [None] * 3
    return folder, results


def test_normalised_ahead_it_is_one_graph(passes):
    _, results = passes
    ledger = results["profile"].ledger
    assert [(entry.id, entry.kind) for entry in ledger.compiles] == [("0/0", "first"), ("0/0", "backward")]
    assert ledger.breaks == []
    assert results["profile"].effective.mode == "default"


def test_compilation_is_nearly_all_of_the_first_step_and_in_the_ledger(passes):
    folder, results = passes
    cold = read_trace(folder / "cold.json.gz")
    start, end = cold.steps[0]
    assert sum(span.end - span.start for span in cold.spans) >= 0.95 * (end - start)
    in_ledger = [(entry.id, entry.thread) for entry in results["profile"].ledger.compiles]
    assert in_ledger == [(span.id, span.thread) for span in cold.spans]


def test_inductor_loses_as_eager_does_dropout_included(passes):
    _, results = passes
    assert len(results["eager"].losses) == 20
    assert runs.divergence(results["eager"].losses, results["check"].losses) < 1e-4
    assert results["eager"].metrics["test accuracy"] > 0.5


def test_it_says_what_it_trained_on(passes):
    _, results = passes
    assert results["profile"].notes == ["generated graph with Cora's statistics"]


def test_the_generated_graph_has_coras_statistics():
    script = (
        "import gcn_cora, torch; data = gcn_cora.generate(); index = data.edge_index; "
        "print(data.num_nodes, index.size(1), data.num_features, len(data.y.unique()), "
        "*(int(data[f'{name}_mask'].sum()) for name in ('train', 'val', 'test')), "
        "data.is_undirected(), data.has_self_loops(), len(index.unique()), "
        "round(float((data.y[index[0]] == data.y[index[1]]).float().mean()), 1))"
    )
    ran = warm.run(["-c", script], cwd=RECIPE.parent)
    assert ran.stdout.split() == ["2708", "10556", "1433", "7", "140", "500", "1000", "True", "False", "2708", "0.8"]
