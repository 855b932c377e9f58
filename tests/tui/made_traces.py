"""Small synthetic traces for the terminal UI: every run of the tests gets the same numbers."""

import json
from pathlib import Path
from typing import Any

HOSTILE = "[red]\x1b[31mevil\x1b]0;x\x07[/red] [@click=app.quit]\u202e"  # markup, escapes, a direction mark


class Tape:
    """The events of one process, its main thread and one GPU stream; times in µs."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.now = 1000.0
        self.free = 0.0  # when the GPU is free
        self._correlation = 0

    def span(self, cat: str, name: str, start: float, end: float, tid: int = 1, **args: int) -> None:
        event = {"ph": "X", "cat": cat, "name": name, "pid": 7 if tid == 1 else 0, "tid": tid}
        self.events.append(event | {"ts": start, "dur": round(end - start, 3), "args": args})

    def operator(self, name: str, host: float, kernel: str, gpu: float) -> None:
        """An operator that launches one kernel half-way."""
        self._correlation += 1
        start, launch = self.now, self.now + host / 2
        self.span("cpu_op", name, start, start + host)
        self.span("cuda_runtime", "cudaLaunchKernel", launch, launch + 5, correlation=self._correlation)
        begin = max(launch + 9, self.free)
        self.free = begin + gpu
        self.span("kernel", kernel, begin, self.free, tid=20, correlation=self._correlation, stream=20)
        self.now = start + host

    def written(self, path: Path) -> Path:
        path.write_text(json.dumps({"traceEvents": self.events}))
        return path


def eager(path: Path, steps: int = 6, kernel: str = "gemm") -> Path:
    """Many short operators: the GPU waits for the host."""
    tape = Tape()
    for step in range(steps):
        begin = tape.now
        for number in range(5):
            tape.now += 20
            tape.operator(f"aten::op{number}", 60 + 4 * (step % 3), f"{kernel}_{number}", 18)
        tape.span("cuda_runtime", "cudaStreamSynchronize", tape.now, tape.now + 30)
        tape.now += 30
        tape.span("user_annotation", f"ProfilerStep#{step}", begin, tape.now)
        tape.now += 1
    return tape.written(path)


def compiled(path: Path, steps: int = 6) -> Path:
    """One long kernel a step; the first step compiles."""
    tape = Tape()
    for step in range(steps):
        begin = tape.now
        if step == 0:
            tape.span("cpu_op", "entire_frame_compile (dynamo_timed)", tape.now, tape.now + 90_000)
            tape.now += 90_000
        tape.span("cpu_op", "TorchDynamo Cache Lookup", tape.now, tape.now + 12)
        tape.now += 12
        tape.operator("## Call CompiledFxGraph abc ##", 40, "triton_fused", 95 + 3 * (step % 2))
        tape.now += 10
        tape.span("user_annotation", f"ProfilerStep#{step}", begin, tape.now)
        tape.now += 1
    return tape.written(path)


def pair(folder: Path) -> list[Path]:
    """Both of them, side by side."""
    return [eager(folder / "eager.json"), compiled(folder / "compiled.json")]
