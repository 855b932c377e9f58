"""A log that TORCH_TRACE wrote, beside a trace of the same process."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random

import small

from tests.fuzz import verbs
from tests.fuzz.mutation import changed
from tests.fuzz.targets import changed_packed

WORDS = (
    *("chromium_event", "artifact", "dynamo_start", "dynamo_output_graph", "compilation_metrics", "str", "stack"),
    *("inductor_provenance_tracking_kernel_stack_traces", "fx_graph_cache_miss", "dynamo_graph_break_reason"),
    *("recompile_reasons", "inductor_post_grad_graph", "inductor_output_code", "bwd_compilation_metrics", "frame_id"),
    *("frame_compile_id", "cudagraph_skip_reason", "entire_frame_compile_time_s", "start_time_us", "co_filename"),
    *("skipping cudagraphs due to x", "User code traceback:\n", '  File "/m.py", line 8, in f\n', "dynamo", "B", "E"),
    *(
        "# File: /m.py:7 in forward, code: x",
        "def call(args):",
        "    triton_fused_0.run(x)",
        "# AOT ID: ['0_backward']",
    ),
)
_HEAD = "V1122 01:19:27.696000 1 torch/_dynamo/utils.py:2350] "
_STACK = 'File "/home/me/model.py", line 7, in forward\n    return x.sin()'
_BREAK = f"Graph break in user code at /home/me/model.py:8\nReason: print\nUser code traceback:\n  {_STACK}\n"
_GRAPH = (
    '    # File: /home/me/model.py:7 in forward, code: x.sin()\n    sin: "f32[8]" = torch.ops.aten.sin.default(x)\n'
)
_CODE = """# AOT ID: ['0_forward']
# %sin : [num_users=1] = call_function
cpp_fused_sin_0 = async_compile.cpp_pybinding(x)
def call(args):
    # Topologically Sorted Source Nodes: [sin], Original ATen: [aten.sin]
    cpp_fused_sin_0(x, y)
    extern_kernels.mm(x, y)
"""


def seeds() -> Iterator[bytes]:
    ids = {"frame_id": 0, "frame_compile_id": 0}
    metrics = {"compile_id": "0/0", "co_filename": "/home/me/model.py", "co_firstlineno": 6, "co_name": "forward"}
    timed = {**metrics, "start_time": 1.0, "entire_frame_compile_time_s": 0.03, "backend_compile_time_s": 0.01}
    frame = {"filename": 1, "line": 7, "name": "forward", "loc": "x.sin()"}
    begin, end = ({"name": "dynamo", "ph": ph, "ts": 1e6, "args": {"compile_id": "0/0"}} for ph in "BE")

    def artifact(name: str, payload: object) -> tuple[object, object]:
        return {"artifact": {"name": name, "encoding": "string"}, **ids}, payload

    yield _log(
        [
            ({"str": ["/home/me/model.py", 1]}, None),
            ({"chromium_event": {}, **ids}, begin),
            ({"dynamo_start": {"stack": [frame, {**frame, "name": "f"}]}, **ids}, None),
            artifact("dynamo_graph_break_reason", _BREAK),
            ({"dynamo_output_graph": {}, **ids}, _GRAPH),
            ({"inductor_post_grad_graph": {}, **ids}, _GRAPH),
            ({"inductor_output_code": {"filename": "/c.py"}, **ids}, _CODE),
            artifact("inductor_provenance_tracking_kernel_stack_traces", {"cpp_fused_sin_0:1": [_STACK]}),
            artifact("fx_graph_cache_miss", {"key": "fabc"}),
            ({"compilation_metrics": metrics, **ids}, None),
            ({"chromium_event": {}, **ids}, {**end, "ts": 2e6}),
            ({"chromium_event": {}, "frame_id": 0, "frame_compile_id": 1}, {**begin, "ts": 3e6}),
            artifact("recompile_reasons", ["0/0: x.shape[0] == 3"]),
            ({"chromium_event": {}, "frame_id": 0, "frame_compile_id": 1}, {**end, "ts": 4e6}),
        ]
    )
    yield _log([({"compilation_metrics": timed, **ids}, None), ({"bwd_compilation_metrics": timed, **ids}, None)])
    yield _log([({"artifact": None, "compilation_metrics": None, **ids}, json.dumps(timed))] * 2)


def change(data: bytes, random: Random) -> bytes:
    return changed_packed(data, random, _changed_log)


def take(data: bytes, folder: Path) -> None:
    trace, log = folder / "trace.json", folder / "some.log"
    if not trace.exists():
        events = (
            *(small.step(number, 1e6 * number, 1e6 * number + 9e5) for number in range(1, 4)),
            small.op("## Call CompiledFxGraph fabc ##", 1e6 + 20, 1e6 + 80),
            small.event("cpu_op", "cpp_fused_sin_0", 1e6 + 30, 1e6 + 70),
        )
        small.write(trace, *events)
    log.write_bytes(data)
    verbs.run("report", trace, "--compile-log", log, "--full", "--no-cache")


def _log(records: Iterable[Sequence[object]]) -> bytes:
    lines: list[str] = []
    for metadata, payload in records:
        lines.append(_HEAD + json.dumps(metadata))
        text = payload if isinstance(payload, str) else json.dumps(payload, indent=1)
        lines += [] if payload is None else [f"\t{line}" for line in text.split("\n")]
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")


def _changed_log(data: bytes, random: Random) -> bytes:
    """The log with other records, or another one among them."""
    records: list[list[object]] = []
    for record in data.decode("utf-8", "replace").split(_HEAD)[1:]:
        metadata, *payload = record.rstrip("\n").split("\n\t")
        text = "\n".join(payload)
        is_json = bool(payload) and text[:1] in ("{", "[")
        records.append([json.loads(metadata), json.loads(text) if is_json else text if payload else None])
    return _log(changed(records, random, WORDS))
