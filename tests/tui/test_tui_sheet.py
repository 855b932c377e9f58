"""A table on screen: sorted and filtered by Arrow, turned into text where it is visible, and copied whole."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracekit.base.names import cut_apart, short
from tracekit.trace.schema import LABEL, column
from tracekit.tui.model.sheet import Sheet
from tracekit.tui.widgets.columns import column_widths, cut_columns
from tracekit.tui.widgets.lines import fitting
from tracekit.tui.widgets.pane_view import shared

KERNELS = [
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)",
    "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
    "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)",
    None,
]
SCHEMA = pa.schema(
    [
        column("name", LABEL, "what it is", role="kernel"),
        column("where", pa.string(), "whose"),
        column("this_ns", pa.float64(), "of a step", "ns", title="this"),
        column("Δ this_ns", pa.float64(), "against the other", "ns", title="Δ this"),
        column("step", pa.int64(), "", role="identity"),
        column("event", pa.int64(), "row", role="plumbing"),
    ]
)


@pytest.fixture
def sheet():
    columns = [
        KERNELS,
        ["one", "Two", "three", None],
        [1e6, 0.0, 2e6, None],
        [0.0, -3e3, 1e6, None],
        [1, 2000, 3, 4],
        [7] * 4,
    ]
    arrays = [pa.array(values, kind.type) for values, kind in zip(columns, SCHEMA, strict=True)]
    return Sheet("kernels", pa.Table.from_arrays(arrays, schema=SCHEMA))


def test_rows_as_text(sheet):
    assert sheet.titles == ["name", "where", "this", "Δ this", "step"]
    assert sheet.cells(1, 3) == [
        ["ncclKernel_AllReduce_RING_LL_Sum_float", "Two", "·", "−3.00 µs", "2000"],
        ["ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", "three", "2.00 ms", "+1.00 ms", "3"],
    ]
    assert sheet.cells(3, 4) == [["–", "–", "–", "–", "4"]]
    assert dict(sheet.row_in_full(0))["name"] == KERNELS[0]


@pytest.mark.parametrize(
    ("column_name", "down", "order"),
    [("this_ns", True, [2, 0, 1, 3]), ("this_ns", False, [1, 0, 2, 3]), ("where", False, [1, 0, 2, 3])],
)
def test_sorting_leaves_what_is_unknown_to_the_end(sheet, column_name, down, order):
    turned = sheet.sorted_by(column_name, down)
    assert turned.order.tolist() == order
    assert turned.shown["event"].num_chunks
    assert turned.shown["step"].to_pylist() == [[1, 2000, 3, 4][row] for row in order]


@pytest.mark.parametrize("pattern", ["", "k"])
def test_differences_are_sorted_by_size_whatever_their_sign(pattern):
    table = pa.table({"name": ["k1", "k2", "k3", "k4"], "Δ b_ns": pa.array([5.0, -30e6, None, 10.0])})
    sheet = Sheet("kernels", table).filtered(pattern)
    assert sheet.sorted_by("Δ b_ns", True).order.tolist() == [1, 3, 0, 2]
    assert sheet.sorted_by("Δ b_ns", False).order.tolist() == [0, 3, 1, 2]


@pytest.mark.parametrize(
    ("pattern", "rows"),
    [("nccl", [1, 2]), ("NCCL three", [2]), ("elementwise add", [0]), ("nowhere", []), (" ", [0, 1, 2, 3])],
)
def test_filtering_asks_for_every_word_in_full_or_short_names(sheet, pattern, rows):
    assert sheet.filtered(pattern).order.tolist() == rows


def test_filter_and_order_of_many_rows_are_those_of_python():
    rng = np.random.default_rng(3)
    names, values = [f"k{n % 37}" for n in range(5_000)], rng.integers(0, 1_000, 5_000)
    table = pa.table({"name": pa.array(names).dictionary_encode(), "dur_ns": values})
    sheet = Sheet("many", table).sorted_by("dur_ns", True).filtered("k1")
    expected = sorted((row for row in range(5_000) if "k1" in names[row]), key=lambda row: -values[row])
    assert values[sheet.order].tolist() == values[expected].tolist()
    assert sorted(sheet.order.tolist()) == sorted(expected)


@given(st.lists(st.text(alphabet="abcde_", min_size=1, max_size=30), min_size=1, max_size=8), st.integers(8, 20))
def test_names_that_are_cut_fit(names, width):
    assert all(len(cut) <= width for cut in cut_apart(names, width))


def test_names_are_cut_so_that_they_differ():
    names = ["ncclKernel_SendRecv_RING_SIMPLE(ncclWorkElem)", "ncclKernel_AllReduce_RING_SIMPLE(ncclWorkElem)", "other"]
    shown = cut_apart(names, 16)
    assert len(set(shown)) == 3
    assert "Send" in shown[0]
    assert "All" in shown[1]
    assert shown[2] == "other"


def test_sentences_are_cut_at_their_end_and_names_where_they_are_alike():
    rows = [
        ["ncclKernel_AllReduce_RING_LL_Sum_float", "The GPU idles 1.50 ms of 2.58 ms a step because of the host"],
        ["ncclKernel_SendRecv_RING_LL_Sum_float", "The GPU idles 3.50 ms of 4.58 ms a step because of the host"],
    ]
    fields = [column("name", pa.string(), "", role="name"), column("finding", pa.string(), "")]
    table = pa.Table.from_arrays([pa.array(each) for each in zip(*rows, strict=True)], schema=pa.schema(fields))
    sheet = Sheet("findings", table)
    assert sheet.sentences == [False, True]
    names, sentences = cut_columns(sheet, sheet.cells(0, 2), [16, 24])
    assert sentences == ["The GPU idles 1.50 ms o…", "The GPU idles 3.50 ms o…"]
    assert len(set(names)) == 2
    assert all(len(name) <= 16 for name in names)


@pytest.mark.parametrize("width", [8, 10, 16])
def test_names_that_share_a_middle_can_be_told_apart_beside_one_that_does_not(width):
    names = ["hta_ns_resolution", "hta_diff_control", "hta_diff_test", "nowhere"]
    assert len(set(short(names, width))) == 4
    line = fitting([f"{name}.json.gz" for name in names], ["steps 3–4"], 60)
    assert len(set(line.split(" ▸ ")[0].split("  "))) == 4
    assert line.endswith("steps 3–4")


def test_names_of_one_kind_keep_their_beginnings():
    names = [f"gemm {tile} 32x6 {order} align4 (cutlass)" for tile in ("64x64", "128x128") for order in ("nt", "tn")]
    assert len(set(cut_apart(names, 28))) == 4


def test_numbers_keep_their_width_and_texts_give_way(sheet):
    for room in (200, 80, 40):
        widths = column_widths(sheet, room)
        assert all(
            width >= value for width, value, number in zip(widths, sheet.widths, sheet.numbers, strict=True) if number
        )
    assert sum(column_widths(sheet, 200)) + 2 * 4 <= 200
    assert column_widths(sheet, 40)[0] < column_widths(sheet, 200)[0]


@pytest.mark.parametrize(
    ("wanted", "free", "shares"),
    [
        ([5, 9], 20, [5, 9]),
        ([30, 9], 20, [11, 9]),
        ([30, 30], 20, [10, 10]),
        ([30, 30], 5, [5, 6]),
        ([9, 10**9], 20, [9, 11]),
    ],
)
def test_tables_share_the_height(wanted, free, shares):
    assert shared(wanted, free, [5, 6]) == shares


def test_variants_are_called_by_their_own_names():
    """The details of an only variant do not repeat its name."""

    def titles(*variants):
        fields = [column("phase", pa.string(), "")]
        fields += [column(f"{name}_ns", pa.float64(), "", "ns", title=name) for name in variants]
        fields += [
            column(f"{name} copies_ns", pa.float64(), "", "ns", role="detail", title=f"{name} copies")
            for name in variants
        ]
        table = pa.Table.from_pylist([{each.name: 1.0 for each in fields} | {"phase": "data"}], pa.schema(fields))
        return [title for title, _ in Sheet("phases", table, variants=variants).row_in_full(0)]

    assert titles("max_autotune", "eager") == [
        "phase", "max_autotune", "eager", "max_autotune copies", "eager copies"
    ]  # fmt: skip
    assert titles("max_autotune") == ["phase", "max_autotune", "copies"]


def test_lists_are_shown_too():
    table = pa.table(
        [pa.array([["a.py:1", "b.py:2"], ["a.py:1"]])], schema=pa.schema([column("lines", pa.list_(pa.string()), "")])
    )
    assert [row[0] for row in Sheet("lines", table).cells(0, 2)] == ["['a.py:1', 'b.py:2']", "['a.py:1']"]
