"""A recording cut anywhere ends in a report, or in one sentence that says what to do; never in anything else."""

import gzip
import json
import random
from pathlib import Path

import pytest
from real import trace_path
from small import Event, event, kernel, launch, op, step

from tracekit.errors import TracekitError
from tracekit.faces import Options
from tracekit.faces.text import draw
from tracekit.profile import open_subject
from tracekit.report import report

CUTS = 60
HEADER = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100", "numSms": 132}]}


def loop(steps: int = 4) -> list[Event]:
    """Steps that begin with a loader, launch underfilled kernels and a copy, and wait for them."""
    events: list[Event] = []
    for k in range(steps):
        t = 10_000 * k
        shapes = {"Input Dims": [[4096, 4096], [4096, 4096]], "Input type": ["float", "float"]}
        events += [
            step(k, t, t + 9_000),
            event("user_annotation", "enumerate(DataLoader)#_SingleProcess", t, t + 800),
            event("cpu_op", "aten::add", t + 1_000, t + 2_000, **shapes),
            launch(t + 1_500, t + 1_600, 3 * k + 1),
            op("aten::mm", t + 2_000, t + 3_000),
            launch(t + 2_500, t + 2_600, 3 * k + 2),
            launch(t + 3_000, t + 3_100, 3 * k + 3, "cudaMemcpyAsync"),
            launch(t + 4_000, t + 9_000, 0, "cudaDeviceSynchronize"),
            event("python_function", "train.py(7): main", t, t + 9_000),
        ]
        works = (
            kernel("void at::native::vectorized_elementwise_kernel<4>", t + 2_000, t + 4_000, 3 * k + 1),
            kernel("ampere_sgemm_128x64", t + 4_000, t + 7_000, 3 * k + 2),
            kernel("Memcpy HtoD (Pageable -> Device)", t + 7_000, t + 8_900, 3 * k + 3, "gpu_memcpy"),
        )
        for work in works:
            work["args"] |= {"est. achieved occupancy %": 5, "blocks per SM": 0.1, "warps per SM": 0.5}
        events += works
    return events


def by_thread() -> list[Event]:
    """As Kineto writes them, thread after thread: cut, nothing is known of any step."""
    return sorted(loop(), key=lambda made: (made["cat"] == "kernel", str(made["tid"])))


def without_steps() -> list[Event]:
    return [made for made in loop(8) if not made["name"].startswith("ProfilerStep")]


def survives(path: Path, content: bytes) -> bool:
    """Whether what is left of a file gives a report; where it does not, one sentence says why."""
    path.write_bytes(content)
    try:
        return bool(draw(report(open_subject([path])), Options()))
    except TracekitError as error:
        sentence = str(error)
    assert "\n" not in sentence
    return False


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("events", [loop(), by_thread(), without_steps()], ids=["by step", "by thread", "no steps"])
def test_a_made_recording_may_be_cut_anywhere(tmp_path: Path, events: list[Event], packed: bool) -> None:
    text = json.dumps({**HEADER, "traceEvents": events}).encode()
    content = gzip.compress(text) if packed else text
    cuts = random.Random(5).sample(range(len(content)), CUTS // 2)
    reported = [survives(tmp_path / "t.json", content[:cut]) for cut in cuts]
    assert sum(reported) > CUTS // 4


@pytest.mark.traces
def test_a_real_recording_may_be_cut_anywhere(tmp_path: Path) -> None:
    """One whose kernels have their occupancy in the file, but of which no step is known once it is cut."""
    text = gzip.decompress(trace_path("param_dlrm_v100_rank2").read_bytes())
    assert all(survives(tmp_path / "t.json", text[: len(text) * k // 20]) for k in range(12, 20, 2))
