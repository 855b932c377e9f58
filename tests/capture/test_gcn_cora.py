"""The simplest recipe, as Inductor compiles it."""

import os
from pathlib import Path

import pytest
import warm

from tests.capture.capturing import read_trace
from tracekit import run as runs
from tracekit.capture import process
from tracekit.capture.job import Job
from tracekit.run import Requested

RECIPE = Path(runs.__file__).parents[2] / "recipes" / "gcn_cora.py"


_VERIFY = pytest.mark.skipif(not os.environ.get("TRACEKIT_VERIFY"), reason="TRACEKIT_VERIFY is not set: make verify")
INDUCTOR = Requested(compile=True, backend="inductor")


@pytest.fixture(scope="module")
def scratch():
    """The compiler's caches of all passes here: its headers are compiled once."""
    with process.scratch() as folder:
        yield folder


def perform(scratch, folder, program=RECIPE, **more):
    """One pass, of the normalised variant without Cora on disk unless another program is given."""
    params = {"norm_ahead": True, "root": str(folder)} if program == RECIPE else {}
    job = Job(program=str(program), params=params, steps=3, folder=str(folder), **more)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        result = process.perform(job, scratch, folder / "log", 600)
    assert result.error is None
    return result


@pytest.fixture(scope="module")
def profiled(scratch, tmp_path_factory):
    folder = tmp_path_factory.mktemp("gcn")
    return folder, perform(scratch, folder, stage="profile", requested=INDUCTOR)


def test_normalised_ahead_it_is_one_graph(profiled):
    _, result = profiled
    assert [(entry.id, entry.kind) for entry in result.ledger.compiles] == [("0/0", "first"), ("0/0", "backward")]
    assert result.ledger.breaks == []
    assert result.effective.mode == "default"


def test_compilation_is_nearly_all_of_the_first_step_and_in_the_ledger(profiled):
    folder, result = profiled
    cold = read_trace(folder / "cold.json.gz")
    start, end = cold.steps[0]
    assert sum(span.end - span.start for span in cold.spans) >= 0.95 * (end - start)
    in_ledger = [(entry.id, entry.thread) for entry in result.ledger.compiles]
    assert in_ledger == [(span.id, span.thread) for span in cold.spans]


@pytest.mark.parametrize("program", [None, pytest.param(RECIPE, marks=_VERIFY)], ids=["a small network", "the recipe"])
@pytest.mark.usefixtures("profiled")  # it has compiled the headers
def test_inductor_loses_as_eager_does_dropout_included(scratch, recipe, tmp_path, program):
    program = program or recipe
    compiled = perform(scratch, tmp_path, program, stage="check", requested=INDUCTOR)
    eager = perform(scratch, tmp_path, program, stage="check")
    assert len(eager.losses) == 20
    assert runs.divergence(eager.losses, compiled.losses) < 1e-4
    assert eager.metrics["metric" if program == recipe else "test accuracy"] >= 0.5


def test_it_says_what_it_trained_on(profiled):
    _, result = profiled
    assert result.notes == ["generated graph with Cora's statistics"]


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
