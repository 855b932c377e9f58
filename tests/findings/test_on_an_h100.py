"""Steps of real training on an H100: what is found first must be what was known of them when they were recorded."""

import shutil
from pathlib import Path

import msgspec
import pytest

from tracekit.findings import diagnose
from tracekit.profile import open_subject
from tracekit.run import Requested, Run, Traces, Variant

H100 = Path(__file__).parents[2] / "sample_traces" / "h100"
FOUND_FIRST = {
    "pipeline/1-dynamic": "graphs_prepared",  # each batch has a size of its own, so that no graph is ever replayed
    "pipeline/3-whole-graph": "graphs_prepared",
    "pipeline/4-no-cudagraphs": "dispatch_bound",
    "sampled/eager": "dataloader_bound",  # its sampler is Python in the process that trains
    "sampled/dynamic": "dataloader_bound",
    "sampled/padded": "dataloader_bound",
    "shared-gpu": "queued_not_started",  # six other captures used the GPU
}


@pytest.mark.parametrize("name", FOUND_FIRST)
def test_the_known_cause_is_found_first(name):
    (profile,) = open_subject([H100 / f"{name}.json.gz"]).profiles
    found = sorted(diagnose(profile).findings, key=lambda each: -(each.cost_ns or 0))
    assert found[0].id == FOUND_FIRST[name]


@pytest.mark.parametrize(
    ("name", "first", "graphs"),
    [
        ("eager", "dispatch_bound", 0),  # 0.4 ms of kernels in a step of 3.5 ms
        ("compiled", "dispatch_bound", 0),  # in seven graphs, which is slower
        ("compiled-norm", "dispatch_bound", 0),
        ("cuda-graphs", "eager_remainders", 2),  # the loss and the optimizer are not in its graphs
    ],
)
def test_each_mode_is_known_by_its_first_finding_and_its_replays(name, first, graphs):
    (profile,) = (each for each in open_subject([H100 / "modes" / "run.json"]).profiles if each.name == name)
    assert diagnose(profile).findings[0].id == first
    assert len(profile.trace.where(lambda part: part.roles.graph_launch)) == graphs * len(profile.trace.steps)


@pytest.mark.parametrize(
    ("task", "seen"),
    [
        ("pipeline", 0.79),  # the rule was made with this pair
        ("pipeline_sales", 1.20),  # other captures ran beside this one, which was not known to the rule
    ],
)
def test_preparing_graphs_costs_about_what_leaving_them_out_saves(task, seen):
    whole, without = (
        open_subject([H100 / task / f"{name}.json.gz"]).profiles[0] for name in ("3-whole-graph", "4-no-cudagraphs")
    )
    saved_ns = whole.means["wall"].step_ns - without.means["wall"].step_ns
    assert saved_ns / diagnose(whole).findings[0].cost_ns == pytest.approx(seen, abs=0.02)


def test_a_cause_of_what_bounds_the_step_is_not_preceded_by_what_bounds_it():
    (before, _) = open_subject([H100 / "shapes" / "run.json"]).profiles
    diagnosis = diagnose(before)
    assert (diagnosis.verdict.id, diagnosis.findings[0].id) == ("dispatch_bound", "recompile_limit")
    (part,) = diagnosis.findings[0].also
    assert "Dispatch-bound" in part.replace("dispatch", "Dispatch")
    assert "saves at most 0 ns" not in part


def test_what_waits_cost_is_no_promise_where_queued_work_starts_late():
    """Beside other captures, this training took 2.1 ms less without its waits, whose idle time is 0.4 ms."""
    (before, _) = open_subject([H100 / "syncs" / "run.json"]).profiles
    (stall, *_) = (each for each in diagnose(before).findings if each.id == "sync_stall")
    assert "queued work starts late in this recording" in stall.why


@pytest.mark.parametrize("processes", [7, 1, None])
def test_whoever_shared_the_gpu_is_the_suspect(tmp_path, processes):
    (tmp_path / "traces").mkdir()
    shutil.copy(H100 / "shared-gpu.json.gz", tmp_path / "traces" / "steady.json.gz")
    gpu = {} if processes is None else {"processes": processes}
    before = Variant(
        name="before",
        outcome="ok",
        requested=Requested(compile=False),
        traces=Traces(steady="traces/steady.json.gz"),
        gpu=gpu,
    )
    run = Run(
        tracekit="0",
        recipe="syncs",
        script="syncs.py",
        planned=["before"],
        created="2026-11-26T16:49:00+00:00",
        variants=[before],
    )
    (tmp_path / "run.json").write_bytes(msgspec.json.encode(run))
    (profile,) = open_subject([tmp_path / "run.json"]).profiles
    (found,) = (each for each in diagnose(profile).findings if each.id == "queued_not_started")
    assert ("6 other processes had this GPU open" in found.why) is (processes == 7)
    assert ("Nothing in this recording explains it" in found.why) is (processes != 7)
