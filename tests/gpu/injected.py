"""Steps with known, planted times, which the report must find in the right buckets."""

import time
from collections.abc import Callable
from statistics import fmean, median
from typing import Any

from tests.gpu import compiled
from tests.gpu.claims import Claims, near
from tests.gpu.rows import check_rows
from tests.gpu.taking import Taken, take

_SLEPT_MS = 5.0
_LOOP = 30  # steps


def check(claims: Claims) -> None:
    """Check each cause by itself."""
    _on_either(claims)
    if claims.on_gpu:
        _on_a_gpu(claims)
    compiled.check(claims)


def _on_either(claims: Claims) -> None:
    import torch

    x = torch.ones(1024, device=claims.device)
    slept: list[float] = []  # a busy machine wakes late

    def asleep() -> None:
        began = time.perf_counter_ns()
        time.sleep(_SLEPT_MS / 1e3)
        slept.append((time.perf_counter_ns() - began) / 1e6)
        x.add_(1.0)

    def tiny() -> None:
        for _ in range(300):
            x.add_(1.0)

    taken = _taken(claims, "asleep", asleep)
    python, wanted = taken.wall["python"], fmean(slept[-len(taken.rows.steps) :])
    figures = {"slept_ms": round(wanted, 3), "python_ms": round(python, 3)}
    claims.that(wanted - 0.1 < python < 1.2 * wanted + 1, "asleep: what it slept is Python", **figures)
    claims.that(python > 0.9 * sum(taken.wall.values()), "asleep: and nearly nothing else")
    taken = _taken(claims, "tiny", tiny)
    total = sum(taken.wall.values())
    if claims.on_gpu:
        kernels = len(taken.rows.by["kernel"])
        claims.that(kernels == 300 * len(taken.rows.steps), "tiny: 300 kernels a step", kernels=kernels)
        waits = sum(taken.wall[name] for name in ("dispatch", "kernel_launch", "python"))
        claims.that(waits > 0.3 * total, "tiny: the GPU waits for the host", share=round(waits / total, 2))
        claims.that(taken.wall["sync_stall"] < 0.02 * total, "tiny: and for no sync")
    else:
        operators = [row for row in taken.rows.by["cpu_op"] if row["name"] == "aten::add_"]
        claims.that(
            len(operators) == 300 * len(taken.rows.steps), "tiny: 300 operators a step", operators=len(operators)
        )
        claims.that(taken.wall["sync_stall"] == 0, "tiny: no sync")


def _on_a_gpu(claims: Claims) -> None:
    """Kernels of known length, syncs, copies, allocations and a graph."""
    steps = _gpu_steps()
    seen = {name: _timed(claims, name, step) for name, step in steps.items()}
    _of_kernels(claims, seen)
    _of_syncs(claims, seen)
    _of_copies(claims, seen)
    _of_graphs(claims, seen["graph"])
    _of_our_own_wait(claims, seen["bound"])


def _gpu_steps() -> dict[str, Callable[[], Any]]:
    import torch

    x = torch.ones(1024, device="cuda")
    spin = _spinner()
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    b = torch.randn_like(a)
    pageable = torch.randn(16 << 20)
    pinned = torch.randn(16 << 20).pin_memory()
    graph = _graph_of_fifty(torch.ones(1024, device="cuda"))

    def synced(ms: float) -> Callable[[], None]:
        def step() -> None:
            spin(ms)
            x.sum().item()
            time.sleep(_SLEPT_MS / 1e3)
            x.add_(1.0)

        return step

    def fresh() -> None:
        torch.cuda.empty_cache()
        torch.empty(1 << 28, device="cuda", dtype=torch.uint8).add_(1)

    return {
        "bound": lambda: [torch.mm(a, b) for _ in range(6)],
        "sync": synced(10),
        "short": synced(1),
        "pageable": lambda: pageable.to("cuda").add_(1),
        "pinned": lambda: pinned.to("cuda", non_blocking=True).add_(1),
        "fresh": fresh,
        "graph": graph.replay,
    }


def _spinner() -> Callable[[float], None]:
    """A function that keeps the GPU busy for a number of ms; cycles are calibrated once the clock has settled."""
    import torch

    cycles = 200_000_000
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    for _ in range(3):
        marks[0].record()
        torch.cuda._sleep(cycles)
        marks[1].record()
        torch.cuda.synchronize()
    per_ms = cycles / marks[0].elapsed_time(marks[1])
    return lambda ms: torch.cuda._sleep(int(per_ms * ms))


def _graph_of_fifty(x: Any) -> Any:
    import torch

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        x.add_(1.0)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(50):
            x.add_(1.0)
    return graph


def _timed(claims: Claims, name: str, step: Callable[[], Any]) -> Taken:
    """The trace of a step, and whether CUDA events agree with the host's clock."""
    import torch

    from tracekit.capture.child import timing

    for _ in range(3):
        step()
    events, loops = [], []  # in turns, because clock rates change with heat and load
    for _ in range(3):
        torch.cuda.synchronize()
        began = time.perf_counter_ns()
        for _ in range(_LOOP):
            step()
        torch.cuda.synchronize()
        loops.append((time.perf_counter_ns() - began) / _LOOP / 1e6)
        times = timing.run_steps(timing.time_many("cuda", timing.ONE_OF_SEVERAL), step)
        events.append(round(median(times)) / 1e6)
    figures = {"events_ms": [round(ms, 4) for ms in events], "loop_ms": [round(ms, 4) for ms in loops]}
    agree = near(median(events), median(loops), 0.04, max(0.003, max(loops) - min(loops)))
    claims.timed(agree, f"{name}: CUDA events agree with a synchronised loop", **figures)
    ends: list[Any] = []

    def marked() -> None:
        step()
        ends.append(torch.cuda.Event(enable_timing=True))
        ends[-1].record()

    taken = _taken(claims, name, marked)
    check_rows(claims, name, taken.rows)
    _of_the_same_pass(claims, name, taken, ends)
    return taken


def _of_the_same_pass(claims: Claims, name: str, taken: Taken, ends: list[Any]) -> None:
    """Claim that the GPU's times in the trace are those of CUDA events, from the first step's end to the last one's."""
    steps = len(taken.rows.steps)
    rows = sorted(row["ts"] + row["dur"] for row in taken.rows.activities)
    each = len(rows) // steps
    traced, timed = (rows[-1] - rows[each - 1]) / 1e3, ends[-steps].elapsed_time(ends[-1])
    figures = {"traced_ms": round(traced, 4), "events_ms": round(timed, 4)}
    claims.timed(near(traced, timed, 0.02, 0.02), f"{name}: the trace's times are those of CUDA events", **figures)


def _taken(claims: Claims, name: str, step: Callable[[], Any]) -> Taken:
    taken = take(claims, name, step)
    device, cannot = taken.variant["device"], taken.variant["cannot_answer"]
    wanted = "gpu" if claims.on_gpu else "cpu"
    claims.that(device == wanted and not cannot, f"{name}: both views are answered", device=device, cannot=cannot)
    claims.note(f"wall {_shown(taken.wall)}  host {_shown(taken.host)}")
    return taken


def _shown(parts: dict[str, float]) -> str:
    return ", ".join(f"{name} {ms:.3f}" for name, ms in parts.items() if ms) + " ms"


def _of_kernels(claims: Claims, seen: dict[str, Taken]) -> None:
    bound = seen["bound"].wall
    claims.that(bound["gpu_compute"] > 0.95 * sum(bound.values()), "bound: the GPU is busy")
    alloc = seen["fresh"].wall["alloc"]
    claims.that(alloc > 0.05, "fresh: allocator calls are seen", alloc_ms=round(alloc, 3))


def _of_syncs(claims: Claims, seen: dict[str, Taken]) -> None:
    sync, short = seen["sync"], seen["short"]
    claims.that(near(sync.wall["gpu_compute"], 10, 0.05), "sync: 10 ms computed", ms=sync.wall["gpu_compute"])
    stall = sync.wall["sync_stall"]
    claims.timed(4.8 < stall < 6, "sync: the 5 ms after it are blamed on it", stall_ms=round(stall, 3))
    stall, python = short.wall["sync_stall"], short.wall["python"]
    fair = 0.8 < stall < 1.5 and 3.5 < python < 5
    claims.that(fair, "short: blamed no longer than it waited", stall_ms=round(stall, 3), python_ms=round(python, 3))
    waits = [row for row in sync.rows.calls if row["name"].startswith(("cudaStreamSynchronize", "cudaMemcpyAsync"))]
    long = [round(row["dur"]) for row in waits if row["dur"] > 5000]
    claims.that(len(long) == 6 and all(8500 < us < 11500 for us in long), "sync: six waits of 10 ms", us=long)


def _of_copies(claims: Claims, seen: dict[str, Taken]) -> None:
    pageable, pinned = seen["pageable"], seen["pinned"]
    names = sorted({row["name"] for row in pageable.rows.by["gpu_memcpy"]})
    claims.that(names and all("Pageable" in name for name in names), "pageable: the copies say so", names=names)
    claims.that(pageable.wall["gpu_copy"] > 0.5, "pageable: and take their time", ms=pageable.wall["gpu_copy"])
    waits = [any(row["name"].startswith("cudaStreamSync") for row in each.rows.calls) for each in (pageable, pinned)]
    claims.that(waits[0], "pageable: a blocking copy waits for the stream")
    claims.that(not waits[1], "pinned: one that does not block waits for nothing")


def _of_graphs(claims: Claims, taken: Taken) -> None:
    launches = [row for row in taken.rows.calls if row["name"].startswith("cudaGraphLaunch")]
    per = {row["args"]["correlation"]: 0 for row in launches}
    for kernel in taken.rows.by["kernel"]:
        per[kernel["args"]["correlation"]] = per.get(kernel["args"]["correlation"], 0) + 1
    fifty = len(launches) == 6 and {*per.values()} == {50}
    claims.that(fifty, "graph: six launches of fifty kernels", launches=len(launches), kernels=sorted(per.values()))


def _of_our_own_wait(claims: Claims, taken: Taken) -> None:
    waits = [row for row in taken.rows.by["user_annotation"] if row["name"] == "tracekit.synchronize"]
    claims.that(len(waits) == 1, "bound: the capture's own wait has a name", there=len(waits))
    claims.that("never waits" in taken.syncs, "bound: and is nobody's sync", said=taken.syncs)
