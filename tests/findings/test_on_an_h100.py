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
    "modes/eager": "dispatch_bound",  # 0.4 ms of kernels in a step of 4 ms
    "modes/compiled": "dispatch_bound",  # in seven graphs, which is no faster
    "modes/reduce-overhead": "eager_remainders",  # the loss and the optimizer are not in its graphs
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


@pytest.mark.parametrize(("name", "graphs"), [("compiled-norm", 0), ("reduce-overhead", 2)])
def test_graphs_are_replayed_where_the_mode_records_them(name, graphs):
    trace = open_subject([H100 / "modes" / f"{name}.json.gz"]).profiles[0].trace
    assert len(trace.where(lambda part: part.roles.graph_launch)) == graphs * len(trace.steps)


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
