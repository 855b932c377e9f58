"""Which passes of a variant share what was compiled."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from tracekit import run as runs
from tracekit.capture import file_view, passes, process
from tracekit.capture.course import Course
from tracekit.capture.job import Job, PassResult
from tracekit.capture.options import Options, PlannedVariant
from tracekit.capture.preparation import Prepared
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
    course = Course([planned], ["measure", "profile", "check"], options)
    passes.capture_variant(planned, prepared, tmp_path, caches=caches, options=options, course=course)
    passes.measure_again(1, planned, prepared, tmp_path, caches=caches, options=options)
    assert [*used] == ["measure 0", "profile 0", "check 0", "measure 1"]
    assert {stage: compiled for stage, (_, compiled) in used.items()} == {
        "measure 0": False,
        "profile 0": False,
        "check 0": True,
        "measure 1": True,
    }
    assert {stage for stage, (scratch, _) in used.items() if scratch == caches} == {"measure 0", "check 0", "measure 1"}


class SeenError(Exception):
    """What a view was asked for."""


def test_packages_without_bytecode_are_compiled_once_for_all_passes(tmp_path, monkeypatch):
    def asked(command, **_):
        raise SeenError(json.loads(command[-1])["through"])

    monkeypatch.delenv(file_view.BYTECODE, raising=False)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setattr(file_view.subprocess, "Popen", asked)
    for cached, is_shared in ((tmp_path / "none.pyc", True), (Path(__file__), False)):
        monkeypatch.setattr(file_view, "find_spec", lambda _, cached=cached: SimpleNamespace(cached=str(cached)))
        file_view.shared_bytecode.cache_clear()
        job = Job(stage="measure", program=str(tmp_path / "r.py"))
        environment = process.environment(job, tmp_path)
        assert (environment.get("PYTHONDONTWRITEBYTECODE") == "") == is_shared
        with pytest.raises(SeenError) as seen, file_view.view(job, tmp_path):
            pass
        folder = environment.get(file_view.BYTECODE)
        assert (folder in seen.value.args[0]) == is_shared == (folder is not None and Path(folder).is_dir())
    file_view.shared_bytecode.cache_clear()
