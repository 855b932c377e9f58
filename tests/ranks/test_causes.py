"""Lateness is followed through the collectives of other groups, to the rank that began it."""

import json

import hypothesis.strategies as st
import pytest
from hypothesis import given
from small import event, kernel, launch, op, step

from tests.ranks.jobs import section_of
from tests.ranks.lateness_twin import Job, Planned, blame
from tracekit.ranks import collectives, read_rank

BUCKETS = ("python", "dataload", "dispatch", "gpu_copy")
A, B = (0, 2), (2, 3)


def plan(group, transfer=5, work=(), hidden=()):
    return Planned(
        group,
        transfer,
        {rank: [*dict(work).get(rank, [])] for rank in group},
        {rank: dict(hidden).get(rank, 0) for rank in group},
    )


def answers(job, clocks=None):
    """What the table says about each collective, by its number in its group."""
    clocks = clocks or dict.fromkeys(job.states, 0)
    rows = collectives(job.columns(clocks)).table.to_pylist()
    names = ("late_rank", "cause_rank", "late_bucket", "cause")
    return {(row["group"], row["seq"]): tuple(row[name] for name in names) for row in rows}


@st.composite
def jobs(draw):
    ranks = range(draw(st.integers(2, 5)))
    pools = st.lists(st.sampled_from(ranks), min_size=2, unique=True).map(sorted).map(tuple)
    groups = draw(st.lists(pools, min_size=1, max_size=4, unique=True))
    work = st.lists(st.tuples(st.sampled_from(BUCKETS), st.integers(1, 20)), max_size=2)
    plans = []
    for group in draw(st.lists(st.sampled_from(groups), min_size=1, max_size=8)):
        hidden = st.one_of(st.just(0), st.integers(0, 30))
        plans.append(
            Planned(
                group,
                draw(st.integers(1, 9)),
                {rank: draw(work) for rank in group},
                {rank: draw(hidden) for rank in group},
            )
        )
    clocks = {rank: draw(st.integers(-50, 50)) for rank in ranks}
    return Job.of(plans, draw(st.booleans())), clocks


@given(jobs())
def test_who_is_to_blame_is_what_every_nanosecond_says(made):
    job, clocks = made
    numbers = {}
    found = answers(job, clocks)
    for each in job.ran:
        key = str(each.group), numbers.setdefault(each.group, 0)
        numbers[each.group] += 1
        assert found[key] == blame(job, each)


def test_what_was_waited_in_another_group_is_the_fault_of_the_rank_that_is_late_there():
    job = Job.of([plan(B, work={3: [("dataload", 400)]}), plan(A, work={0: [("python", 10)]})], on_gpu=True)
    assert answers(job) == {
        (str(B), 0): (3, 3, "dataload", "its own"),
        (str(A), 0): (2, 3, "dataload", "passed on"),
    }


def test_it_is_followed_as_far_as_it_goes():
    chain = [plan((3, 4), work={4: [("dispatch", 300)]}), plan(B), plan(A), plan((0, 1))]
    assert {each[1:3] for each in answers(Job.of(chain, on_gpu=True)).values()} == {(4, "dispatch")}


def test_who_does_more_than_it_waited_is_late_by_its_own_fault():
    job = Job.of([plan(B, work={3: [("dataload", 40)]}), plan(A, work={2: [("dispatch", 50)]})], on_gpu=True)
    assert answers(job)[str(A), 0] == (2, 2, "dispatch", "its own")


def test_waiting_that_work_hides_delays_nobody():
    job = Job.of(
        [plan(B, work={3: [("dataload", 400)]}, hidden={2: 400}), plan(A, work={0: [("python", 1)]})], on_gpu=True
    )
    assert answers(job)[str(A), 0] == (2, 2, "gpu_compute", "its own")


def test_on_a_cpu_it_is_inferred():
    job = Job.of([plan(B, work={3: [("dataload", 400)]}), plan(A)], on_gpu=False)
    assert answers(job)[str(A), 0] == (2, 3, "dataload", "passed on, inferred")


def trace(folder, rank, calls, *, on_gpu, late_us=0):
    """Two steps of 5 ms; `calls` are (group, ranks, arrival of this rank, departure of all), in µs of the step."""
    events = []
    for number in range(2):
        t = 1000 + 5000 * number
        events += [step(number, t, t + 5000), op("aten::mm", t + 1, t + 5)]
        if late_us:
            events.append(
                event("user_annotation", "enumerate(DataLoader)#_SingleProcess.__next__", t + 10, t + late_us)
            )
        for nth, (group, ranks, begin, end) in enumerate(calls):
            args = {
                "Collective name": "allreduce",
                "Process Group Name": group,
                "Process Group Ranks": json.dumps(ranks),
                "Group size": len(ranks),
                "In msg nelems": 8,
                "Out msg nelems": 8,
                "dtype": "Float",
                "Seq": number,
            }
            if on_gpu:
                correlation = 10 * number + nth + 1
                events += [
                    event("cpu_op", "record_param_comms", t + begin - 9, t + begin - 3, **args),
                    launch(t + begin - 8, t + begin - 4, correlation),
                    kernel("ncclDevKernel_AllReduce(x)", t + begin, t + end, correlation),
                ]
            else:
                events.append(event("user_annotation", "gloo:all_reduce", t + begin, t + end, tid=2, **args))
    distributed = {"rank": rank, "world_size": 4, "backend": "nccl"}
    content = {"schemaVersion": 1, "distributedInfo": distributed, "traceEvents": events}
    (folder / f"rank{rank}.json").write_text(json.dumps(content))


@pytest.mark.parametrize("on_gpu", [True, False])
def test_the_report_names_the_one_that_began_it(tmp_path, on_gpu):
    """As in docs/ranks.md: rank 3 waits for data until 2000 µs; 2 waits for it in B and is late in A, where 0 waits."""
    in_a, in_b = ("A", [0, 2]), ("B", [2, 3])
    trace(tmp_path, 0, [(*in_a, 100, 2300)], on_gpu=on_gpu)
    trace(tmp_path, 2, [(*in_b, 100, 2100), (*in_a, 2200, 2300)], on_gpu=on_gpu)
    trace(tmp_path, 3, [(*in_b, 2000, 2100)], on_gpu=on_gpu, late_us=1900)
    section = section_of(tmp_path)
    sentence = section.blocks[0].lines[0]
    assert "Rank 3 delays the others: it arrives 1.90 ms a step later than the first rank, mostly because of data" in (
        sentence
    )
    more = "" if on_gpu else " (inferred: Python in a collective is taken for waiting)"
    assert (
        f"Rank 2 had waited for it, and therefore came late to other collectives, by 2.10 ms a step{more}." in sentence
    )
    rows = {row["rank"]: row for row in section.blocks[1].rows.to_pylist()}
    assert [rows[rank]["because"] for rank in (0, 2, 3)] == [None, "waiting for rank 3", "data loading"]
    assert [rows[rank]["late_ns"] for rank in (0, 2, 3)] == [0, 2_100_000, 1_900_000]
    assert [rows[rank]["caused_ns"] for rank in (0, 2, 3)] == [0, 0, 2_100_000]
    (stragglers,) = [block.rows for block in section.blocks if getattr(block, "name", "") == "stragglers"]
    assert {(row["rank"], row["because"]) for row in stragglers.to_pylist()} == {(3, "data loading")}


@pytest.mark.parametrize("begun_us", [0, 600])
def test_who_comes_late_to_its_first_recorded_step_is_not_blamed_for_what_it_does_there(tmp_path, begun_us):
    """Rank 1 begins its first step later than rank 0, and loads data for 200 µs longer in each."""
    for rank in range(2):
        events = []
        for number in range(2):
            t = 1000 + 5000 * number
            begins, loads = t + (begun_us if rank and not number else 0), 200 * rank
            events.append(step(number, begins, t + 5000))
            events.append(event("user_annotation", "enumerate(DataLoader)#_Single", begins, begins + 100 + loads))
            args = {"Collective name": "allreduce", "Process Group Name": "0", "Group size": 2, "Seq": number}
            begun, done = begins + 400 + loads, t + 1500
            events += [
                event("cpu_op", "record_param_comms", begun - 60, begun - 41, **args),
                launch(begun - 55, begun - 45, number + 1),
                kernel("ncclDevKernel_AllReduce(x)", begun, done, number + 1),
                launch(done - 10, done, 0, "cudaDeviceSynchronize"),
            ]
        content = {"schemaVersion": 1, "distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": events}
        (tmp_path / f"rank{rank}.json").write_text(json.dumps(content))
    section = section_of(tmp_path)
    rows = {row["rank"]: row for row in section.blocks[1].rows.to_pylist()}
    assert rows[1]["because"] == "data loading"
    assert rows[1]["late"] == (1 if begun_us else 2)
    assert rows[1]["late_ns"] == (100_000 if begun_us else 200_000)
    said = "Rank 1 came 800 µs later than the first to a collective because it came late to its first recorded step"
    assert any(said in line for line in section.blocks[0].lines) is bool(begun_us)


def test_ranks_that_share_no_collective_are_aligned_among_themselves(tmp_path):
    for rank, (begin, clock) in enumerate([(100, 0), (900, 7000), (100, 50_000), (300, 90_000)]):
        pair = ("A", [0, 1]) if rank < 2 else ("B", [2, 3])
        trace(tmp_path, rank, [(*pair, begin, 1000)], on_gpu=True)
        content = json.loads((tmp_path / f"rank{rank}.json").read_text())
        for each in content["traceEvents"]:
            each["ts"] += clock
        (tmp_path / f"rank{rank}.json").write_text(json.dumps(content))
    matched = collectives([read_rank(path) for path in sorted(tmp_path.iterdir())])
    late = {(row["group"], row["late_rank"], row["late_ns"]) for row in matched.table.to_pylist()}
    assert late == {("#A", 1, 800_000), ("#B", 3, 200_000)}
    assert [matched.clocks[rank].error_ns for rank in range(4)] == [0, 0, None, None]
