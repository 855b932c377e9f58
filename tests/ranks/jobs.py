"""Jobs of several ranks: their planted traces, one file for each rank or one for all, and what is read from them."""

import gzip
import json

from small import event, kernel, launch, op, step

from tracekit.profile import open_subject
from tracekit.ranks import collectives, rank_columns
from tracekit.report import report as make_report

OVERHEADS = {"module_load": "Lazy Function Loading", "profiler": "Buffer Flush"}
STEP_US, WORK_US, TRANSFER_US, LATE_US = 2000, 300, 100, 400


def late_for(bucket, start, length):
    """What makes a rank late by this much, beginning at `start`."""
    end, number = start + length, int(start) * 10
    overhead = event("overhead", OVERHEADS.get(bucket, ""), start, end, tid=0, pid=-1)
    return {
        "python": [],  # nothing runs
        "dataload": [event("user_annotation", "enumerate(DataLoader)#_SingleProcess.__next__", start, end)],
        "dispatch": [op("aten::index", start, end)],
        "guards": [op("TorchDynamo Cache Lookup", start, end)],
        "compile": [op("dynamo", start, end)],
        "alloc": [launch(start, end, 0, "cudaMalloc")],
        "kernel_launch": [launch(start, end, 0)],
        "sync_stall": [launch(start, end, 0, "cudaDeviceSynchronize")],
        "gpu_compute": [launch(start, start + 0.001, number), kernel("gemm", start, end, number)],
        "gpu_copy": [
            launch(start, start + 0.001, number, "cudaMemcpyAsync"),
            kernel("Memcpy", start, end, number, "gpu_memcpy"),
        ],
        "gpu_gap": [launch(start, start + 0.001, number), kernel("gemm", end, end + 0.001, number)],
        "module_load": [launch(start, end, 0), overhead],
        "profiler": [launch(start, end, 0), overhead],
    }.get(bucket, [])


def job(folder, *, ranks=4, steps=3, late=None, bucket="dataload", skew_us=0, world=None, name="rank{}.json"):
    """In each step every rank works, then all of them reduce; `late` begins LATE_US later than the others."""
    for rank in range(ranks):
        events, clock = [], skew_us * rank
        for number in range(steps):
            begins = 1000 + number * STEP_US + clock
            delay = LATE_US if rank == (late(number) if callable(late) else late) else 0
            events += [step(number, begins, begins + STEP_US), *late_for(bucket if delay else "", begins, delay)]
            arrives = begins + delay + WORK_US
            ends = 1000 + number * STEP_US + clock + (LATE_US if late is not None else 0) + WORK_US + TRANSFER_US
            correlation = 10 * number
            events += [
                op("c10d::allreduce_", arrives - 20, arrives - 1),
                launch(arrives - 10, arrives - 2, correlation + 1),
                kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", arrives, ends, correlation + 1),
                launch(arrives, ends, 0, "cudaDeviceSynchronize"),
            ]
        distributed = {"rank": rank, "world_size": world or ranks, "backend": "nccl"}
        content = {"schemaVersion": 1, "distributedInfo": distributed, "traceEvents": events}
        (folder / name.format(rank)).write_text(json.dumps(content))
    return folder


def profile_of(folder):
    (profile,) = open_subject([folder]).profiles
    return profile


def compared(profile):
    return collectives([rank_columns(each, rank) for rank, each in profile.per_rank.items()])


def section_of(folder):
    report = make_report(open_subject([folder]))
    return next(section for section in report.sections if section.id == "ranks")


def merged(folder, paths, moved=False):
    """One file with all events; the ids of processes and devices are made distinct where necessary."""
    events = []
    for rank, path in enumerate(paths):
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        for each in json.loads(text)["traceEvents"]:
            pid = {1: 1000 + rank, 0: rank}.get(each.get("pid"), each.get("pid")) if moved else each.get("pid")
            events.append(each | {"pid": pid})
    events = [each for each in events if each["ph"] != "M"]
    path = folder / "merged.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def record(name, start, end, **args):
    return event("cpu_op", "record_param_comms", start, end, **{"Collective name": name, "dtype": "Float", **args})


def call(at, number, kernel_name, length, name, elements, group, early=0.0, **more):
    """A collective that takes `length` µs from `at`, when the last rank arrives; this one arrives `early` µs before."""
    label, description, ranks = group
    args = {
        "In msg nelems": elements,
        "Out msg nelems": elements,
        "Group size": len(ranks),
        "Process Group Name": label,
        "Process Group Description": description,
        "Process Group Ranks": json.dumps(ranks),
        "Seq": number,
        **more,
    }
    begin = at - early
    return [
        record(name, begin - 60, begin - 41, **args),
        launch(begin - 55, begin - 45, number + 1),
        kernel(kernel_name, begin, at + length, number + 1),
    ]


WORLD = ("0", "default_pg", [0, 1, 2, 3])
PAIRS = {
    0: ("1", "mesh_tp", [0, 1]),
    1: ("1", "mesh_tp", [0, 1]),
    2: ("2", "mesh_tp", [2, 3]),
    3: ("2", "mesh_tp", [2, 3]),
}
STAGES = ("3", "undefined", [0, 1, 2, 3])


def job_of_groups(folder, steps=2, early=None):
    """Tensor-parallel pairs reduce, 1 sends to 2, then all reduce; `early` ranks arrive 700 µs before their partner."""
    for rank in range(4):
        events = []
        for number in range(steps):
            t = 1000 + 10_000 * number
            early_us = 700 if early == rank else 0
            first = 10 * number
            events += [step(number, t, t + 10_000), op("aten::mm", t + 10, t + 20)]
            events += call(
                t + 2000, first, "ncclDevKernel_AllReduce(x)", 100, "allreduce", 1 << 20, PAIRS[rank], early_us
            )
            if rank in (1, 2):
                peer = {"Dst Rank": 2} if rank == 1 else {"Src Rank": 1}
                events += call(
                    t + 4000,
                    first + 1,
                    "ncclDevKernel_SendRecv(x)",
                    50,
                    "send" if rank == 1 else "recv",
                    1000,
                    STAGES,
                    **peer,
                )
            events += call(t + 6000, first + 2, "ncclDevKernel_AllReduce(x)", 400, "allreduce", 1 << 22, WORLD)
        distributed = {"rank": rank, "world_size": 4, "backend": "nccl"}
        (folder / f"rank{rank}.json").write_text(
            json.dumps({"schemaVersion": 1, "distributedInfo": distributed, "traceEvents": events})
        )
    return folder
