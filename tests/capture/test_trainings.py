"""Complete trainings: every variant with every seed, each epoch timed, the recipe's metric compared."""

import json

import pytest
import warm
from msgspec.structs import replace

from tests.capture.capturing import RECIPE, Lines
from tracekit.capture.harness import results, trainings
from tracekit.capture.options import Options
from tracekit.capture.preparation import prepare
from tracekit.errors.capturing import OnlyRecipesHaveEpochsError
from tracekit.faces.shared.document import as_document
from tracekit.profile import Subject, Untraced
from tracekit.report import report
from tracekit.run import Measured, Variant

METRIC = RECIPE.replace("evaluate=lambda: 0.5", "evaluate=lambda: {'test error': float(step(batches[0]))}")


def options(tmp_path, text=METRIC, **more):
    (tmp_path / "net.py").write_text(text)
    given = {"variants": ["eager", "compiled"], "backend": "aot_eager", "epochs": 2, "seeds": 2, "device": "cpu"}
    return Options(program=tmp_path / "net.py", out=tmp_path / "run.json", **{"tell": Lines(), **given, **more})


def trained(tmp_path, given):
    """The run after its trainings, with variants as the earlier passes would have left them."""
    measured = Measured(step_ns=1000, step_all_ns=[1000] * 9, spread_ns=0, clock="perf_counter", epoch_steps=60)
    with warm.passes():
        prepared = prepare(given)
        variants = [
            Variant(name=planned.name, outcome="ok", requested=planned.requested, measured=measured)
            for planned in prepared.variants
        ]
        caches = {planned.name: tmp_path / planned.name for planned in prepared.variants}
        for folder in caches.values():
            folder.mkdir()
        *_, run = trainings(replace(prepared.run, variants=variants), prepared, tmp_path, caches, given)
    return run


def test_every_variant_is_trained_with_every_seed(tmp_path):
    given = options(tmp_path)
    run = trained(tmp_path, given)
    for variant in run.variants:
        assert [(each.seed, each.epochs, each.outcome, each.steps) for each in variant.trainings] == [
            (0, 2, "ok", 60),
            (1, 2, "ok", 60),
        ]
        assert all(len(each.epoch_all_ns) == 2 and min(each.epoch_all_ns) > 0 for each in variant.trainings)
    eager, compiled = ([each.metrics["test error"] for each in variant.trainings] for variant in run.variants)
    assert eager[0] != eager[1]
    assert compiled == pytest.approx(eager, rel=1e-4)  # aot_eager draws dropout as eager does
    (line,) = results(run)
    assert line.startswith("compiled: no loss of test error: compiled ")

    members = [Untraced(each.name, "ok", "no trace", each, run, "net") for each in run.variants]
    document = json.loads(json.dumps(as_document(report(Subject(members)))))
    section = next(each for each in document["sections"] if each["id"] == "accuracy")
    assert section["blocks"][0]["lines"] == [f"{line}."]
    table = next(block for block in section["blocks"] if block.get("name") == "trainings")
    assert len(table["rows"]) == 4


def test_a_training_that_fails_is_told_and_the_others_go_on(tmp_path):
    text = METRIC.replace("def setup(ctx):\n", "def setup(ctx):\n    assert ctx.seed != 1, 'no such seed'\n")
    given = options(tmp_path, text, variants=["eager", "compiled"])
    run = trained(tmp_path, given)
    outcomes = [(each.seed, each.outcome) for each in run.variants[0].trainings]
    assert outcomes == [(0, "ok"), (1, "error")]
    assert "no such seed" in run.variants[0].trainings[1].error
    assert "eager: training with seed 1 failed (AssertionError: no such seed" in given.tell.text()


def test_only_recipes_have_epochs(tmp_path):
    (tmp_path / "train.py").write_text("print(1)\n")
    script = replace(options(tmp_path), program=tmp_path / "train.py")
    with pytest.raises(OnlyRecipesHaveEpochsError), warm.passes():
        prepare(script)
