"""Indexed variants for tests of the timeline."""

from __future__ import annotations

from pathlib import Path

import small

from tracekit.profile import open_subject
from tracekit.timeline import Index
from tracekit.tui.timeline.canvas import Inkwell, Palette
from tracekit.tui.timeline.frame import Frame
from tracekit.tui.timeline.state import State
from tracekit.tui.timeline.widget import rendered


def indexes(*paths: Path) -> list[Index]:
    """The indexes of the variants in these files."""
    return [Index.of(profile) for profile in open_subject([*paths]).profiles]


def compiling(path: Path) -> Path:
    """Two steps: the second compiles, waits for the GPU twice, and leaves it idle for 30 µs between two kernels."""
    return small.write(
        path,
        small.step(0, 0, 100),
        small.op("aten::mm", 10, 30),
        small.launch(15, 20, 1),
        small.kernel("gemm", 20, 60, 1),
        small.launch(30, 60, 0, "cudaStreamSynchronize"),
        small.step(1, 100, 300),
        small.op("entire_frame_compile (dynamo_timed)", 110, 150),
        small.op("compile_inner (dynamo_timed)", 120, 140),
        small.op("aten::mm", 160, 180),
        small.launch(165, 170, 2),
        small.kernel("gemm", 170, 210, 2),
        small.launch(180, 210, 0, "cudaStreamSynchronize"),
        small.op("aten::relu", 220, 240),
        small.launch(230, 235, 3),
        small.kernel("relu", 240, 260, 3),
        small.launch(240, 260, 0, "cudaStreamSynchronize"),
    )


def drawn(state: State | None, width: int, height: int, patterns: bool = False, remarks: tuple[str, ...] = ()) -> Frame:
    """The screen of a state."""
    return rendered(state, remarks, width, height, Inkwell(Palette(patterns=patterns)))


def texts(frame: Frame) -> list[str]:
    """The lines of the screen without colours."""
    return ["".join(text for text, _ in line) for line in frame.lines]
