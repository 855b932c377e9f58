"""Which passes of a variant share what was compiled."""

from tracekit import run as runs
from tracekit.capture import passes
from tracekit.capture.job import PassResult
from tracekit.capture.options import Options
from tracekit.capture.preparation import Prepared
from tracekit.capture.variants import PlannedVariant
from tracekit.run import Requested


def test_only_the_first_and_the_profiled_pass_compile_anew(tmp_path, monkeypatch):
    used = {}

    def perform(job, scratch, log, timeout, tell):
        log.touch()
        used[f"{job.stage} {job.round}"] = (scratch, (scratch / "compiled").exists())
        (scratch / "compiled").touch()
        return PassResult(losses=[1.0])

    monkeypatch.setattr(passes.process, "perform", perform)
    planned = PlannedVariant("compiled", Requested(compile=True))
    run = runs.Run(
        created=runs.now(), tracekit="0", recipe="r", script="r.py", device="cpu", planned=["compiled"], variants=[]
    )
    prepared, options = Prepared(run, [planned], {}), Options("r.py", tell=lambda _: None)
    caches = tmp_path / "caches"
    caches.mkdir()
    passes.capture_variant(planned, prepared, tmp_path, caches, options)
    passes.measure_again(1, planned, prepared, tmp_path, caches=caches, options=options)
    assert [*used] == ["measure 0", "profile 0", "check 0", "measure 1"]
    assert {stage: compiled for stage, (_, compiled) in used.items()} == {
        "measure 0": False,
        "profile 0": False,
        "check 0": True,
        "measure 1": True,
    }
    assert {stage for stage, (scratch, _) in used.items() if scratch == caches} == {"measure 0", "check 0", "measure 1"}
