"""What the exporter in Python of PyTorch 2.15 writes is read as what the one in C++ does.

The traces in tests/data are of one recording, by both exporters of PyTorch 2.15.0: three steps of a small model, on a
CPU.
"""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from real import trace_path

from tracekit.profile import Profile, open_subject

DATA = Path(__file__).parents[1] / "data"
_LANE = 90


def opened(path: Path) -> Profile:
    (profile,) = open_subject([path]).profiles
    return profile


def assert_alike(one: Profile, other: Profile) -> None:
    for view in ("wall", "host"):
        assert np.array_equal(one.views[view].totals, other.views[view].totals), view
        assert np.array_equal(one.views[view].step_ns, other.views[view].step_ns), view
    assert one.trace.base_ns == other.trace.base_ns
    assert len(one.trace.ts_ns) == len(other.trace.ts_ns)


def test_both_exporters_write_the_same_recording():
    compact, native = (opened(DATA / f"torch_2_15_{name}.json.gz") for name in ("python", "native"))
    assert_alike(compact, native)
    assert len(compact.trace.steps) == 3
    assert compact.views["wall"].totals.sum() > 1_000_000


@pytest.mark.traces
def test_work_that_was_moved_to_a_lane_ran_on_its_own_stream(tmp_path):
    """Every second kernel of the graphs is drawn on a lane, as with `graph_lanes="all"`."""
    path = trace_path("leimao_cudagraph_manual_rtx5080")
    with gzip.open(path) as file:
        document = json.load(file)
    kernels = [event for event in document["traceEvents"] if event.get("cat") == "kernel"]
    for kernel in kernels[::2]:
        kernel["args"] |= {"stream": _LANE, "original_stream": kernel["tid"]}
        kernel["tid"] = _LANE
    moved = tmp_path / path.name.removesuffix(".gz")
    moved.write_text(json.dumps(document))
    recorded, read = opened(path), opened(moved)
    assert_alike(recorded, read)
    assert str(_LANE) not in read.trace.tracks["tid"].to_pylist()
    assert np.array_equal(recorded.sample.occupancy, read.sample.occupancy, equal_nan=True)
