"""Small traces that break one law each, what the law says of them, and their whole twins."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from small import Event, event, kernel, launch, op, step

from tracekit.trace.facts import FIGURES

Spans = tuple[tuple[int, int], ...]  # µs
KERNELS = 6  # of each step of `loop`


def loop(steps: int = 4, kernels: int = KERNELS, mark: bool = True) -> list[Event]:
    """Steps of 100 µs for each kernel: an operator launches it, and it runs from 40 to 120 µs after that."""
    events: list[Event] = []
    for k in range(steps):
        begin = 1000 * k if kernels == KERNELS else 100 * kernels * k
        events += [step(k, begin, begin + 100 * kernels + 60)] if mark else []
        for j in range(kernels):
            t, number = begin + 100 * j, 1 + k * kernels + j
            events += [
                op("aten::mm", t + 20, t + 60),
                launch(t + 30, t + 35, number),
                kernel("gemm", t + 40, t + 120, number),
            ]
    return events


def without(events: Iterable[Event], gone: Callable[[Event], bool]) -> list[Event]:
    return [each for each in events if not gone(each)]


def in_step(number: int, cat: str) -> Callable[[Event], bool]:
    return lambda each: (
        each["cat"] == cat
        and 1000 * number <= each["ts"] < 1000 * number + 1000
        and not (each["name"].startswith("ProfilerStep"))
    )


def changed(events: Iterable[Event], wanted: Callable[[Event], bool], **fields: object) -> list[Event]:
    return [each | fields if wanted(each) else each for each in events]


def is_gpu(each: Event) -> bool:
    return bool(each["cat"] == "kernel")


def is_(cat: str, start: float) -> Callable[[Event], bool]:
    return lambda each: each["cat"] == cat and each["ts"] == start


def graph_loop(steps: int = 4, delay: int = 5, nodes: int = 5) -> list[Event]:
    """Each step replays one CUDA graph of nodes that take 50 µs, which begins so many µs after its call."""
    events: list[Event] = []
    for k in range(steps):
        t = 1000 * k
        events += [step(k, t, t + 900), launch(t + 10, t + 20, k + 1, "cudaGraphLaunch")]
        events += [kernel(f"n{j}", t + 20 + delay + 50 * j, t + 70 + delay + 50 * j, k + 1) for j in range(nodes)]
    return [*events, op("aten::empty", 2, 5)]


def numbered() -> list[Event]:
    """The loop with operators inside another, whose ids calls and kernels have."""
    events: list[Event] = []
    for each in loop():
        number = 1 + int(each["ts"] // 1000) * KERNELS + int(each["ts"] % 1000 // 100)
        events += [op("aten::linear", each["ts"] - 2, each["ts"] + 45)] if each["cat"] == "cpu_op" else []
        has_id = each["cat"] != "user_annotation"
        events.append(each | {"args": {**each.get("args", {}), "External id": number}} if has_id else each)
    return events


def framed() -> list[Event]:
    """Every operator of the loop is called by a function of its own, and that by one that calls all."""
    main = event("python_function", "train.py(3): main", 0, 3900, **{"Python id": 1})
    frames = [
        event("python_function", "train.py(9): layer", each["ts"] - 5, each["ts"] + 50)
        | {"args": {"Python id": 2 + k, "Python parent id": 1}}
        for k, each in enumerate(each for each in loop() if each["cat"] == "cpu_op")
    ]
    return [main, *frames, *loop()]


def loading(steps: int = 6) -> list[Event]:
    return loop(steps) + [
        event(
            "user_annotation",
            "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
            1000 * k + 2,
            1000 * k + 9,
        )
        for k in range(steps)
    ]


def on_a_cpu(*more: Event) -> list[Event]:
    return [*without(loop(), lambda each: is_gpu(each) or each["cat"] == "cuda_runtime"), *more]


def counted_on_a_cpu(kept: int = 1) -> list[Event]:
    """Operators of which only each one of so many is there, with the profiler's numbers."""
    numbers = range(1, 100, kept)
    return [op("aten::mm", 10 * k, 10 * k + 8) | {"args": {"External id": k}} for k in numbers]


def reading_a_value(us: float) -> list[Event]:
    return on_a_cpu(*(op("aten::_local_scalar_dense", 1000 * k + 620, 1000 * k + 620 + us) for k in range(4)))


def capturing(marks: bool = True) -> list[Event]:
    recorded = [launch(3700 + 10 * k, 3705 + 10 * k, 90 + k) for k in range(3)]
    around = [launch(3690, 3695, 89, "cudaStreamBeginCapture"), launch(3740, 3745, 99, "cudaStreamEndCapture")]
    return [*loop(), *recorded, *(around if marks else ())]


def copying(*copies: int) -> list[Event]:
    """A copy in each step, of which only those with these numbers have left an activity."""
    return [
        *loop(),
        *(launch(1000 * k + 640, 1000 * k + 645, 100 + k, "cudaMemcpyAsync") for k in range(4)),
        *(kernel("Memcpy HtoD", 1000 * k + 650, 1000 * k + 655, 100 + k, "gpu_memcpy") for k in copies),
    ]


@dataclass(frozen=True)
class Case:
    """A damaged trace, its whole twin, and what the law says of the damage; times in µs."""

    law: str
    damaged: list[Event]
    severity: str
    count: int = 1
    worst: tuple[str, int] | None = None
    touches: tuple[str, ...] = ()
    gpu: Spans = ()
    steps: tuple[int, ...] = ()
    twin: list[Event] | None = None
    says: str = ""


IDLE, WORK = "gpu idle", "gpu work"
CASES = {
    "order": Case(
        "order",
        changed(loop(), is_("kernel", 1040), dur=300),
        "doubt",
        worst=("gemm", 1040),
        touches=(WORK, IDLE, "steps"),
        gpu=((1040, 1140),),
    ),
    "causality": Case(
        "causality",
        changed(loop(), is_("kernel", 1240), ts=1225),
        "doubt",
        worst=("gemm", 1225),
        touches=(IDLE, "steps"),
        says="1 of 24 GPU activities start",
    ),
    "causality of one in many": Case(
        "causality",
        changed(loop(2, 60), is_("kernel", 1240), ts=1225),
        "note",
        worst=("gemm", 1225),
        touches=(IDLE, "steps"),
        twin=loop(2, 60),
    ),
    "two_clocks": Case(
        "two_clocks",
        [each | {"ts": each["ts"] + 1e8} if is_gpu(each) else each for each in loop()],
        "refusal",
        touches=(WORK, IDLE, "steps"),
    ),
    "overlong": Case(
        "overlong",
        changed(loop(), is_("kernel", 3540), dur=3000),
        "doubt",
        worst=("gemm", 3540),
        touches=(WORK, IDLE, "steps"),
        gpu=((3540, 6540),),
        steps=(3,),
    ),
    "lost_work of a step": Case(
        "lost_work",
        without(loop(), in_step(1, "kernel")),
        "doubt",
        count=6,
        worst=("cudaLaunchKernel", 1030),
        touches=(WORK, IDLE),
        gpu=((1030, 2040),),
        steps=(1, 2),
        says="6 of 24 launches have no work in the trace, in step 1:",
    ),
    "lost_work of the head": Case(
        "lost_work",
        without(loop(), in_step(0, "kernel")),
        "doubt",
        count=6,
        worst=("cudaLaunchKernel", 30),
        touches=(WORK, IDLE),
        gpu=((30, 1040),),
        steps=(0, 1),
    ),
    "lost_work of the tail": Case(
        "lost_work",
        without(loop(), in_step(3, "kernel")),
        "doubt",
        count=6,
        worst=("cudaLaunchKernel", 3030),
        touches=(WORK, IDLE),
        gpu=((3030, 3660),),
        steps=(3,),
    ),
    "lost_work that the host waited for": Case(
        "lost_work",
        [*without(loop(), in_step(1, "kernel")), launch(1640, 1650, 0, "cudaDeviceSynchronize")],
        "doubt",
        count=6,
        worst=("cudaLaunchKernel", 1030),
        touches=(WORK, IDLE),
        gpu=((1030, 1650),),
        steps=(1,),
    ),
    "lost_work of copies": Case(
        "lost_work",
        copying(0, 1, 3),
        "doubt",
        worst=("cudaMemcpyAsync", 2640),
        touches=(WORK, IDLE),
        gpu=((2640, 3040),),
        steps=(2, 3),
        twin=copying(0, 1, 2, 3),
    ),
    "lost_work of one in many": Case(
        "lost_work",
        without(loop(2, 60), is_("kernel", 1040)),
        "note",
        worst=("cudaLaunchKernel", 1030),
        touches=(WORK, IDLE),
        gpu=((1030, 1140),),
        twin=loop(2, 60),
    ),
    "lost_work of a replay": Case(
        "lost_work",
        without(graph_loop(), lambda each: each["name"] in ("n3", "n4") and each["ts"] // 1000 == 2),
        "doubt",
        count=2,
        worst=("cudaGraphLaunch", 2010),
        touches=(WORK, IDLE),
        gpu=((2010, 2025), (2175, 3025)),
        steps=(2, 3),
        twin=graph_loop(),
        says="1 replay of CUDA graphs lacks nodes",
    ),
    "lost_launches": Case(
        "lost_launches",
        without(loop(), in_step(1, "cuda_runtime")),
        "doubt",
        count=6,
        worst=("gemm", 1040),
        touches=(WORK, IDLE, "steps", "lines"),
    ),
    "lost_launches of one in many": Case(
        "lost_launches",
        without(loop(2, 60), is_("cuda_runtime", 1030)),
        "note",
        worst=("gemm", 1040),
        touches=(WORK, IDLE, "steps", "lines"),
        twin=loop(2, 60),
    ),
    "lost_launches, all of them": Case(
        "lost_launches",
        [
            *without(loop(), lambda each: each["cat"] == "cuda_runtime"),
            launch(640, 645, 0, "cudaDeviceSynchronize"),
        ],
        "doubt",
        count=24,
        worst=("gemm", 40),
        touches=(WORK, IDLE, "steps", "lines"),
        says="No launch of the GPU's work was recorded",
    ),
    "graph_recording": Case(
        "graph_recording",
        capturing(),
        "note",
        count=3,
        worst=("cudaLaunchKernel", 3700),
        twin=capturing(marks=False),
    ),
    "launches outside of a capture": Case(
        "lost_work",
        capturing(marks=False),
        "doubt",
        count=3,
        worst=("cudaLaunchKernel", 3700),
        touches=(WORK, IDLE),
        gpu=((3700, 3725),),
        twin=capturing(),
    ),
    "lost_nodes": Case(
        "lost_nodes",
        graph_loop(delay=80),
        "doubt",
        count=4,
        worst=("cudaGraphLaunch", 10),
        touches=(WORK, IDLE),
        gpu=tuple((1000 * k + 20, 1000 * k + 100) for k in range(4)),
        steps=(0, 1, 2, 3),
        twin=graph_loop(),
    ),
    "lost_nodes while another stream works": Case(
        "lost_nodes",
        [*graph_loop(delay=80), launch(1001, 1003, 99), kernel("copy", 1005, 1100, 99) | {"tid": 9}],
        "doubt",
        count=3,
        worst=("cudaGraphLaunch", 10),
        touches=(WORK, IDLE),
        gpu=tuple((1000 * k + 20, 1000 * k + 100) for k in (0, 2, 3)),
        steps=(0, 2, 3),
        # A graph that always waits for another stream lacks nothing.
        twin=[
            *graph_loop(delay=80),
            *(launch(1000 * k + 1, 1000 * k + 3, 90 + k) for k in range(4)),
            *(kernel("copy", 1000 * k + 5, 1000 * k + 100, 90 + k) | {"tid": 9} for k in range(4)),
        ],
    ),
    "sampled": Case(
        "sampled",
        without(
            loop(),
            lambda each: (
                each.get("args", {}).get("correlation", 0) % 4 == {"kernel": 0, "cuda_runtime": 2}.get(each["cat"], -1)
            ),
        ),
        "refusal",
        count=12,
        touches=FIGURES,
        says="33.3 % of the launches have no work, and 33.3 % of the work has no launch",
    ),
    "sampled, by the numbers of operators": Case(
        "sampled",
        counted_on_a_cpu(kept=2),
        "refusal",
        count=49,
        touches=FIGURES,
        twin=counted_on_a_cpu(),
        says="after 100.0 % of them the next one is missing",
    ),
    "duplicates": Case(
        "duplicates",
        [*loop(), kernel("gemm", 1040, 1120, 7)],
        "doubt",
        worst=("gemm", 1040),
        touches=(WORK,),
    ),
    "several_recordings": Case(
        "several_recordings",
        [*loop(), *(each | {"ts": each["ts"] + 5000} for each in loop(mark=False))],
        "doubt",
        count=24,
        worst=("cudaLaunchKernel", 5030),
        touches=(WORK, IDLE, "host time", "steps"),
    ),
    "several_recordings of a CPU": Case(
        "several_recordings",
        [*counted_on_a_cpu(), *(each | {"ts": each["ts"] + 5000} for each in counted_on_a_cpu())],
        "doubt",
        count=99,
        worst=("aten::mm", 5010),
        touches=(WORK, IDLE, "host time", "steps"),
        # That an event is there twice makes no other recording.
        twin=[*counted_on_a_cpu(), *counted_on_a_cpu()],
        says="99 operators have the id of another one",
    ),
    "lost_operators around launches": Case(
        "lost_operators",
        without(loop(), in_step(1, "cpu_op")),
        "doubt",
        count=6,
        worst=("cudaLaunchKernel", 1030),
        touches=("host time", "lines", "causes"),
        says="25.0 % of the launches lie in no operator",
    ),
    "lost_operators by their ids": Case(
        "lost_operators",
        without(numbered(), lambda each: each["name"] == "aten::mm" and each["ts"] // 1000 == 1),
        "doubt",
        count=12,
        worst=("cudaLaunchKernel", 1030),
        touches=("host time", "lines", "causes"),
        twin=numbered(),
        says="25.0 % of the calls and kernels belong to operators",
    ),
    "lost_frames": Case(
        "lost_frames",
        framed()[1:],
        "doubt",
        count=24,
        worst=("train.py(9): layer", 15),
        touches=("lines",),
        twin=framed(),
    ),
    "lost_steps": Case(
        "lost_steps",
        without(loop(), lambda each: each["name"] == "ProfilerStep#2"),
        "doubt",
        touches=(WORK, IDLE, "host time", "steps"),
        steps=(1,),
        says="Step 1 is followed by step 3:",
    ),
    "lost_batches": Case(
        "lost_batches",
        without(loading(), is_("user_annotation", 3002)),
        "doubt",
        touches=("host time",),
        twin=loading(),
        says="No batch was asked for in 1 step (3)",
    ),
    "serialised": Case(
        "serialised",
        [*loop(), event("cuda_profiler_range", "gemm", 40, 120, tid=7, pid=0)],
        "doubt",
        worst=("gemm", 40),
        touches=(WORK, IDLE, "steps"),
    ),
    "another_device, by long reads": Case(
        "another_device",
        reading_a_value(300),
        "refusal",
        worst=("aten::_local_scalar_dense", 620),
        touches=(WORK, IDLE, "host time"),
        twin=reading_a_value(3),
    ),
    **{
        f"another_device, by events of {cat}": Case(
            "another_device",
            on_a_cpu(event(cat, "work", 700, 710)),
            "refusal",
            worst=("work", 700),
            touches=(WORK, IDLE, "host time"),
            twin=on_a_cpu(event("user_annotation", "work", 700, 710)),
        )
        for cat in ("hpu_op", "mtia_ccp_events", "xpu_runtime", "mps_op")
    },
    **{
        f"another_device, by {name}": Case(
            "another_device",
            on_a_cpu(op(name, 700, 710)),
            "refusal",
            worst=(name, 700),
            touches=(WORK, IDLE, "host time"),
            twin=on_a_cpu(op("aten::cudnn_is_acceptable", 700, 710)),
        )
        for name in (
            "aten::_mps_convolution",
            "xpu::flash",
            "hpu::add",
            "npu::npu_fusion_attention",
            "aten::cudnn_convolution",
        )
    },
    "no_gpu_side": Case(
        "no_gpu_side",
        without(loop(), is_gpu),
        "refusal",
        count=24,
        touches=(WORK, IDLE),
    ),
    "several_processes": Case(
        "several_processes",
        [*loop(), launch(5, 8, 999) | {"pid": 2, "tid": 2}, kernel("gemm", 30, 40, 999) | {"tid": 9}],
        "refusal",
        count=2,
        touches=(WORK, IDLE, "steps"),
    ),
    "calls_unknown": Case(
        "calls_unknown",
        without(loop(), lambda each: each["cat"] == "cuda_runtime"),
        "doubt",
        touches=(IDLE, "steps"),
    ),
    "no_host_side": Case(
        "no_host_side",
        without(on_a_cpu(), lambda each: each["cat"] == "cpu_op"),
        "doubt",
        touches=("host time", "steps", "causes"),
        twin=on_a_cpu(),
        says="what the host did is not known",
    ),
    "no_operators": Case(
        "no_operators",
        without(loop(), lambda each: each["cat"] == "cpu_op"),
        "doubt",
        touches=("lines",),
    ),
}


def text_of(events: list[Event]) -> str:
    return json.dumps({"schemaVersion": 1, "traceEvents": events})
