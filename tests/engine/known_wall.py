"""Known answers to what the GPU does, and what keeps it idle (§6), and to when steps begin and end (§7)."""

from tests.engine.known import Known, call, copy, kernel, launch, op, step

WALL = [
    Known(
        "§6 busy: computation hides communication hides copies",
        [
            step(0, 0, 40),
            call("cudaGraphLaunch_v10000", 0, 2, 1),
            kernel(2, 10, 1),
            kernel(5, 20, 1, "ncclDevKernel_AllReduce"),
            copy(15, 30, 1),
        ],
        [(0, 0, 40_000, 0, 40_000, True)],
        [
            {"kernel_launch": 2_000, "gpu_compute": 8_000, "gpu_comm": 10_000, "gpu_copy": 10_000}
            | {"unrecorded": 10_000}
        ],
        [{"kernel_launch": 2_000, "unrecorded": 38_000}],
    ),
    Known(
        "§2 communication beyond NCCL, in any case",
        [
            step(0, 0, 100),
            launch(0, 1, 1),
            *(
                kernel(k, k + 10, 1, name)
                for k, name in (
                    (1, "mscclpp_allreduce"),
                    (11, "void deep_ep::internode::combine<4>"),
                    (21, "NVSHMEM_barrier_all"),
                    (31, "multimem_all_reduce_kernel"),
                    (41, "two_shot_all_reduce_kernel"),
                    (51, "void vllm::cross_device_reduce_2stage<half>"),
                    (61, "my_mscclpp"),
                )
            ),
        ],
        [(0, 0, 100_000, 0, 100_000, True)],
        [{"kernel_launch": 1_000, "gpu_comm": 60_000, "gpu_compute": 10_000, "unrecorded": 29_000}],
        [{"kernel_launch": 1_000, "unrecorded": 99_000}],
    ),
    Known(
        "§6.1 submission latency, and 30 µs later a gap",
        [step(0, 0, 100), launch(0, 5, 1), kernel(80, 90, 1)],
        [(0, 0, 100_000, 0, 100_000, True)],
        [{"kernel_launch": 35_000, "gpu_gap": 45_000, "gpu_compute": 10_000, "unrecorded": 10_000}],
        [{"kernel_launch": 5_000, "unrecorded": 95_000}],
    ),
    Known(
        "§6.1 queued before the gap began",
        [step(0, 0, 20), launch(0, 2, 1), launch(2, 4, 2), kernel(4, 10, 1), kernel(15, 20, 2)],
        [(0, 0, 20_000, 0, 20_000, True)],
        # [0, 4): the launch call, then its latency; [10, 15): the second launch ended at 4
        [{"kernel_launch": 4_000, "gpu_compute": 11_000, "gpu_gap": 5_000}],
        [{"kernel_launch": 4_000, "unrecorded": 16_000}],
    ),
    Known(
        "§6.3 the refill after a sync is the sync's for as long as it had waited",
        [
            step(0, 0, 100),
            launch(0, 2, 1),
            kernel(2, 50, 1),
            call("cudaStreamSynchronize", 46, 52, 2),  # it had waited 4 µs at 50, so it is to blame until 56
            op("aten::mm", 52, 60),
            launch(60, 62, 3),
            kernel(62, 90, 3),
        ],
        [(0, 0, 100_000, 0, 100_000, True)],
        [{"kernel_launch": 4_000, "gpu_compute": 76_000, "sync_stall": 6_000, "dispatch": 4_000} | {"python": 10_000}],
        [{"kernel_launch": 4_000, "sync": 6_000, "dispatch": 8_000, "python": 82_000}],
    ),
    Known(
        "§6.3 the refill of which nothing was recorded",
        [
            step(0, 0, 100),
            launch(0, 2, 1),
            kernel(2, 50, 1),
            call("cudaStreamSynchronize", 46, 52, 2),  # to blame until 56
            launch(60, 62, 3),
            kernel(62, 100, 3),
        ],
        [(0, 0, 100_000, 0, 100_000, True)],
        [{"kernel_launch": 4_000, "gpu_compute": 86_000, "sync_stall": 6_000, "unrecorded": 4_000}],
        [{"kernel_launch": 4_000, "sync": 6_000, "unrecorded": 90_000}],
    ),
    Known(
        "§6.3 no refill where no activity ends the gap",
        [step(0, 0, 50), launch(0, 2, 1), kernel(2, 20, 1), call("cudaStreamSynchronize", 10, 25)],
        [(0, 0, 50_000, 0, 50_000, True)],
        [{"kernel_launch": 2_000, "gpu_compute": 18_000, "sync_stall": 5_000, "unrecorded": 25_000}],
        [{"kernel_launch": 2_000, "sync": 15_000, "unrecorded": 33_000}],
    ),
    Known(
        "§2 an activity ends where the first whole later one of its stream starts, whatever it is",
        [
            step(0, 0, 100),
            launch(0, 2, 1),
            launch(2, 4, 2),
            launch(4, 6, 3),
            kernel(10, 99, 1),  # until 30
            kernel(30, 40, 2),
            kernel(50, 60, 3),
            op("aten::mm", 0, 0),
        ],
        [(0, 0, 100_000, 0, 100_000, True)],
        [{"kernel_launch": 10_000, "gpu_compute": 40_000, "gpu_gap": 10_000, "python": 40_000}],
        [{"kernel_launch": 6_000, "python": 94_000}],
    ),
    *(
        Known(
            f"§2 an activity outlasts {what}, which is real",
            [
                step(0, 0, 100),
                launch(0, 2, 1),
                launch(2, 4, 2),
                kernel(4, 90, 1) | first,
                kernel(30, 40, 2) | second,
                op("aten::mm", 0, 0),
            ],
            [(0, 0, 100_000, 0, 100_000, True)],
            [{"kernel_launch": 4_000, "gpu_compute": 86_000, "python": 10_000}],
            [{"kernel_launch": 4_000, "python": 96_000}],
        )
        for what, first, second in (
            ("one of another stream", {}, {"tid": 8}),
            ("one of a stream that is written differently", {}, {"tid": "7"}),
            ("one of another context", {}, {"args": {"correlation": 2, "context": 5}}),
            ("part of one that ends later", {}, {"dur": 60}),
            ("one that starts with it", {}, {"ts": 4}),
            ("one of 0 ns", {}, {"dur": 0}),
            ("one of its own launch", {}, {"args": {"correlation": 1}}),
        )
    ),
    Known(
        "§2 one that starts before its call is cut short by those of its own launch, too, and linked to nothing",
        [
            step(0, 0, 100),
            launch(10, 12, 1),
            kernel(5, 90, 1),  # until 20
            kernel(20, 40, 1),
            op("aten::mm", 0, 0),
        ],
        [(0, 0, 100_000, 0, 100_000, True)],
        [{"python": 65_000, "gpu_compute": 35_000}],
        [{"kernel_launch": 2_000, "python": 98_000}],
    ),
    Known(
        "§2 one that starts more than 1 ms before its call has no part in anything, one of 1 ms is linked to nothing",
        [
            step(0, 0, 3_000),
            launch(2_000, 2_010, 1),
            launch(2_020, 2_030, 2),
            launch(2_040, 2_050, 3),
            launch(2_060, 2_070, 4),
            kernel(500, 700, 1),
            kernel(1_020, 1_040, 2),
            kernel(2_100, 2_120, 3),
            kernel(2_120, 2_140, 4),
            op("aten::mm", 0, 0),
        ],
        [(0, 0, 3_000_000, 0, 3_000_000, True)],
        # two calls of 10 µs; [2,040, 2,080): the third and 30 µs after it; then a gap until the kernel starts
        [{"gpu_compute": 60_000, "kernel_launch": 60_000, "gpu_gap": 20_000, "python": 2_860_000}],
        [{"kernel_launch": 40_000, "python": 2_960_000}],
    ),
    *(
        Known(
            f"§6 no wall view: two clocks, most activities start {where}",
            [
                step(0, 0, 10),
                *(launch(k, k + 1, k) for k in (1, 3, 5)),
                *(kernel(at, at, k) for at, k in zip(starts, (1, 3, 5), strict=True)),
                op("aten::mm", 0, 0),
            ],
            [(0, 0, 10_000, 0, 10_000, True)],
            [None],
            [{"kernel_launch": 3_000, "python": 7_000}],
            cannot=["wall"],
        )
        for where, starts in (
            ("before their calls", (0, 2, 7)),
            ("more than 60 s after them", (60_000_003, 60_000_005, 7)),
            ("on either side", (0, 60_000_005, 7)),
        )
    ),
    Known(
        "§6 one clock: no more than half start elsewhere, and 60 s is not too late",
        [
            step(0, 0, 10),
            launch(1, 2, 1),
            launch(3, 4, 3),
            kernel(0, 1, 1),
            kernel(60_000_004, 60_000_005, 3),
            op("aten::mm", 0, 0),
        ],
        [(0, 0, 60_000_005_000, 0, 10_000, True)],
        [{"gpu_compute": 2_000, "python": 1_000, "kernel_launch": 32_000} | {"gpu_gap": 60_000_005_000 - 35_000}],
        [{"kernel_launch": 2_000, "python": 8_000}],
    ),
    Known(
        "§6 no wall view: launches and no GPU activity",
        [step(0, 0, 10), launch(2, 4, 1)],
        [(0, 0, 10_000, 0, 10_000, True)],
        [None],
        [{"kernel_launch": 2_000, "unrecorded": 8_000}],
        cannot=["wall"],
        device="cpu",
    ),
    Known(
        "§6 no wall view: two processes make launch calls",
        [step(0, 0, 10), launch(2, 4, 1), kernel(4, 8, 1), launch(5, 6, 9) | {"pid": 2}],
        [(0, 0, 10_000, 0, 10_000, True)],
        [None],
        [{"kernel_launch": 2_000, "unrecorded": 8_000}],
        cannot=["wall"],
    ),
    Known(
        "§6 no wall view of a step whose launches have lost their work",
        [step(1, 0, 10), launch(0, 2, 1), kernel(2, 8, 1), step(2, 10, 20), launch(11, 13, 2)],
        [(1, 0, 10_000, 0, 10_000, True), (2, 10_000, 20_000, 10_000, 20_000, True)],
        [{"kernel_launch": 2_000, "gpu_compute": 6_000, "unrecorded": 2_000}, None],
        [{"kernel_launch": 2_000, "unrecorded": 8_000}, {"kernel_launch": 2_000, "unrecorded": 8_000}],
    ),
    Known(
        "§7 the host is ahead: a step lasts until its work is done",
        [
            step(1, 0, 10),
            launch(1, 2, 1),
            step(2, 10, 20),
            launch(11, 12, 2),
            kernel(2, 30, 1),
            kernel(30, 70, 2),
        ],
        [(1, 0, 30_000, 0, 10_000, True), (2, 30_000, 70_000, 10_000, 20_000, True)],
        [{"unrecorded": 1_000, "kernel_launch": 1_000, "gpu_compute": 28_000}, {"gpu_compute": 40_000}],
        [{"kernel_launch": 1_000, "unrecorded": 9_000}, {"kernel_launch": 1_000, "unrecorded": 9_000}],
    ),
    Known(
        "§7 the backlog: work of a call before the first step, and unlinked work of a smaller correlation",
        [
            launch(80, 81, 10),
            step(1, 100, 120),
            launch(101, 102, 12),
            kernel(90, 110, 10),
            kernel(110, 115, 5),
            kernel(115, 130, 12),
            kernel(130, 140, 99),  # neither, because it belongs to no step and no step waits for it
        ],
        [(1, 115_000, 130_000, 100_000, 120_000, True)],
        [{"gpu_compute": 15_000}],
        [{"kernel_launch": 1_000, "unrecorded": 19_000}],
    ),
    Known(
        "§7 a step that nests in another's completion lasts 0 ns",
        [
            step(1, 0, 50),
            launch(5, 6, 1),
            step(2, 10, 20),
            launch(12, 13, 2),
            kernel(6, 80, 1),
            kernel(20, 30, 2) | {"tid": 8},
        ],
        [(1, 0, 80_000, 0, 50_000, True), (2, 80_000, 80_000, 10_000, 20_000, True)],
        [{"unrecorded": 5_000, "kernel_launch": 1_000, "gpu_compute": 74_000}, {}],
        [{"kernel_launch": 2_000, "unrecorded": 48_000}, {"kernel_launch": 1_000, "unrecorded": 9_000}],
    ),
    Known(
        "§10 GPU rows alone: nothing can be answered",
        [kernel(5, 10, 1), kernel(12, 20, 2)],
        [(0, 5_000, 20_000, 5_000, 20_000, True)],
        [None],
        [None],
        cannot=["host", "wall"],
    ),
]
