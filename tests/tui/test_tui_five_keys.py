"""From the first screen to the line of source in five keys or fewer, on runs with an injected cause."""

import json
from pathlib import Path

import pytest
from small import event, kernel, launch, op, step, write

from tests.tui.pilots import press, said, started

LINE = "train.py(7): train"


def traced(path: Path, *of_step, steps: int = 4, length: float = 10_000) -> Path:
    """Steps inside one frame of the user's, which makes the events of each step (given from 0 µs on)."""
    events = [event("python_function", LINE, 0, length * steps, **{"Python id": 1})]
    for k in range(steps):
        begin = length * k
        events.append(step(k, begin, begin + length - 10))
        for make in of_step:
            events += [{**each, "ts": each["ts"] + begin} for each in make(k)]
    return write(path, *events)


def work(start: float, length: float, name: str = "gemm"):
    """An operator that launches a kernel."""
    return lambda k: [
        op("aten::mm", start, start + 60),
        launch(start + 10, start + 20, 1000 * k + int(start) + 1),
        kernel(name, start + 30, start + 30 + length, 1000 * k + int(start) + 1),
    ]


# Where the keys lead: to a finding and its evidence, or to the kernels, the slowest of them first.
WALKS = {"kernel": ("K",)}
CAUSES = {
    "sync": [
        work(100, 2_000),
        lambda k: [op("aten::item", 2_100, 9_000), launch(2_200, 8_900, 0, "cudaStreamSynchronize")],
        work(9_100, 200),
    ],
    "recompile": [
        work(100, 500),
        lambda k: [op("entire_frame_compile (dynamo_timed)", 1_000, 9_000)] if k > 1 else [],
        work(9_100, 500),
    ],
    "kernel": [work(100, 9_500, "slow_kernel")],
    "loader": [
        lambda k: [event("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 100, 8_000)],
        work(8_100, 1_500),
    ],
}


@pytest.mark.parametrize("cause", [*CAUSES])
async def test_five_keys_lead_to_the_line(cause: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))
    path = traced(tmp_path / f"{cause}.json", *CAUSES[cause])
    assert json.loads(path.read_text())["traceEvents"]
    async with started([path]) as (app, pilot):
        keys = []
        for key in WALKS.get(cause, ("enter", "enter", "t")):
            if "train.py" in said(app, "#row"):
                break
            keys.append(key)
            await press(pilot, key)
            for _ in range(100):
                await pilot.pause(0.01)
                if "train.py" in said(app, "#row"):
                    break
        assert "train.py" in said(app, "#row")
        assert len(keys) <= 5
