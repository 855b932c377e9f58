"""Every nanosecond of every step has an owner: the parts add up, and a slow twin agrees moment by moment."""

import pytest
from real import trace_path

from tests.lines.owner_twin import adds_up, agrees
from tracekit.engine import attribute
from tracekit.lines.ownership import Ownership
from tracekit.trace import Trace

WITH_STACKS = (
    "leimao_cudagraph_manual_rtx5080",
    "leimao_eager_rtx5080",
    "tracelens_owlv2_h100_dataloader",
    "tracelens_resnet_mi300x_training",
)
MOMENTS = {"tracelens_owlv2_h100_dataloader": 6}  # moments of each view; a long trace takes long


@pytest.mark.traces
@pytest.mark.parametrize("name", WITH_STACKS)
def test_owners_add_up_to_the_buckets_and_the_slow_twin_agrees(name):
    ownership = Ownership.of(attribute(Trace.load(trace_path(name))), None)
    adds_up(ownership)
    agrees(ownership, MOMENTS.get(name, 40))
