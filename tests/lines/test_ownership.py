"""Every nanosecond of every step has an owner: the parts add up, and a slow twin agrees moment by moment."""

import numpy as np
import pytest
from real import trace_path

from tests.lines.owner_twin import Twin
from tracekit.engine import attribute
from tracekit.engine.buckets import KEYS
from tracekit.lines.owners import PHASES
from tracekit.lines.ownership import Ownership
from tracekit.trace import Trace

WITH_STACKS = (
    "leimao_cudagraph_manual_rtx5080",
    "leimao_eager_rtx5080",
    "tracelens_owlv2_h100_dataloader",
    "tracelens_resnet_mi300x_training",
)
MOMENTS = 40


def adds_up(ownership):
    """Whether the owners of each step and bucket add up to it, in each view that can be answered."""
    for name, costs in ownership.costs.items():
        view = ownership.cost.views[name]
        sums = np.zeros((len(view.totals), len(KEYS)), np.int64)
        np.add.at(sums, (costs.step, costs.bucket), costs.ns)
        wanted = np.zeros_like(sums)
        wanted[:, [KEYS.index(key) for key in view.keys]] = view.totals
        np.testing.assert_array_equal(sums[view.known], wanted[view.known])
        assert (costs.divided_ns <= costs.ns).all()


@pytest.mark.traces
@pytest.mark.parametrize("name", WITH_STACKS)
def test_owners_add_up_to_the_buckets(name):
    adds_up(Ownership.of(attribute(Trace.load(trace_path(name))), None))


@pytest.mark.traces
@pytest.mark.parametrize("name", ["leimao_eager_rtx5080", "tracelens_resnet_mi300x_training"])
def test_the_slow_twin_agrees(name):
    ownership = Ownership.of(attribute(Trace.load(trace_path(name))), None)
    twin = Twin(ownership.cost, ownership.recording.frames)
    rng = np.random.default_rng(0)
    for view, blamed in ownership.blame.items():
        low, high = int(blamed.edges[0]), int(blamed.edges[-1])
        moments = np.sort(rng.integers(low, high, MOMENTS))
        for t, owner in zip(moments.tolist(), blamed.at(moments).tolist(), strict=True):
            group, _, _, phase = ownership.owners.rows[owner]
            lines = ownership.owners.groups[group]
            told = ((lines[0].file, lines[0].line) if lines else None, PHASES[phase])
            assert told == (twin.of(view, t) or (None, "other")), f"{view} {t}"
