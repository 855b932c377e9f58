"""The scripts of the GitHub Action, run by bash as a runner does: what they say, and what becomes of the job."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs, urlsplit

import pytest

from tracekit.installed import sample_run

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed, which reads action.yml")
ROOT = Path(__file__).resolve().parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
HOSTILE = "x'; touch broken; $(touch broken) `touch broken`"


def ran(name: str, folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """A step of the action in a folder of its own, with its environment from inputs."""
    step, temp = STEPS[name], folder / "temp"
    temp.mkdir(exist_ok=True)
    commands = folder / "bin"
    commands.mkdir(exist_ok=True)
    (commands / "tracekit").write_text(f'#!/bin/bash\nexec {sys.executable} -P -m tracekit "$@"\n')
    (commands / "tracekit").chmod(0o755)
    if not (commands / "python").exists():
        (commands / "python").symlink_to(sys.executable)
    defaults = {key.upper().replace("-", "_"): entry["default"] for key, entry in ACTION["inputs"].items()}
    environment = {key: inputs.get(key.lower(), defaults.get(key, "")) for key in step.get("env", {})}
    environment |= {
        "PATH": f"{commands}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "RUNNER_TEMP": str(temp),
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        "GITHUB_REPOSITORY": "me/mine",
        "GITHUB_API_URL": inputs.get("api", ""),
        "CI": inputs.get("ci", ""),
        "HOME": str(folder),
    }
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@contextmanager
def github(said: object) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """An address that answers every question with this document, or refuses without one; and what it was asked, with
    which token."""
    asked: list[tuple[str, str]] = []

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers["Authorization"]))
            self.send_response(200 if said is not None else 403)
            self.end_headers()
            self.wfile.write(json.dumps(said).encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()


def outputs(folder: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in (folder / "output").read_text().splitlines())


def kept(folder: Path, factor: float = 1.0) -> Path:
    """A baseline with the sample run, whose steps are so many times as long."""
    baseline = folder / "temp" / "tracekit-baseline"
    shutil.copytree(sample_run().parent, baseline, ignore=shutil.ignore_patterns("h100"))
    path = baseline / "run.json"
    document = json.loads(path.read_text())
    for variant in document["variants"]:
        variant["ledger"]["breaks"] = variant["ledger"]["breaks"] if factor >= 1 else []
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize("step", [step for step in STEPS.values() if "run" in step], ids=lambda step: step["name"])
def test_nothing_is_put_into_the_text_of_a_script(step):
    assert "${{" not in step["run"]
    assert step["shell"] == "bash"


def test_every_input_is_used_and_explained():
    text = (ROOT / "action.yml").read_text()
    page = (ROOT / "docs" / "checks.md").read_text()
    for name, entry in ACTION["inputs"].items():
        assert f"inputs.{name}" in text
        assert entry["description"].endswith(".")
        assert f"`{name}`" in page


def test_without_a_baseline_the_job_goes_on(tmp_path):
    done = ran("Check", tmp_path, run=str(sample_run()))
    assert done.returncode == 0
    assert "There is no baseline to compare with yet." in done.stdout
    assert outputs(tmp_path) == {"outcome": "no baseline", "code": "0"}
    assert "no baseline yet" in (tmp_path / "summary.md").read_text()


def test_a_run_that_is_as_fast_passes_and_is_told_in_the_summary(tmp_path):
    kept(tmp_path)
    done = ran("Check", tmp_path, run=str(sample_run()), options="--no-strict")
    assert done.returncode == 0, done.stdout
    assert outputs(tmp_path) == {"outcome": "passes", "code": "0"}
    summary = (tmp_path / "summary.md").read_text()
    assert summary.startswith("### tracekit: passes\n")
    assert "\n| variant | metric | limit | value |" in summary


def test_a_run_that_is_worse_fails_the_job(tmp_path):
    kept(tmp_path, factor=0.5)  # without graph breaks
    done = ran("Check", tmp_path, run=str(sample_run()), options="--no-strict --metric graph_breaks")
    assert done.returncode == 1
    assert "::error::tracekit check: this run is worse" in done.stdout
    assert outputs(tmp_path) == {"outcome": "slower", "code": "1"}
    assert "| compiled | graph\\_breaks | 0 | 1 | fail |" in (tmp_path / "summary.md").read_text()


def test_options_may_be_on_several_lines(tmp_path):
    kept(tmp_path, factor=0.5)
    done = ran("Check", tmp_path, run=str(sample_run()), options="--no-strict\n--metric  graph_breaks\n")
    assert done.returncode == 1, done.stdout
    rows = [line for line in (tmp_path / "summary.md").read_text().splitlines() if line.startswith("| compiled |")]
    assert [row.split(" | ")[1] for row in rows] == ["graph\\_breaks"]


@pytest.mark.parametrize(("could_not_tell", "code"), [("fail", 3), ("warn", 0)])
def test_what_could_not_be_told_fails_or_warns(tmp_path, could_not_tell, code):
    kept(tmp_path).write_text("{}")
    done = ran("Check", tmp_path, run=str(sample_run()), could_not_tell=could_not_tell)
    assert done.returncode == code
    assert ("::warning::" if code == 0 else "::error::") in done.stdout
    assert outputs(tmp_path) == {"outcome": "could not tell", "code": "3"}
    assert "    tracekit: " in (tmp_path / "summary.md").read_text()


@pytest.mark.parametrize("wrong", [{"could_not_tell": "maybe"}, {"keep": "yes"}], ids=str)
def test_a_wrong_word_is_refused(tmp_path, wrong):
    done = ran("Check", tmp_path, **wrong)
    assert done.returncode == 2
    assert done.stdout.startswith("::error::")


def test_inputs_are_never_run(tmp_path):
    kept(tmp_path)
    ran("Check", tmp_path, run=HOSTILE, options=HOSTILE)
    with github({"artifacts": []}) as (api, asked):
        done = ran("Find the baseline", tmp_path, baseline=HOSTILE, branch=HOSTILE, token="t0k", api=api)
    assert done.returncode == 0, done.stderr
    ((path, token),) = asked
    assert parse_qs(urlsplit(path).query)["name"] == [HOSTILE]
    assert token == "Bearer t0k"
    assert outputs(tmp_path)["run-id"] == ""
    assert not [*tmp_path.rglob("broken")]


def test_the_runner_takes_no_commands_from_a_trace(tmp_path):
    path = kept(tmp_path)
    run = tmp_path / "mine"
    shutil.copytree(path.parent, run)
    done = ran("Check", tmp_path, run=str(run / "run.json"), options="--no-strict")
    lines = done.stdout.splitlines()
    (stop,) = (k for k, line in enumerate(lines) if line.startswith("::stop-commands::"))
    resume = lines.index(f"::{lines[stop].removeprefix('::stop-commands::')}::")
    assert stop < next(k for k, line in enumerate(lines) if "compiled" in line) < resume


def test_the_baseline_is_the_run_with_its_traces(tmp_path):
    done = ran("Gather what to keep", tmp_path, run=str(sample_run()))
    assert done.returncode == 0, done.stderr
    baseline = tmp_path / "temp" / "tracekit-kept"
    files = sorted(str(path.relative_to(baseline)) for path in baseline.rglob("*") if path.is_file())
    assert "run.json" in files
    assert any(file.endswith("compiled/steady.json.gz") for file in files)
    assert not any("h100" in file for file in files)
    (baseline.parent / "tracekit-kept").rename(baseline.parent / "tracekit-baseline")
    done = ran("Check", tmp_path, run=str(sample_run()), options="--no-strict")
    assert outputs(tmp_path)["outcome"] == "passes", done.stdout


def test_runs_of_forks_are_no_baselines(tmp_path):
    own = {"repository_id": 1, "head_repository_id": 1, "head_branch": "main"}
    artifacts = [
        {"expired": False, "created_at": "2026-01-01T00:00:00Z", "workflow_run": own | {"id": 10}},
        {"expired": False, "created_at": "2026-01-02T00:00:00Z", "workflow_run": own | {"id": 11}},
        {"expired": True, "created_at": "2026-01-03T00:00:00Z", "workflow_run": own | {"id": 12}},
        {"expired": False, "created_at": "2026-01-04T00:00:00Z", "workflow_run": own | {"id": 13, "head_branch": "x"}},
        {
            "expired": False,
            "created_at": "2026-01-05T00:00:00Z",
            "workflow_run": own | {"id": 14, "head_repository_id": 2},
        },
        {"expired": False, "created_at": "2026-01-06T00:00:00Z", "workflow_run": None},
    ]
    with github({"artifacts": artifacts}) as (api, _):
        done = ran("Find the baseline", tmp_path, branch="main", api=api)
    assert done.returncode == 0, done.stderr
    assert outputs(tmp_path) == {"run-id": "11"}


def test_a_job_that_may_not_look_for_the_baseline_is_told_why(tmp_path):
    with github(None) as (api, _):
        done = ran("Find the baseline", tmp_path, api=api)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "::error::The baseline cannot be looked for (HTTP Error 403: Forbidden). It needs permissions: actions: read."
    ]
