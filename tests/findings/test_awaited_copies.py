"""What a copy does that the host waits for is told by the copy itself, and so is the advice."""

import pytest
from small import event, kernel, launch, op, step, write

from tracekit.findings import diagnose
from tracekit.findings.rules.sync_stall import sync_stall
from tracekit.profile import open_subject

KINDS = [
    ("Memcpy DtoH (Device -> Pageable)", "copies to the host and waits", "pinned memory"),
    ("CopyHostToDevice", "copies to the GPU and waits", "Pin the source's memory"),
    ("Memcpy HtoD (Pinned -> Device)", "copies to the GPU and waits", "in pinned memory already"),
    ("Memcpy DtoD (Device -> Device)", "copies within the GPU's memory and waits", "The host does not need the result"),
    ("Memcpy PtoP (Device -> Device)", "copies to another GPU and waits", "non_blocking=True"),
    ("CopyDeviceToDevice", "copies within the GPU's memory and waits", "The host does not need the result"),
    ("Memcpy of some kind", "copies and waits", "non_blocking=True"),
]


def waited(path, *names, operator="aten::copy_", own=False):
    """In each step one of the copies, for which the host waits: in the call that makes it (`own`), or in the next."""
    events = []
    for k in range(4):
        t = 1000.0 * k
        name = names[k % len(names)]
        first, second = ("cudaMemcpy", "cudaGetLastError") if own else ("cudaMemcpyAsync", "cudaStreamSynchronize")
        events += [
            step(k, t, t + 900),
            launch(t + 5, t + 10, 10 * k + 1),
            kernel("gemm", t + 12, t + 100, 10 * k + 1),
            *([op(operator, t + 20, t + 700)] if operator else []),
            launch(t + 30, t + (600 if own else 40), 10 * k + 2, first),
            kernel(name, t + 110, t + 200, 10 * k + 2, "gpu_memcpy"),
            event("cuda_runtime", second, t + 610 if own else t + 50, t + 650, correlation=0),
        ]
    return open_subject([write(path, *events)]).profiles[0]


@pytest.mark.parametrize(("name", "said", "advice"), KINDS)
@pytest.mark.parametrize("own", [False, True])
def test_each_kind_has_its_own_sentence_and_advice(tmp_path, name, said, advice, own):
    (finding,) = sync_stall(waited(tmp_path / "t.json", name, own=own))
    assert finding.headline == f"aten::copy_ {said} for it"
    assert finding.title.startswith("aten::copy_")
    assert advice in finding.advice


def test_a_synchronous_copy_outside_operators_is_told_by_its_kind(tmp_path):
    (finding,) = sync_stall(waited(tmp_path / "t.json", KINDS[3][0], operator="", own=True))
    assert finding.title.startswith("cudaMemcpy copies within the GPU's memory and waits for it")


def test_a_copy_that_cannot_block_is_not_waited_for_though_the_host_is_held_up_in_its_call(tmp_path):
    events = []
    for k in range(4):
        t = 1000.0 * k
        events += [
            step(k, t, t + 900),
            op("aten::copy_", t + 20, t + 800),
            launch(t + 30, t + 780, k + 1, "cudaMemcpyAsync"),
            kernel("Memcpy DtoD (Device -> Device)", t + 40, t + 42, k + 1, "gpu_memcpy"),
        ]
    assert not [*sync_stall(open_subject([write(tmp_path / "t.json", *events)]).profiles[0])]


def test_a_compiled_graph_that_waits_is_called_as_everywhere(tmp_path):
    profile = waited(
        tmp_path / "t.json", "Memcpy of some kind", operator="## Call CompiledFxGraph fooqedvum46enjgr4e ##"
    )
    (finding,) = sync_stall(profile)
    assert finding.headline == "compiled graph fooqedvu waits for the GPU"


def test_of_several_kinds_nothing_more_is_said(tmp_path):
    (finding,) = sync_stall(waited(tmp_path / "t.json", KINDS[0][0], KINDS[1][0]))
    assert finding.headline == "aten::copy_ copies and waits for it"


def test_a_value_that_is_read_back_is_no_copy_of_the_users(tmp_path):
    (finding,) = sync_stall(waited(tmp_path / "t.json", KINDS[0][0], operator="aten::_local_scalar_dense"))
    assert "reads a value back" in finding.title


def reading(path, operator, steps=4):
    """Each step reads a number back between two products of 100 µs: a kernel of 10 µs counts, its result is copied in
    10 µs, and the host, which is ahead otherwise, goes on 20 µs later. Queued work starts 5 µs after the one before."""
    events = []
    for k in range(steps):
        t, n = 300.0 * k, 10 * k
        events += [
            step(k, t, t + 300),
            launch(t + 5, t + 10, n + 1),
            kernel("gemm", t + 15, t + 120, n + 1),
            op(operator, t + 16, t + 179),
            launch(t + 20, t + 25, n + 2),
            kernel("count", t + 125, t + 135, n + 2),
            launch(t + 30, t + 35, n + 3, "cudaMemcpyAsync"),
            kernel("Memcpy DtoH (Device -> Pinned)", t + 140, t + 150, n + 3, "gpu_memcpy"),
            event("cuda_runtime", "cudaStreamSynchronize", t + 40, t + 170, correlation=0),
            launch(t + 170, t + 175, n + 4),
            kernel("select", t + 180, t + 190, n + 4),
            launch(t + 177, t + 179, n + 5),
            kernel("gemv", t + 195, t + 295, n + 5),
            event("cuda_runtime", "cudaDeviceSynchronize", t + 190, t + 300, correlation=0),
        ]
    return open_subject([write(path, *events)]).profiles[0]


def test_without_a_count_neither_its_kernel_nor_the_copy_nor_the_gaps_around_them_are_left(tmp_path):
    """The select follows the product, at 125 µs instead of 180. Where something else is read, its kernel is needed all
    the same: the select follows that, at 140 µs."""

    def cost(operator):
        diagnosis = diagnose(reading(tmp_path / f"{operator[-4:]}.json", operator))
        stalls = [each for each in diagnosis.all_findings if each.id == "sync_stall"]
        return next(each.cost_ns for each in stalls if each.where.operator == operator)

    assert cost("aten::nonzero") == pytest.approx(55_000)
    assert cost("my::read") == pytest.approx(40_000)
