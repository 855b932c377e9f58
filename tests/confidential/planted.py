"""A run with a secret in every text that an input can hold: each is a word that occurs nowhere else."""

import gzip
import json
from itertools import count
from pathlib import Path

from msgspec import inspect
from msgspec.structs import replace

from tests.watched.written import FACTS, MS, steps, write
from tracekit.loading import record as loading

STEM = "zqxsecret"
_numbers = count()


def secret() -> str:
    """A new word."""
    letters, number = "", next(_numbers)
    for _ in range(3):
        number, digit = divmod(number, 26)
        letters = chr(ord("a") + digit) + letters
    return STEM + letters


def filled(kind: inspect.Type) -> object:
    """A value of a type of msgspec's in which every text is a secret, those of fields that will be added, too."""
    match kind:
        case inspect.StrType():
            return secret()
        case inspect.IntType(ge=least, gt=below):
            return max(least or 0, 0 if below is None else below + 1, 1)
        case inspect.FloatType():
            return 1.5
        case inspect.BoolType():
            return True
        case inspect.LiteralType(values=values):
            return values[0]
        case inspect.AnyType():
            return {secret(): [secret(), {secret(): secret()}]}
        case inspect.Metadata(type=inner):
            return filled(inner)
        case inspect.UnionType(types=kinds):
            return filled(next(one for one in kinds if not isinstance(one, inspect.NoneType)))
        case inspect.ListType(item_type=inner):
            return [filled(inner)]
        case inspect.TupleType(item_types=kinds):
            return [filled(inner) for inner in kinds]
        case inspect.NamedTupleType(fields=fields):
            return [filled(field.type) for field in fields]
        case inspect.DictType(key_type=key, value_type=inner):
            return {filled(key): filled(inner)}
        case inspect.StructType(fields=fields, array_like=True):
            return [filled(field.type) for field in fields]
        case inspect.StructType(fields=fields):
            return {field.encode_name: filled(field.type) for field in fields}
    raise TypeError(kind)


def _event(cat, name, start, length, tid=1, pid=1, **args):
    args = {key.replace("_", " ") if key.istitle() else key: value for key, value in args.items()}
    event = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": length}
    return event | {"args": {**args, secret(): secret()}}


def _step(k, user):
    """What a step records; `user` has the names that repeat in every step."""
    t = 10_000.0 * k
    events = [_event("user_annotation", f"ProfilerStep#{k}", t, 9_000)]
    events += [_event("python_function", user["frame"], t + 1, 8_900)]
    events += [_event("python_function", user["module"], t + 2, 4_000)]
    events += [_event("python_function", user["installed"], t + 3, 3_900)]
    events += [_event("python_function", user["built in"], t + 4, 3_800)]
    events += [_event("user_annotation", user["annotation"], t + 5, 3_700)]
    events += [_event("python_function", user["typed"], t + 4_001, 90)]
    events += [_event("python_function", user["builder"], t + 6_300, 600)]
    events += [_event("user_annotation", user["optimizer"], t + 4_100, 1_000)]
    events[-1]["args"] |= {"Input type": [secret()], "Concrete Inputs": [secret()], "Call stack": secret()}
    events += [_event("cpu_op", "aten::mm", t + 100, 900), _event("cpu_op", user["operator"], t + 1_100, 900)]
    events += [_event("cpu_op", user["node"], t + 5_200, 500), _event("cpu_op", user["plain"], t + 5_800, 500)]
    for number, kernel in enumerate(("at::native::vectorized_elementwise_kernel<4, Functor>", *user["kernels"])):
        moment = t + 200 + 1_000 * number
        correlation = 10 * k + number + 1
        events += [_event("cuda_runtime", "cudaLaunchKernel", moment, 10, correlation=correlation)]
        events += [_event("kernel", kernel, moment + 20, 700, 7, 0, correlation=correlation, stream=7)]
    events += [_event("cuda_runtime", f"cuda{secret()}", t + 7_000, 10), _event("overhead", secret(), t + 7_020, 10)]
    events += [_event(user["category"], secret(), t + 7_040, 10), _event("cpu_op", f"nccl:{secret()}", t + 7_060, 10)]
    events[-1]["args"] |= {"Collective name": secret(), "Process Group Name": secret(), "dtype": secret()}
    events[-1]["args"] |= {"Process Group Description": secret(), "In msg nelems": 4, "Group size": 2}
    events += [_event("cuda_runtime", "cudaDeviceSynchronize", t + 7_100, 900)]
    events += [_event("cuda_profiler_range", secret(), t + 250, 5, 7, 0)]
    events[-1]["args"] |= {secret(): 5.0, f"smsp__{secret()}.sum": 3.0}
    return events


def write_trace(path: Path, steps: int = 4, rank: int = 0) -> Path:
    """A trace of a GPU, of one of two ranks."""
    file, function = f"/home/{secret()}/{secret()}/{secret()}.py", secret()
    user = {
        "frame": f"{file}(12): {function}",
        "module": f"nn.Module: {secret()}_0",
        "installed": f"/opt/{secret()}/lib/python3.11/site-packages/{secret()}/{secret()}.py(3): {secret()}",
        "built in": f"<built-in method {secret()} of {secret()} object at 0x7f3e5d4c2b1a>",
        "typed": f"<stdin>(1): {secret()}",
        "builder": f"/home/{secret()}/{secret()}.py(30): build_neighbor_list_{secret()}",
        "annotation": f"## {secret()} of {secret()} ##",
        "optimizer": f"Optimizer.step#{secret()}.step",
        "operator": f"{secret()}::{secret()}",
        "node": f"autograd::engine::evaluate_function: {secret()}Backward",
        "plain": secret(),
        "category": secret(),
        "kernels": (
            f"triton_poi_fused_{secret()}_add_3",
            f"void {secret()}::{secret()}_gemm_kernel<float>({secret()}*)",
            f"void at::native::elementwise_kernel<128, {secret()}::Op>(int)",
            f"_Z12{secret()}kernelPf",
        ),
    }
    metadata = [
        {
            "ph": "M",
            "name": "process_name",
            "pid": 1,
            "tid": 0,
            "args": {"name": f"python {secret()}.py --key {secret()}"},
        },
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": f"thread 1 ({secret()})"}},
        {"ph": "M", "name": "thread_name", "pid": secret(), "tid": secret(), "args": {"name": secret()}},
        {"ph": "M", "name": "process_labels", "pid": 1, "tid": 0, "args": {"labels": secret()}},
    ]
    other = _event("cpu_op", "aten::add", 20, 30, secret(), 1)
    document = {
        "schemaVersion": 1,
        "traceName": f"/scratch/{secret()}/{path.name}",
        "hostname": secret(),
        secret(): {secret(): [secret()]},
        "deviceProperties": [{"id": 0, "name": f"NVIDIA {secret()}", "totalGlobalMem": 8 << 30, secret(): secret()}],
        "distributedInfo": {"backend": secret(), "rank": rank, "world_size": 2, "pg_config": [{"pg_name": secret()}]},
        "traceEvents": [*metadata, other, *(event for k in range(1, steps + 1) for event in _step(k, user))],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(json.dumps(document).encode()))
    _write_lines(path, file, function, user)
    return path


def _write_lines(trace: Path, file: str, function: str, user: dict) -> None:
    lines = {
        "schema": "tracekit.lines/1",
        "functions": [
            [user["frame"], file, 12, function, "user"],
            [user["installed"], f"/opt/{secret()}.py", 3, secret(), secret()],
        ],
        "callers": [[file, function]],
        "call_start_ns": [20_100_000],
        "call_caller": [0],
        "call_line": [14],
        "python": secret(),
        "code": [[file, 12, function, [13, 14], [secret(), "call"]]],
        "sources": {file: "\n".join(f"{secret()} = '{secret()}'  # {secret()}" for _ in range(20))},
        "graphs": [
            [
                secret(),
                secret(),
                [
                    [
                        f"triton_poi_fused_{secret()}_0:1",
                        [f'  File "{file}", line 13, in {function}\n    {secret()}()\n'],
                    ]
                ],
            ]
        ],
        "modules": {user["module"].removeprefix("nn.Module: "): f"{secret()}.0.{secret()}"},
    }
    name = trace.name.removesuffix(".json.gz")
    trace.with_name(f"{name}.lines.json.gz").write_bytes(gzip.compress(json.dumps(lines).encode()))


def write_watch(folder: Path) -> Path:
    """Records of a watch of two ranks, one that is damaged, a trace that the watch took, and the loader's records."""
    folder.mkdir(parents=True)
    facts = replace(
        FACTS,
        script=f"/home/{secret()}/{secret()}.py",
        device=secret(),
        device_name=f"NVIDIA {secret()}",
        clock=secret(),
        step=f"a batch of {secret()}",
        job=secret(),
        loader="loader-7-1",
        ranks=2,
        versions={"torch": "2.13.0", "python": secret(), secret(): secret()},
    )
    compiled = {"step_ns": 90 * MS, "compile_ns": 85 * MS, "compiles": 1}
    late = {"step_ns": 40 * MS, "waited_ns": 41 * MS, "worker": 0}
    taken = steps(1_000, {300: late, 900: compiled})
    write(folder, taken, facts)
    write(folder, steps(1_000, {700: compiled}), replace(facts, rank=1, process=8))
    (folder / f"{secret()}.watch").write_bytes(b"torn")
    write_trace(folder / f"{facts.stem}-step300-slow-batch.pt.trace.json.gz")
    _write_loader(folder / facts.loader, taken[300].began_ns)
    return folder


def _write_loader(folder: Path, asked_ns: int) -> None:
    """A worker whose batch was late, as long as it was at one line, and the loop that asked for it."""
    began, made = asked_ns + MS, asked_ns + 39 * MS
    loop = loading.Record.create(folder, loading.Facts(process=7, began_ns=asked_ns, workers=1))
    worker = loading.Record.create(folder, loading.Facts(process=9, began_ns=asked_ns, workers=1, worker=0))
    place = loading.Place(f"/home/{secret()}/{secret()}.py", 8, secret(), secret(), f"/srv/{secret()}/{secret()}.py")
    number = worker.number_of(place)
    worker.batches.append(loading.Batch(1, 0, began, made - MS, made, made, made, made + MS, 1_000, 1))
    for ms in range(37):
        worker.samples.append(loading.Sample(began + ms * MS, number))
    loop.requests.append(loading.Request(9, 1, 0, asked_ns, made + MS, made + 2 * MS))
    loop.close()
    worker.close()


def _ledger():
    place = {"file": f"/home/{secret()}/{secret()}.py", "line": 7}
    stack = f'File "/home/{secret()}/x.py", line 7, in {secret()}\n    {secret()} = {secret()}()'
    compiles = [
        {"id": "0/0", "kind": "first", "code": f"{secret()}/{secret()}.py:7 {secret()}"},
        {
            "id": "0/1",
            "kind": "recompile",
            "reason": f"tensor 'L['{secret()}'].{secret()}' size mismatch at index 0. expected 4, actual 5",
            "guard": f"L['self'].{secret()} == '{secret()}'  # {secret()}.py:3 in {secret()}",
            "failed": f"RuntimeError: {secret()} at 0x7fffdeadbeef in /data/{secret()}/{secret()}",
            "phases": {secret(): 5},
            "code": f"/home/{secret()}/{secret()}.py:7 {secret()}",
        },
    ]
    compiles.append({"id": secret(), "kind": "cudagraph", "span": secret(), "pass": secret()})
    times = {"start_ns": 1_000, "end_ns": 2_000, "thread": 1}
    said = f"Unsupported: {secret()}"
    return {
        "compiles": [one | times for one in compiles],
        "breaks": [
            {"compile": "0/0", "reason": said, "stack": stack, "t_ns": 1, **place},
            {"compile": secret(), "reason": f"{secret()}\n{stack}\n    ^^^", "t_ns": 1, **place},
        ],
        "limits": [{"name": secret(), "reason": secret(), "t_ns": 2, **place}],
        "skips": [{"compile": secret(), "reason": f"skipping cudagraphs due to {secret()}", "t_ns": 3, **place}],
    }


def _variant(name, traces, **fields):
    return {
        "name": name,
        "outcome": "ok",
        "requested": {"compile": name != "eager", "backend": secret(), "options": {secret(): secret()}},
        "effective": {"mode": "default", "notes": [f"The file {secret()}.py is {secret()}."], "remarks": [secret()]},
        "params": {secret(): secret()},
        "traces": traces,
        "measured": {
            "step_ns": 9_000_000,
            "step_all_ns": [9_000_000] * 5,
            "spread_ns": 1,
            "clock": "cuda events",
            "first_steps_ns": [1, 2, 3],
        },
        "metrics": {f"{secret()} accuracy": 0.5},
        "gpu": {"name": secret(), secret(): secret()},
        "step": f"1 step of {secret()}",
        "spent": [{"stage": secret(), "seconds": 1.0}],
        "trainings": [{"seed": 1, "epochs": 1, "error": secret(), "metrics": {secret(): 0.5}}],
        "ledger": _ledger(),
        "graphs": {
            "nodes": [4],
            "edges": [5],
            "node_types": {secret(): [4]},
            "edge_types": {f"{secret()}__{secret()}": [5]},
        },
    } | fields


def write_run(folder: Path) -> Path:
    """A run of three variants, one of which has failed."""
    folder.mkdir(parents=True, exist_ok=True)
    traces = {name: write_trace(folder / "traces" / name / "steady.json.gz") for name in ("eager", "other")}
    variants = [
        _variant(name if name == "eager" else secret(), {"steady": str(path.relative_to(folder))})
        for name, path in traces.items()
    ]
    failed = _variant(secret(), {}, outcome="error", error=f"ValueError: {secret()} of {secret()} in /srv/{secret()}/x")
    document = {
        "schema": "tracekit.run/1",
        "created": "2026-11-21T09:11:27+00:00",
        "tracekit": "0.1.0",
        "recipe": secret(),
        "script": f"/home/{secret()}/{secret()}.py",
        "params": {secret(): secret(), secret(): [secret(), {secret(): secret()}]},
        "data": f"{secret()} from /data/{secret()}",
        "device": "cuda",
        "environment": {
            "torch": "2.13.0",
            "platform": f"Linux-6.1-{secret()}",
            "cpu": f"AMD {secret()}",
            "gpus": [{"name": f"NVIDIA {secret()}", secret(): secret()}],
            "variables": {"CUDA_HOME": f"/opt/{secret()}", secret(): secret()},
            "packages": {secret(): "1.0", "numpy": secret()},
            "hostname": secret(),
            secret(): secret(),
            # Keys under which a run's own texts stay elsewhere.
            **{key: secret() for key in ("stage", "clock", "outcome", "workload", "mode", "created", "trace")},
            "ranks": [secret()],
            "traces": {secret(): secret()},
            "options": {secret(): secret()},
        },
        "spent": [{"stage": secret(), "seconds": 1.0}],
        "planned": [secret()],
        "variants": [*variants, failed | {"measured": None}],
        "why_no_turns": f"because {secret()} is {secret()}",
    }
    path = folder / "run.json"
    path.write_text(json.dumps(document))
    return path
