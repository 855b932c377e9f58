"""What traces say about their collectives: groups, sizes and bandwidths, both planted and in a real trace."""

import json

import pytest
from small import step

from tests.ranks.jobs import WORLD, call, job_of_groups
from tracekit.profile import open_subject
from tracekit.ranks import collectives, rank_columns, read_rank
from tracekit.ranks.communication import bus_factor, communication
from tracekit.report import report as make_report
from tracekit.trace.collectives import role_of

BYTES = 4


def columns_of(folder):
    return [read_rank(path) for path in sorted(folder.iterdir())]


def test_groups_are_matched_each_for_itself(tmp_path):
    matched = collectives(columns_of(job_of_groups(tmp_path, early=3)))
    first = [row for row in matched.table.to_pylist() if row["step"] == 0]
    names = ("group", "kind", "seq", "rank", "ranks", "bytes", "transfer_ns", "wait_ns", "late_rank", "late_ns")
    assert [tuple(row[name] for name in names) for row in first] == [
        ("mesh_tp #2", "all_reduce", 0, 2, 2, BYTES << 20, 100_000, 0, 2, 700_000),
        ("mesh_tp #2", "all_reduce", 0, 3, 2, BYTES << 20, 100_000, 700_000, 2, 700_000),
        ("mesh_tp #1", "all_reduce", 0, 0, 2, BYTES << 20, 100_000, 0, 0, 0),
        ("mesh_tp #1", "all_reduce", 0, 1, 2, BYTES << 20, 100_000, 0, 0, 0),
        ("#3: 1 → 2", "send_recv", 1, 1, 2, 4000, 50_000, 0, 1, 0),
        ("#3: 1 → 2", "send_recv", 1, 2, 2, 4000, 50_000, 0, 1, 0),
        *[("default_pg #0", "all_reduce", 2, rank, 4, BYTES << 22, 400_000, 0, 0, 0) for rank in range(4)],
    ]
    assert not any(matched.unmatched.values())
    assert {clock.offset_ns for clock in matched.clocks.values()} == {0}


def test_bandwidths_are_those_of_nccl_tests(tmp_path):
    columns = columns_of(job_of_groups(tmp_path))
    rows = {row["group"]: row for row in communication(columns, collectives(columns)).to_pylist()}
    whole = rows["default_pg #0"]
    assert whole["algbw"] == pytest.approx((BYTES << 22) / 400_000)  # 41.9 GB/s
    assert whole["busbw"] == pytest.approx((BYTES << 22) / 400_000 * 2 * 3 / 4)
    assert rows["mesh_tp #1"]["busbw"] == pytest.approx((BYTES << 20) / 100_000 * 2 * 1 / 2)
    assert rows["#3: 1 → 2"]["busbw"] == rows["#3: 1 → 2"]["algbw"] == pytest.approx(4000 / 50_000)
    roles = {group: row["parallelism"] for group, row in rows.items()}
    assert roles == {
        "default_pg #0": None,
        "mesh_tp #1": "tensor parallel",
        "mesh_tp #2": "tensor parallel",
        "#3: 1 → 2": "pipeline parallel, inferred",
    }
    assert whole["exposed_ns"] == 400_000
    assert sum(row["exposed_ns"] for row in rows.values()) == (4 * 100_000 + 2 * 50_000 + 4 * 400_000) / 4


@pytest.mark.parametrize(
    ("kind", "ranks", "factor"),
    [
        ("all_reduce", 8, 1.75),
        ("all_gather", 8, 0.875),
        ("reduce_scatter", 4, 0.75),
        ("all_to_all", 2, 0.5),
        ("broadcast", 8, 1),
        ("reduce", 8, 1),
        ("send_recv", 2, 1),
        ("barrier", 8, None),
    ],
)
def test_the_factor_of_each_collective(kind, ranks, factor):
    """As in nccl-tests' doc/PERFORMANCE.md."""
    assert bus_factor(kind, ranks) == factor


@pytest.mark.parametrize(
    ("name", "elements_in", "elements_out", "size"),
    [
        ("_allgather_base", 100, 400, 400 * BYTES),
        ("_reduce_scatter_base", 400, 100, 400 * BYTES),
        ("all_to_all", 400, 400, 400 * BYTES),
        ("gather", 100, 0, 400 * BYTES),
        ("broadcast", 100, 100, 100 * BYTES),
    ],
)
def test_sizes_are_counted_as_nccl_tests_does(tmp_path, name, elements_in, elements_out, size):
    (tmp_path / "rank0.json").write_text(
        json.dumps(
            {
                "traceEvents": [
                    step(0, 1000, 9000),
                    *call(
                        3000,
                        1,
                        "ncclDevKernel_Generic(x)",
                        50,
                        name,
                        elements_in,
                        WORLD,
                        **{"Out msg nelems": elements_out},
                    ),
                ]
            }
        )
    )
    (columns,) = columns_of(tmp_path)
    assert columns.calls["bytes"].to_pylist() == [size]


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("TENSOR_MODEL_PARALLEL_GROUP #4", "tensor parallel"),
        ("PIPELINE_MODEL_PARALLEL_GROUP #5", "pipeline parallel"),
        ("DATA_PARALLEL_GROUP_WITH_CP #6", "data parallel"),
        ("EXPERT_MODEL_PARALLEL_GROUP #7", "expert parallel"),
        ("mesh_dp_shard #1", "data parallel"),
        ("mesh_cp #2", "context parallel"),
        ("default_pg #0", None),
        ("stop_pepper #0", None),
    ],
)
def test_what_a_group_is_for_is_told_by_its_name(name, role):
    assert role_of(name, {"all_reduce"}) == (role, False)


def test_the_report_has_it_of_several_ranks_and_of_one(tmp_path):
    for paths in ([job_of_groups(tmp_path)], [tmp_path / "rank0.json"]):
        report = make_report(open_subject(paths))
        section = next(section for section in report.sections if section.id == "communication")
        who = "On average, a rank spends" if len(report.ranks) else "This rank spends"
        assert section.blocks[0].lines[0].startswith(who)
        assert "a bus bandwidth of 62.9 GB/s (formulas of nccl-tests)" in section.blocks[0].lines[0]
    assert section.blocks[0].lines[0].startswith("This rank spends")
    assert "In a single rank's trace, the fastest call of each size is taken" in section.blocks[0].lines[0]


@pytest.mark.traces
def test_a_real_trace_says_its_groups_and_sizes(shared_traces):
    """Two buckets of DDP a step, each with an all_reduce of bfloat16 over the default group of 8."""
    (profile,) = open_subject([shared_traces / "tracelens_resnet_mi300x_training.json.gz"]).profiles
    columns = rank_columns(profile, 0)
    reduced = {
        (row["group"], row["ranks"], row["bytes"]) for row in columns.calls.to_pylist() if row["kind"] == "all_reduce"
    }
    assert reduced == {("default_pg #0", 8, 2_873_320 * 2), ("default_pg #0", 8, 8_816_192 * 2)}
    assert columns.groups == {"default_pg #0": (0, 1, 2, 3, 4, 5, 6, 7)}
    exposed = sum(row["exposed_ns"] for row in communication([columns], None).to_pylist())
    assert exposed == pytest.approx(profile.means["wall"].parts["gpu_comm"], rel=0.01)
