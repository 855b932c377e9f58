"""True pairs: what-if foretells a step from the trace of its twin, and only then is the step itself recorded."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tests.gpu.claims import Claims, near
from tests.gpu.taking import Taken, take

_STEPS, _WARMUP, _UNRECORDED = 20, 10, 20
_ROUNDS = 4  # in turns: a virtual machine's host changes its pace by a third from one recording to the next
_LOADED_MS = 3.0
_SLACK = 0.02  # two traces of the same step differ by as much, or by more if two do


@dataclass(frozen=True)
class Pair:
    """Two ways to do the same; `change` is a part of the row that foretells the second."""

    name: str
    change: str
    before: Callable[[], Any]
    after: Callable[[], Any]


def check(claims: Claims) -> None:
    """Foretell, record, compare."""
    for pair in _pairs():
        before = _taken(claims, f"{pair.name}-before", pair.before)
        was = sum(before.wall.values())
        rows = _foretold(before.path)
        row = next((row for row in rows if pair.change in row["if"]), None)
        if row is None:
            claims.that(False, f"pair {pair.name}: is foretold", rows=[row["if"] for row in rows], was_ms=round(was, 3))
            continue
        best, worst = (row[name] / 1e6 / was for name in ("best_ns", "worst_ns"))
        claims.note(f"pair {pair.name}: {was:.3f} ms a step, then {best:.3f} to {worst:.3f} of it")
        taken = {"was_ms": [was], "is_ms": list[float]()}
        for ms, step in (("is_ms", pair.after), *(("was_ms", pair.before), ("is_ms", pair.after)) * (_ROUNDS - 1)):
            taken[ms].append(sum(_taken(claims, f"{pair.name}-{ms}", step).wall.values()))
        seen = median(taken["is_ms"]) / median(taken["was_ms"])
        slack = max(_SLACK, *(max(each) / min(each) - 1 for each in taken.values()))
        figures = {name: round(share, 3) for name, share in (("best", best), ("worst", worst), ("seen", seen))}
        figures |= {name: [round(each, 3) for each in ms] for name, ms in taken.items()}
        holds = best * (1 - slack) < seen < worst * (1 + slack)
        claims.that(holds, f"pair {pair.name}: is as foretold", **figures)
    _recompiling(claims)


def _taken(claims: Claims, name: str, step: Callable[[], Any]) -> Taken:
    for _ in range(_UNRECORDED):
        step()
    return take(claims, name, step, _STEPS, _WARMUP)


def _foretold(path: Path) -> list[dict[str, Any]]:
    from tracekit.analyses.what_if import answer
    from tracekit.profile import open_subject

    (profile,) = open_subject([path]).profiles
    rows: list[dict[str, Any]] = answer(profile).table.to_pylist()
    return rows


def _pairs() -> Iterator[Pair]:
    import torch

    eager, training = _training(waits=0), _training(waits=0)
    yield Pair("graph", "were one CUDA graph", eager, _as_a_graph(training))
    yield Pair("syncs", "for the GPU went", *(_training(waits, nodes=200_000) for waits in (4, 0)))
    slow, quick = (_loading(ms) for ms in (_LOADED_MS, 0.0))
    yield Pair("loading", "batches were always ready", slow, quick)
    pageable, pinned = (torch.randn(4096, 2048) for _ in range(2))
    yield Pair("copies", "pinned memory", _copying(pageable), _copying(pinned.pin_memory()))


def _training(waits: int, nodes: int = 20_000) -> Callable[[], Any]:
    """A step of a GCN on a graph of so many nodes, with so many waits for the GPU in it."""
    import torch
    from torch.nn.functional import cross_entropy
    from torch_geometric.nn import GCNConv

    torch.manual_seed(0)
    x = torch.randn(nodes, 64, device="cuda")
    edges = torch.randint(nodes, (2, 5 * nodes), device="cuda")
    y = torch.randint(16, (nodes,), device="cuda")
    layers = torch.nn.ModuleList(GCNConv(64, 64, normalize=False) for _ in range(4)).cuda()
    optimizer = torch.optim.Adam(layers.parameters(), lr=0.01, capturable=True)

    def step() -> Any:
        hidden = x
        for number, layer in enumerate(layers):
            hidden = layer(hidden, edges).relu()
            if number < waits:
                hidden.sum().item()
        loss = cross_entropy(hidden, y)
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def _as_a_graph(step: Callable[[], Any]) -> Callable[[], Any]:
    import torch

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def _loading(ms: float) -> Callable[[], Any]:
    """A step that takes a batch from a loader which needs so long for it."""
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Batches(Dataset[Any]):
        def __len__(self) -> int:
            return 1_000_000

        def __getitem__(self, index: int) -> Any:
            end = time.perf_counter() + ms / 1e3
            while time.perf_counter() < end:
                pass
            return torch.ones(64)

    batches = iter(DataLoader(Batches(), batch_size=None))
    step = _training(waits=0)

    def loaded() -> None:
        next(batches).to("cuda")
        step()

    return loaded


def _copying(source: Any) -> Callable[[], Any]:
    """A step that copies a batch before it computes."""
    step = _training(waits=0)

    def copied() -> None:
        source.to("cuda", non_blocking=True)
        step()

    return copied


def _recompiling(claims: Claims) -> None:
    """What compiling costs is what a step takes less without it."""
    import torch

    torch._dynamo.config.cache_size_limit = 256
    sizes = iter(range(33, 9999))
    made = torch.compile(lambda x: (x.sin() * 2 + 1).sum(), dynamic=False)
    before = take(claims, "recompiling", lambda: made(torch.ones(next(sizes), device="cuda")), 6, 2)
    same = torch.ones(32, device="cuda")
    after = take(claims, "not-recompiling", lambda: made(same), 6, 2)
    was, seen = sum(before.wall.values()), sum(after.wall.values())
    left = was - before.wall["compile"]
    figures = {"was_ms": round(was, 2), "left_ms": round(left, 2), "seen_ms": round(seen, 2)}
    claims.that(
        near(was - seen, before.wall["compile"], 0.05), "pair recompiling: saves what compiling took", **figures
    )
