"""The examples on the pages of findings, as a report of today tells them: of the samples, of simulated training scripts
(tests/world), and of a healthy loop in which one thing is planted (tests/findings). `python -m docs.made` writes them.
"""

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec.structs import replace

from tracekit.faces.text import draw_blocks
from tracekit.profile import open_subject
from tracekit.report import Report, report
from tracekit.report.blocks import Cards
from tracekit.report.sections.findings import cards

ROOT = Path(__file__).parents[1]
STORED = ROOT / "tracekit" / "findings" / "examples.json"
sys.path.append(str(ROOT / "tests"))  # whose helpers import each other by bare names

from tests.findings import edits  # noqa: E402
from tests.findings.edits import Event, Tape  # noqa: E402
from tests.findings.healthy import healthy  # noqa: E402
from tests.world.worlds import world  # noqa: E402

_WIDTH = "96"
_SAMPLES = {
    "sample_traces/run.json": ("cpu_compute", "graph_breaks"),
    "sample_traces/h100/gcn_cora/run.json": ("dispatch_bound",),
    "sample_traces/h100/modes/run.json": ("backward_handover", "eager_remainders"),
    "sample_traces/h100/pairs/copies-before.json.gz": ("h2d_pageable_copy",),
    "sample_traces/h100/pairs/graph-after.json.gz": ("cuda_graph_ok_gpu_bound", "tiny_kernels", "without_tensor_cores"),
    "sample_traces/h100/pairs/loading-before.json.gz": ("dataloader_bound",),
    "sample_traces/h100/pairs/syncs-before.json.gz": ("gpu_bound_memory_bound", "sync_stall"),
    "sample_traces/h100/pipeline/1-dynamic.json.gz": ("compiled_code_entered", "graphs_prepared"),
    "sample_traces/h100/self_loops/run.json": ("graph_building",),
    "sample_traces/h100/shapes/run.json": ("recompile_limit",),
    "sample_traces/h100/syncs/run.json": ("launch_bound",),
    "sample_traces/h100/shared-gpu.json.gz": ("queued_not_started",),
}
_WORLDS = {
    1: ("gpu_bound_gemm",),
    6: ("cold_start",),
    14: ("preprocessing",),
    15: ("zero_grad",),
    20: ("allocator",),
    24: ("python_bound",),
    25: ("recompiles",),
    34: ("operator_loop",),
    38: ("exposed_comm",),
    39: ("gpu_side_missing",),
    72: ("low_occupancy",),
    106: ("optimizer_loop",),
    114: ("garbage_collection",),
    144: ("late_rank",),
}
_HEALTHY = {  # texts in the trace of the healthy loop
    "kernel": "sm80_xmma_gemm_bf16bf16_tn",
    "operator": "aten::mm",
    "occupancy": '"est. achieved occupancy %": 12',
}


def _planted(put: edits.Plant, moments: slice, inside: str | None = None) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        tape = Tape.read(healthy(folder / "healthy.json", waits=True))
        tape.plant(tape.idle_moments(inside)[moments], put)
        return tape.write(folder / "planted.json")

    return write


def _rewritten(**texts: str) -> Callable[[Path], Path]:
    """The healthy loop with another kernel, operator or occupancy."""

    def write(folder: Path) -> Path:
        path = healthy(folder / "healthy.json")
        text = path.read_text()
        for name, replacement in texts.items():
            assert _HEALTHY[name] in text, name
            text = text.replace(_HEALTHY[name], replacement)
        path.write_text(text)
        return path

    return write


def _changed(change: Callable[[Event], Event | None]) -> Callable[[Path], Path]:
    """The healthy loop with each event changed, or left out where nothing is returned."""

    def write(folder: Path) -> Path:
        path = healthy(folder / "healthy.json")
        content = json.loads(path.read_text())
        content["traceEvents"] = [changed for event in content["traceEvents"] if (changed := change(event))]
        path.write_text(json.dumps(content))
        return path

    return write


_PLANTED: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "host_freeze": ("an operator that stands still once", _planted(edits.nothing(80_000), slice(-1, None), "aten::mm")),
    "compile_in_steps": ("a compilation in one step", _planted(edits.recompile(100_000, "0/0"), slice(3, 4))),
    "idle_unexplained": ("a silence of 80 ms", _planted(edits.nothing(80_000), slice(2, 3))),
    "unaligned_products": (
        "products whose rows are not aligned",
        _rewritten(kernel="cutlass_80_tensorop_bf16_s16816gemm_bf16_128x128_32x4_tn_align2"),
    ),
    "layout_conversions": (
        "kernels that convert layouts",
        _rewritten(kernel="void cudnn::ops::nchwToNhwcKernel<float>", operator="aten::convolution"),
    ),
    "unfused_elementwise": (
        "elementwise kernels",
        _rewritten(
            kernel="void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >",
            operator="aten::add",
            occupancy='"est. achieved occupancy %": 80',
        ),
    ),
    "gpu_bound_other": (
        "kernels of fused attention",
        _rewritten(kernel="pytorch_flash::flash_fwd_kernel<>", operator="aten::_flash_attention_forward"),
    ),
    "host_side_missing": (
        "no call of the host recorded",
        _changed(lambda event: None if event.get("cat") == "cuda_runtime" else event),
    ),
    "unknown": (
        "kernels stamped by a clock of their own",
        _changed(lambda event: event | {"ts": event["ts"] + 1e9} if event.get("cat") == "kernel" else event),
    ),
    "empty": ("events that take no time", _changed(lambda event: event | {"dur": 0} if "dur" in event else event)),
}


def made() -> str:
    """The examples of all findings that some recording shows, as the file has them. Raises LookupError where one no
    longer shows the finding that it is here for."""
    os.environ["COLUMNS"] = _WIDTH
    entries: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for source, path, names in _recordings(Path(folder)):
            opened = report(open_subject([path]))
            for name in names:
                entries[name] = {"source": source, "lines": _lines(opened, name)}
    return json.dumps(dict(sorted(entries.items())), indent=1, ensure_ascii=False) + "\n"


def _recordings(folder: Path) -> Iterator[tuple[str, Path, tuple[str, ...]]]:
    """What is reported, in words; where it is, and which findings it is here for."""
    for sample, names in _SAMPLES.items():
        yield f"tracekit report {sample}", ROOT / sample, names
    for seed, names in _WORLDS.items():
        yield f"a simulated training script (tests/world, number {seed})", world(seed).write(folder / f"{seed}"), names
    for name, (what, write) in _PLANTED.items():
        (folder / name).mkdir()
        yield f"a healthy loop, with {what} (tests/findings)", write(folder / name), (name,)


def _lines(opened: Report, name: str) -> list[str]:
    """The first finding of that kind, without those that are part of it."""
    block = cards(opened.diagnoses)
    for card in block.cards:
        if card.id == name:
            alone = Cards((), cards=(replace(card, also=()),), several=block.several)
            return [line.rstrip() for line in draw_blocks([alone]).splitlines()]
    told = ", ".join(card.id for card in block.cards)
    raise LookupError(f"no finding {name} is told any more, but {told}: look for a recording that shows it")
