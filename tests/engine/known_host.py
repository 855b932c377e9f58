"""Known answers to which events count (§1, §2), on which threads (§3), and to what the host does (§4, §5)."""

from decimal import Decimal

from tests.engine.known import Known, call, copy, frame, kernel, launch, note, op, step, tool

HOST = [
    Known(
        "§1 decimal text, half to even; a negative dur is 0",
        [
            step(0, 0, 10),
            # starts at 1 000.5 → 1 000, lasts 1 001.5 → 1 002 ns
            op("a", Decimal("1.0005"), Decimal("2.0020")),
            op("b", 5, 3),
        ],
        [(0, 0, 10_000, 0, 10_000, True)],
        [{"cpu_compute": 1_002, "python": 8_998}],
        [{"cpu_compute": 1_002, "python": 8_998}],
        device="cpu",
    ),
    Known(
        "§1 a zero-length activity ends no gap; a zero-length call may be a launch",
        [step(0, 0, 20), launch(5, 5, 1), kernel(10, 10, 1), kernel(15, 20, 1)],
        [(0, 0, 20_000, 0, 20_000, True)],
        [{"unrecorded": 5_000, "kernel_launch": 10_000, "gpu_compute": 5_000}],
        [{"unrecorded": 20_000}],
    ),
    Known(
        "§2 a file of 2019: no cat, the pid says it; nothing is linked",
        [
            {"ph": "X", "name": "add", "pid": "CPU functions", "tid": 0, "ts": 0, "dur": 10},
            {"ph": "X", "name": "add_kernel", "pid": "CUDA functions", "tid": 0, "ts": 2, "dur": 4},
        ],
        [(0, 0, 10_000, 0, 10_000, True)],
        [None],
        [{"dispatch": 10_000}],
        cannot=["wall"],
    ),
    Known(
        "§2 a blocking copy is a sync; its own call does not launch in §6.2",
        [
            step(0, 0, 40),
            # The copy ends before its call does, so that the call has waited for it.
            call("cudaMemcpyAsync_v3020", 10, 30, 1),
            copy(25, 28, 1),
        ],
        [(0, 0, 40_000, 0, 40_000, True)],
        [{"unrecorded": 20_000, "sync_stall": 17_000, "gpu_copy": 3_000}],
        [{"unrecorded": 20_000, "sync": 20_000}],
    ),
    *(
        Known(
            f"§2 a copy that never blocks is no sync, though it ended before its call: {name}",
            [step(0, 0, 40), call("cudaMemcpyAsync_v3020", 10, 30, 1), copy(25, 28, 1) | {"name": name}],
            [(0, 0, 40_000, 0, 40_000, True)],
            [{"unrecorded": 20_000, "kernel_launch": 17_000, "gpu_copy": 3_000}],
            [{"unrecorded": 20_000, "kernel_launch": 20_000}],
        )
        for name in ("Memcpy DtoD (Device -> Device)", "Memcpy HtoD (Pinned -> Device)", "CopyDeviceToDevice")
    ),
    *(
        Known(
            f"§2 names of copies that never block count as written, and copies from host to host block: {name}",
            [step(0, 0, 40), call("cudaMemcpyAsync_v3020", 10, 30, 1), copy(25, 28, 1) | {"name": name}],
            [(0, 0, 40_000, 0, 40_000, True)],
            [{"unrecorded": 20_000, "sync_stall": 17_000, "gpu_copy": 3_000}],
            [{"unrecorded": 20_000, "sync": 20_000}],
        )
        for name in ("Memcpy HtoH (Pinned -> Pinned)", "memcpy DtoD", "Memcpy HtoD (pinned -> Device)", "MemcpyPinned")
    ),
    Known(
        "§3 without steps: the most launches outside the autograd engine, not the most launches",
        [
            op("outer", 0, 20),
            launch(2, 4, 1),
            op("autograd::engine::evaluate_function: A", 10, 20, tid=2),
            launch(11, 12, 2, tid=2),
            launch(13, 14, 3, tid=2),
            kernel(4, 20, 1),
        ],
        [(0, 0, 20_000, 0, 20_000, True)],
        # Were thread 2 the main thread, its launches at 11 and 13 would be in the host view.
        [{"dispatch": 2_000, "kernel_launch": 2_000, "gpu_compute": 16_000}],
        [{"dispatch": 18_000, "kernel_launch": 2_000}],
    ),
    Known(
        "§4 the first rule that applies",
        [
            step(0, 0, 100),
            note("enumerate(DataLoader)#it", 0, 20),
            op("stack", 5, 10),
            op("dynamo", 20, 40),
            op("aten::mm", 25, 30),
            op("TorchDynamo Cache Lookup", 40, 45),
            op("aten::mm", 50, 60),
            call("cudaMalloc", 52, 55),
            call("cudaGetDeviceCount", 55, 56),
            call("cudaDeviceSynchronize", 56, 58),
        ],
        [(0, 0, 100_000, 0, 100_000, False)],
        [
            {"dataload": 20_000, "compile": 20_000, "guards": 5_000, "cpu_compute": 4_000, "alloc": 3_000}
            | {"dispatch": 1_000, "sync_stall": 2_000, "python": 45_000}
        ],
        [
            {"dataload": 20_000, "compile": 20_000, "guards": 5_000, "cpu_compute": 4_000, "alloc": 3_000}
            | {"dispatch": 1_000, "sync": 2_000, "python": 45_000}
        ],
        device="cpu",
    ),
    *(
        Known(
            f"§4.4 without operators and frames it is unknown what the host does between its calls: {told}",
            [
                step(0, 0, 40),
                launch(10, 12, 1),
                kernel(12, 30, 1),
                *more,
            ],
            [(0, 0, 40_000, 0, 40_000, True)],
            [{key: 20_000, "kernel_launch": 2_000, "gpu_compute": 18_000}],
            [{key: 38_000, "kernel_launch": 2_000}],
        )
        for told, key, more in (
            ("annotations tell nothing", "unrecorded", [note("Optimizer.step#SGD.step", 20, 30)]),
            ("nor do operators of another process", "unrecorded", [op("aten::mm", 0, 9) | {"pid": 2}]),
            ("an operator of 0 ns is enough", "python", [op("aten::mm", 0, 0)]),
            ("so is a frame of any thread", "python", [frame("a.py(1): f", 5, 5) | {"tid": 3}]),
        )
    ),
    Known(
        "§4.4, §5, §6 before the first host event and after the last, nothing was recorded",
        [
            op("aten::mm", 20, 30),
            launch(30, 32, 9),
            kernel(32, 90, 9),
            kernel(5, 10, 4),
            kernel(95, 96, 9),
        ],
        [(0, 5_000, 96_000, 5_000, 96_000, True)],
        # [10, 20): the host begins at 20; [90, 95): what launched the last kernel had returned long before
        [{"gpu_compute": 64_000, "unrecorded": 10_000, "dispatch": 10_000, "kernel_launch": 2_000, "gpu_gap": 5_000}],
        [{"unrecorded": 79_000, "dispatch": 10_000, "kernel_launch": 2_000}],
    ),
    Known(
        "§5 a helper speaks where nothing of the main thread was recorded",
        [
            step(0, 0, 60),
            launch(0, 2, 1),
            kernel(2, 4, 1),
            launch(10, 12, 2, tid=2),
            launch(20, 22, 3, tid=2),
            kernel(22, 60, 3),
        ],
        [(0, 0, 60_000, 0, 60_000, True)],
        [{"kernel_launch": 6_000, "gpu_compute": 40_000, "unrecorded": 6_000, "dispatch": 8_000}],
        [{"kernel_launch": 6_000, "unrecorded": 46_000, "dispatch": 8_000}],
    ),
    Known(
        "§4 of equal intervals a runtime call before an operator before a frame",
        [step(0, 0, 20), frame("f.py(1): f", 0, 10), call("cudaMalloc", 0, 10), op("aten::empty", 0, 10)],
        [(0, 0, 20_000, 0, 20_000, True)],
        [{"alloc": 10_000, "python": 10_000}],
        [{"alloc": 10_000, "python": 10_000}],
        device="cpu",
    ),
    Known(
        "§4.7 Python frames: the engine, compiled code, and the rest",
        [
            step(0, 0, 100),
            frame("<built-in method run_backward of torch._C._EngineBase object at 0x1>", 10, 30),
            frame("/tmp/torchinductor_me/c.py(9): call", 40, 50),
            frame("c.py(12): inner", 42, 45),
            frame("train.py(1): step", 60, 70),
        ],
        [(0, 0, 100_000, 0, 100_000, True)],
        [{"cpu_compute": 30_000, "python": 70_000}],
        [{"cpu_compute": 30_000, "python": 70_000}],
        device="cpu",
    ),
    Known(
        "§4.7 generated code is known by how its file is named, wherever the cache folder is",
        [
            step(0, 0, 100),
            frame("/tmp/pass/inductor/7r/c7r2lb574illqeptjflwv2zdklurlcr3zvfyon4l7m6ip5jpjdgq.py(107): call", 10, 20),
            frame("w7/cw7vj52l34hrj32sjriah5qg.py(2): call", 30, 40),
            frame("w7/cw6vj52l34hrj32sjriah5qg.py(2): call", 50, 60),  # of another folder
            frame("w7/cw7vj52l34hrj32.py(2): call", 70, 80),  # too short
        ],
        [(0, 0, 100_000, 0, 100_000, True)],
        [{"cpu_compute": 20_000, "python": 80_000}],
        [{"cpu_compute": 20_000, "python": 80_000}],
        device="cpu",
    ),
    Known(
        "§2 tuning by descent and recording a function are compiling",
        [
            step(0, 0, 10),
            step(1, 10, 20),
            step(2, 20, 30),
            op("CachingAutotuner.coordinate_descent_tuning", 2, 6),
            note("CUDAGraphTreeManager.record_function", 12, 16),
        ],
        [
            (0, 0, 10_000, 0, 10_000, False),
            (1, 10_000, 20_000, 10_000, 20_000, False),
            (2, 20_000, 30_000, 20_000, 30_000, True),
        ],
        [{"compile": 4_000, "python": 6_000}, {"compile": 4_000, "python": 6_000}, {"python": 10_000}],
        [{"compile": 4_000, "python": 6_000}, {"compile": 4_000, "python": 6_000}, {"python": 10_000}],
        device="cpu",
    ),
    Known(
        "§5 the autograd thread while the main thread waits for it",
        [
            step(0, 0, 100),
            frame("<built-in method run_backward of torch._C._EngineBase object at 0x1>", 10, 60),
            op("autograd::engine::evaluate_function: A", 20, 30, tid=2),
            op("autograd::engine::evaluate_function: B", 40, 70, tid=2),
            launch(42, 44, 1, tid=2),
            kernel(44, 48, 1),
        ],
        [(0, 0, 100_000, 0, 100_000, True)],
        # engine in [10, 60), helper in [20, 30) and [40, 70), so that none of [10, 70) is Python
        [{"python": 40_000, "dispatch": 54_000, "kernel_launch": 2_000, "gpu_compute": 4_000}],
        [{"python": 40_000, "dispatch": 58_000, "kernel_launch": 2_000}],
    ),
    Known(
        "§5 between two events of a helper the engine is at work, without any Python stack",
        [
            step(0, 0, 60),
            op("aten::mm", 0, 10),
            op("autograd::engine::evaluate_function: A", 20, 30, tid=2),
            op("autograd::engine::evaluate_function: B", 40, 50, tid=2),
        ],
        [(0, 0, 60_000, 0, 60_000, True)],
        [{"cpu_compute": 40_000, "python": 20_000}],
        [{"cpu_compute": 40_000, "python": 20_000}],
        device="cpu",
    ),
    Known(
        "§5 tool overhead: only over dispatch, launches and allocations",
        [
            step(0, 0, 40),
            op("aten::mm", 0, 10),
            tool("Buffer Flush", 5, 8),
            launch(10, 20, 1),
            tool("Lazy Function Loading", 12, 18),
            tool("Buffer Flush", 16, 19),
            kernel(20, 25, 1),
            tool("Buffer Flush", 27, 30),
        ],
        [(0, 0, 40_000, 0, 40_000, True)],
        [
            {"dispatch": 7_000, "kernel_launch": 3_000, "module_load": 6_000, "profiler": 4_000}
            | {"gpu_compute": 5_000, "python": 15_000}
        ],
        [{"dispatch": 7_000, "kernel_launch": 3_000, "module_load": 6_000, "profiler": 4_000} | {"python": 20_000}],
    ),
]
