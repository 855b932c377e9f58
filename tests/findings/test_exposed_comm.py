"""Communication that no computation overlaps: what it costs, and how much of it is waiting."""

import re
import shutil

import pytest
from real import trace_path
from small import event, kernel, launch, step, write

from tracekit.findings import diagnose
from tracekit.findings.rules.communication import as_all_ranks_show, exposed_comm
from tracekit.profile import open_subject
from tracekit.ranks import collectives, rank_columns

GEMM = "ampere_bf16_s16816gemm_bf16_128x64_tn"


def trained(path, talks, hidden=0.0):
    """One step for each duration of its collective, which starts `hidden` µs before the computation ends."""
    events, at = [], 0.0
    for k, talk in enumerate(talks):
        done = at + 510 + talk - hidden
        events += [
            step(k, at, done),
            launch(at + 1, at + 5, 2 * k + 1),
            kernel(GEMM, at + 10, at + 510, 2 * k + 1),
            event("user_annotation", "## gradients ##", at + 5, at + 9),
            event("user_annotation", "nccl:all_reduce", at + 6, at + 8.5),
            launch(at + 7, at + 8, 2 * k + 2),
            kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)", at + 510 - hidden, done, 2 * k + 2) | {"tid": 9},
            launch(at + 9, done, 0, "cudaDeviceSynchronize"),
        ]
        at = done
    return open_subject([write(path, *events)]).profiles[0]


def test_what_is_exposed_and_whose_it_is(tmp_path):
    (finding,) = exposed_comm(trained(tmp_path / "a.json", [800, 800], hidden=100))
    assert (finding.where.operator, finding.where.module) == ("nccl:all_reduce", "## gradients ##")
    assert "87.5 % of its communication time" in finding.title
    assert "No waiting for other ranks is known" in finding.title
    diagnosed = diagnose(trained(tmp_path / "b.json", [800, 800], hidden=100))
    assert diagnosed.verdict.id == "exposed_comm"
    assert diagnosed.findings[0].cost_ns == pytest.approx(700_000)


def test_the_fastest_calls_show_the_transfer(tmp_path):
    (finding,) = exposed_comm(trained(tmp_path / "a.json", [100] + [900] * 3))
    assert "85.7 % of the collectives' time is waiting" in finding.title  # 2,400 of 2,800
    assert "equal work" in finding.advice


def of_sizes(path, sizes):
    """One step that only communicates: all_reduces of these numbers of elements and durations in µs."""
    events, at = [], 10.0
    for number, (elements, length) in enumerate(sizes, 1):
        args = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": elements, "Group size": 4}
        talk = kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)", at, at + length, number)
        events += [launch(number, number + 0.5, number), talk | {"args": talk["args"] | args}]
        at += length
    return open_subject([write(path, step(0, 0, at), *events)]).profiles[0]


def test_equal_collectives_of_one_step_show_the_transfer(tmp_path):
    (finding,) = exposed_comm(of_sizes(tmp_path / "a.json", [(1000, 300), (1000, 100), (9000, 500), (1000, 100)]))
    assert "At least 20.0 % of the collectives' time is waiting" in finding.title  # 200 of 1,000


def test_collectives_of_different_sizes_are_not_compared(tmp_path):
    (finding,) = exposed_comm(of_sizes(tmp_path / "a.json", [(1000, 300), (2000, 100), (9000, 500)]))
    assert "cannot be known, because no two collectives are equal" in finding.title


@pytest.mark.parametrize("rank", range(4))
def test_an_estimate_from_one_rank_is_at_most_what_all_ranks_show(tmp_path, rank):
    for each in range(4):
        shutil.copy(trace_path(f"param_dlrm_v100_rank{each}"), tmp_path / f"rank{each}.json.gz")
    (profile,) = open_subject([tmp_path]).profiles
    (found,) = exposed_comm(profile.per_rank[rank])
    estimated = float(re.search(r"At least ([\d.]+) % of the collectives' time", found.title)[1]) / 100
    matched = collectives([rank_columns(each, number) for number, each in profile.per_rank.items()])
    rows = [row for row in matched.table.to_pylist() if row["rank"] == rank]
    waited, transferred = (sum(row[name] for row in rows) for name in ("wait_ns", "transfer_ns"))
    assert estimated == pytest.approx(waited / (waited + transferred), abs=0.13)
    assert estimated < waited / (waited + transferred) + 0.01


def test_one_call_tells_nothing_of_waiting(tmp_path):
    (finding,) = exposed_comm(trained(tmp_path / "a.json", [900]))
    assert "cannot be known" in finding.title


def test_what_is_hidden_costs_nothing(tmp_path):
    assert not [*exposed_comm(trained(tmp_path / "a.json", [400, 400], hidden=400))]
    assert diagnose(trained(tmp_path / "b.json", [400, 400], hidden=400)).verdict.id == "gpu_bound_gemm"


def test_many_short_ones_should_travel_together(tmp_path):
    events = [step(0, 0, 1010)]
    for k in range(40):
        events += [launch(20 * k, 20 * k + 5, k + 1), kernel("rcclKernel(int)", 10 + 25 * k, 35 + 25 * k, k + 1)]
    (finding,) = exposed_comm(open_subject([write(tmp_path / "a.json", *events)]).profiles[0])
    assert finding.do == "Combine small collectives: use one flattened tensor for many."


def started(path, collective, *, backward=False, frame=None, until=910):
    """Two steps, each with a collective that nothing overlaps, which the main thread or autograd's starts."""
    events, tid = [], 2 if backward else 1
    for k, at in enumerate((0.0, 2000.0)):
        events += [
            step(k, at, at + until),
            event("cpu_op", "aten::mm", at + 1, at + 8),
            launch(at + 2, at + 4, 2 * k + 1),
            kernel(GEMM, at + 10, at + 110, 2 * k + 1),
            event("user_annotation", f"nccl:{collective}", at + 26, at + 30, tid=tid),
            launch(at + 27, at + 29, 2 * k + 2) | {"tid": tid},
            kernel(f"ncclDevKernel_{collective}(int)", at + 110, at + 900, 2 * k + 2) | {"tid": 9},
            launch(at + 60, at + 905, 0, "cudaDeviceSynchronize"),
        ]
        if frame is not None:
            events.append(event("user_annotation", frame, at + 0.5, at + 8.5))
        if backward:
            node = "autograd::engine::evaluate_function: AddmmBackward0"
            events.append(event("cpu_op", node, at + 20, at + 50, tid=tid))
    return open_subject([write(path, *events)]).profiles[0]


DDP, FSDP = "DistributedDataParallel.forward", "FullyShardedDataParallel.forward"


@pytest.mark.parametrize(
    ("collective", "frame", "backward", "said", "unsaid"),
    [
        ("all_reduce", DDP, True, "bucket_cap_mb", "async_op"),
        ("all_reduce", None, True, "Start it earlier in the backward pass", "no_sync"),
        ("all_reduce", DDP, False, "async_op=True", "bucket"),  # no gradients: DDP has no part in it
        ("_all_gather_base", FSDP, False, "forward_prefetch", "bucket"),
        ("_all_gather_base", None, False, "async_op=True", "FSDP"),
        ("all_to_all", DDP, False, "async_op=True", "bucket"),
    ],
)
def test_advice_fits_who_communicates(tmp_path, collective, frame, backward, said, unsaid):
    (finding,) = exposed_comm(started(tmp_path / "a.json", collective, backward=backward, frame=frame, until=1990))
    assert said in finding.do
    assert unsaid not in finding.do


@pytest.mark.parametrize(
    ("collective", "frame", "backward", "less"),
    [
        ("all_reduce", DDP, True, ": compress or halve what is sent (register_comm_hook), and"),
        ("all_reduce", None, True, ": in half precision, or only once for all micro-batches."),
        ("_all_gather_base", FSDP, False, ": keep parameters from forward to backward"),
        ("all_to_all", DDP, False, ", for example in half precision."),
    ],
)
def test_what_a_step_has_no_room_to_hide_is_to_be_less(tmp_path, collective, frame, backward, less):
    """A collective of 790 µs in a step of 900: even beside all the rest, 680 µs of it would remain."""
    profile = started(tmp_path / "a.json", collective, backward=backward, frame=frame)
    (finding,) = exposed_comm(profile)
    assert finding.do.startswith("Compare its bus bandwidth with that of nccl-tests")
    assert (
        f"At most 120 µs more of it can be hidden beside the rest of a step; beyond that, send less{less}"
        in finding.do.replace("\u00a0", " ")
    )
    assert "look alike in the trace of one rank" in finding.do
    assert "one rank" not in as_all_ranks_show(finding, 0.1).do
