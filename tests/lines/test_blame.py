"""Whose GPU time and idle time is, on a step small enough to work out by hand."""

from small import kernel, launch, op, step, write

from tests.lines.recorded import call
from tracekit.profile import open_subject


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
    assert of["sync"] == {"first": 30_000}  # 5 until it returns, 25 until `second` launches: all its own doing
    assert of["launch"] == {"first": 8_000, "second": 10_000}  # two calls, and what each takes to reach the GPU
