"""A function that recompiles in every step is reported as such, and its ledger is on the trace's clock."""

from tests.gpu.claims import Claims
from tests.gpu.rows import Rows
from tests.gpu.taking import take

_ROOTS = ("dynamo", "entire_frame_compile")
_FEW_MS = 5.0


def check(claims: Claims) -> None:
    """Run two steps, each of a new size."""
    import torch

    from tracekit.capture.compiler import CompileRecorder

    sizes = iter(range(33, 999))
    backend = "inductor" if claims.on_gpu else "aot_eager"
    made = torch.compile(lambda x: (x.sin() * 2 + 1).sum(), dynamic=False, backend=backend)
    torch._dynamo.config.cache_size_limit = 64
    with CompileRecorder() as recorder:
        made(torch.ones(32, device=claims.device))
        taken = take(claims, "recompile", lambda: made(torch.ones(next(sizes), device=claims.device)), 2, 1)
    compiling = [step["wall"]["compile"] / step["wall_ns"] for step in taken.variant["steps"] if step["wall"]]
    shares = [round(share, 2) for share in compiling]
    claims.that(len(compiling) == 2 and min(compiling) > 0.5, "recompile: named as such", shares=shares)
    apart = _apart_ms(taken.rows, [span.start_ns for span in recorder.compiled if span.name in _ROOTS][-2:])
    claims.that(apart and max(apart) < _FEW_MS, "recompile: the ledger is on the trace's clock", ms_apart=apart)


def _apart_ms(rows: Rows, recorded: list[int]) -> list[float]:
    base = rows.trace["baseTimeNanoseconds"]
    there = rows.by["cpu_op"] + rows.by["user_annotation"]
    starts = [base + row["ts"] * 1000 for row in there if row["name"] in _ROOTS or "compile_inner" in row["name"]]
    return [round(min(abs(start - at) for start in starts) / 1e6, 3) for at in recorded] if starts else []
