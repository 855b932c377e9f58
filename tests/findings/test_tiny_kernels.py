"""The GPU idles between tiny kernels, however many are queued."""

import pytest
from small import kernel, launch, op, step, write

from tracekit.findings import diagnose
from tracekit.findings.rules.memory_traffic import tiny_kernels
from tracekit.profile import open_subject

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)"


ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def queued(path, number, length, gap, steps=2, name=ADD):
    """Steps in which one operator launches many kernels at once."""
    events = []
    for k in range(steps):
        at, until = 10_000.0 * k, 10_000.0 * k + 101
        events.append(op("my::operator", at, at + 100))
        for n in range(number):
            events += [launch(at + n * 100 / number, at + (n + 0.9) * 100 / number, 1000 * k + n + 1)]
            events.append(kernel(name, until, until + length, 1000 * k + n + 1))
            until += length + gap
        events += [launch(at + 100, until - gap, 0, "cudaDeviceSynchronize"), step(k, at, until - gap)]
    return open_subject([write(path, *events)]).profiles[0]


def test_gaps_between_many_tiny_ones(tmp_path):
    profile = queued(tmp_path / "a.json", number=200, length=2, gap=1)
    (finding,) = tiny_kernels(profile)
    assert (finding.where.kernel, finding.where.operator) == (ADD, "my::operator")
    (cost,) = (each.cost_ns for each in diagnose(profile).all_findings if each.id == "tiny_kernels")
    assert cost == pytest.approx(199_000)


@pytest.mark.parametrize(
    ("number", "length", "gap"),
    [(200, 20, 1), (200, 2, 0), (20, 2, 1), (100, 2, 30)],  # long kernels, no gaps, few kernels, other gaps
)
def test_what_is_no_cost_of_tiny_kernels(tmp_path, number, length, gap):
    assert not [*tiny_kernels(queued(tmp_path / "a.json", number, length, gap))]


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_gaps_between_collectives_are_none(tmp_path):
    assert not [*tiny_kernels(queued(tmp_path / "a.json", 60, 2, 1, name=ALL_REDUCE))]
