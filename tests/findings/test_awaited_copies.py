"""What a copy does that the host waits for is told by the copy itself, and so is the advice."""

import pytest
from small import event, kernel, launch, op, step, write

from tracekit.findings.rules.sync_stall import sync_stall
from tracekit.profile import open_subject

KINDS = [
    ("Memcpy DtoH (Device -> Pageable)", "copies to the host and waits", "pinned memory"),
    ("Memcpy HtoD (Pinned -> Device)", "copies to the GPU and waits", "Pin the source's memory"),
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
    (finding,) = sync_stall(waited(tmp_path / "t.json", KINDS[2][0], operator="", own=True))
    assert finding.title.startswith("cudaMemcpy copies within the GPU's memory and waits for it")


def test_of_several_kinds_nothing_more_is_said(tmp_path):
    (finding,) = sync_stall(waited(tmp_path / "t.json", KINDS[0][0], KINDS[1][0]))
    assert finding.headline == "aten::copy_ copies and waits for it"


def test_a_value_that_is_read_back_is_no_copy_of_the_users(tmp_path):
    (finding,) = sync_stall(waited(tmp_path / "t.json", KINDS[0][0], operator="aten::_local_scalar_dense"))
    assert "reads a value back" in finding.title
