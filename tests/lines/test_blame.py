"""The owners of GPU time and idle time, in a step small enough to check by hand."""

from small import kernel, launch, op, step, write

from tests.lines.recorded import call, with_lines
from tracekit.profile import open_subject
from tracekit.report.owner_costs import VariantOwners
from tracekit.report.sections.lines import SideBySide


def test_a_sync_pays_for_its_wait_and_for_the_refill(tmp_path):
    """`first` launches 50 µs of work and waits; `second` launches 40 µs more, 25 µs after the wait."""
    trace = write(
        tmp_path / "trace.json",
        step(0, 0, 200),
        call("mine.py(1): first", 10, 80),
        op("aten::mm", 11, 16),
        launch(12, 14, 1),
        kernel("one", 20, 70, 1),
        launch(30, 75, 0, "cudaDeviceSynchronize"),
        call("mine.py(9): second", 90, 200),
        op("aten::mm", 95, 104),
        launch(100, 102, 2),
        kernel("two", 110, 150, 2),
    )
    (profile,) = open_subject([trace]).profiles
    means = profile.owner_means
    of = {
        name: means.by("wall", lambda owner: owner.lines[0].function if owner.lines else "", chosen)
        for name, chosen in (
            ("gpu", lambda mean: mean.bucket == "gpu_compute"),
            ("sync", lambda mean: mean.bucket == "sync_stall"),
            ("launch", lambda mean: mean.bucket == "kernel_launch"),
        )
    }
    assert of["gpu"] == {"first": 50_000, "second": 40_000}
    assert of["sync"] == {"first": 30_000}  # 5 until it returns and 25 until `second` launches, all caused by it
    assert of["launch"] == {"first": 8_000, "second": 10_000}  # two calls, and what each takes to reach the GPU


def test_an_injected_item_is_the_first_row(tmp_path):
    """Two lines queue one kernel each, the third waits for both, and the GPU idles until the fourth launches one."""
    trace = write(
        tmp_path / "trace.json",
        step(0, 0, 152),
        call("mine.py(1): work", 1, 151),
        call("<built-in function one>", 10, 12),
        launch(11, 12, 1),
        call("<built-in function two>", 14, 16),
        launch(15, 16, 2),
        call("<built-in method item of Tensor object at 0x7f>", 20, 73),
        op("aten::item", 20, 72),
        launch(21, 22, 3, "cudaMemcpyAsync"),
        launch(22, 72, 0, "cudaStreamSynchronize"),
        call("<built-in function four>", 110, 124),
        launch(120, 122, 4),
        kernel("one", 20, 45, 1),
        kernel("two", 45, 70, 2),
        kernel("Memcpy DtoH", 70, 71, 3, "gpu_memcpy"),
        kernel("four", 125, 150, 4),
    )
    (profile,) = open_subject([with_lines(trace, {10: 2, 14: 3, 20: 4, 110: 5})]).profiles
    rows = SideBySide([VariantOwners("trace", profile.owner_means, "wall")]).table().to_pylist()
    assert [row["line"] for row in rows][:1] == ["mine.py:4"]
    assert rows[0]["trace sync_stall_ns"] == 49_000  # as long as it had waited for the kernels before the GPU ran dry
    assert rows[0]["trace gpu_copy_ns"] == 1_000
