"""Gathering and scattering rows: the fewest bytes, computed by hand from shapes, and the time of the GPU's kernels."""

import json

import msgspec
import pytest
from small import kernel, launch, op, step, write

from tests.lines.recorded import call
from tracekit.analyses import answers
from tracekit.analyses.message_passing import kind_of, least_bytes
from tracekit.profile import open_subject
from tracekit.trace.rereading import Arguments

F, LONG = "float", "long int"


def shaped(name, start, end, dims, types):
    return op(name, start, end) | {"args": {"Input Dims": dims, "Input type": types}}


@pytest.mark.parametrize(
    ("operator", "dims", "types", "kind", "least"),
    [
        # 1000 rows of 64 floats, read and written, and 1000 numbers of 8 bytes
        ("aten::index_select", [[50, 64], [], [1000]], [F, "Scalar", LONG], "gather", 2 * 1000 * 64 * 4 + 8000),
        (
            "aten::index_select",
            [[50, 64], [], [1000]],
            ["c10::Half", "Scalar", LONG],
            "gather",
            2 * 1000 * 64 * 2 + 8000,
        ),
        ("aten::gather", [[50, 64], [], [1000, 64], []], [F, "Scalar", LONG, "Scalar"], "gather", 2 * 1000 * 64 * 4),
        # 1000 rows are read, 50 read and written
        (
            "aten::scatter_add_",
            [[50, 64], [], [1000, 64], [1000, 64]],
            [F, "Scalar", LONG, F],
            "scatter",
            (1000 * 64 + 2 * 50 * 64) * 4 + 8000,
        ),
        (
            "aten::index_add_",
            [[50, 64], [], [1000], [1000, 64], []],
            [F, "Scalar", LONG, F, "Scalar"],
            "scatter",
            (1000 * 64 + 2 * 50 * 64) * 4 + 8000,
        ),
        ("aten::index", [[50, 64], []], [F, ""], "gather", None),
        ("aten::index_select", [[50, 64], [], [1000]], ["odd", "Scalar", LONG], "gather", None),
        ("aten::index_select", [], [], "gather", None),
        ("aten::mm", [[5, 6], [6, 7]], [F, F], "", None),
    ],
)
def test_the_least_that_must_be_moved(operator, dims, types, kind, least):
    text = json.dumps({"Input Dims": dims, "Input type": types})
    assert kind_of(operator) == kind
    assert least_bytes(operator, msgspec.json.decode(text, type=Arguments)) == least


def message_passing(profile):
    return next(each for each in answers(profile) if each.analysis == "message_passing")


def test_the_time_is_the_gpus_and_the_layer_the_modules(tmp_path):
    events = []
    for k in range(2):
        t = 1000.0 * k
        events += [
            step(k, t, t + 900),
            call("nn.Module: Net_0", t, t + 200),
            call("nn.Module: SAGEConv_0", t + 10, t + 100),
            shaped("aten::index_select", t + 20, t + 40, [[50, 64], [], [1000]], [F, "Scalar", LONG]),
            launch(t + 25, t + 30, 4 * k + 1),
            kernel("indexSelectLargeIndex", t + 50, t + 150, 4 * k + 1),
            shaped(
                "aten::scatter_add_", t + 50, t + 70, [[50, 64], [], [1000, 64], [1000, 64]], [F, "Scalar", LONG, F]
            ),
            launch(t + 55, t + 60, 4 * k + 2),
            kernel("scatter_gather_elementwise", t + 150, t + 450, 4 * k + 2),
            op("aten::mm", t + 120, t + 130),
            launch(t + 122, t + 126, 4 * k + 3),
            kernel("gemm", t + 450, t + 850, 4 * k + 3),
        ]
    (profile,) = open_subject([write(tmp_path / "trace.json", *events)]).profiles
    answer = message_passing(profile)
    rows = answer.table.to_pylist()
    assert [(row["layer"], row["operator"], row["per_step"], row["step_ns"]) for row in rows] == [
        ("Net_0 · SAGEConv_0", "aten::scatter_add_", 1, 300_000),
        ("Net_0 · SAGEConv_0", "aten::index_select", 1, 100_000),
    ]
    assert [row["share"] for row in rows] == [0.375, 0.125]
    assert rows[1]["bytes_per_s"] == pytest.approx(520_000 / 100e-6)
    assert "take 400 µs a step, 50.0 % of the GPU's work" in answer.sentence
    assert "the memory bandwidth of this device is not known. Scattering adds row by row" in answer.sentence


def test_products_alone_have_no_such_section(tmp_path):
    (profile,) = open_subject([write(tmp_path / "t.json", step(0, 0, 100), op("aten::mm", 10, 90))]).profiles
    assert message_passing(profile).status == "absent"


def test_what_is_called_while_compiling_moves_no_rows(tmp_path):
    def gather(start, end):
        return shaped("aten::index_select", start, end, [[50, 64], [], [1000]], [F, "Scalar", LONG])

    compiling = op("entire_frame_compile (dynamo_timed)", 10, 60)
    path = write(tmp_path / "t.json", step(0, 0, 100), compiling, gather(20, 50), gather(70, 80))
    (row,) = message_passing(open_subject([path]).profiles[0]).table.to_pylist()
    assert (row["per_step"], row["step_ns"], row["share"]) == (1, 10_000, 1.0)


def test_compiled_code_does_not_say(tmp_path):
    compiled = op("## Call CompiledFxGraph fabc ##", 10, 90)
    (profile,) = open_subject([write(tmp_path / "t.json", step(0, 0, 100), compiled)]).profiles
    assert message_passing(profile).status == "unanswered"
