"""No trace, however broken, may cause a traceback, a hang, or an answer that does not add up.

TRACEKIT_FUZZ says how many examples each test tries (default 150 each).
"""

import gzip
import json
import os
import random
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pieces import SEEDS, mutated

from tracekit.engine import attribute
from tracekit.errors import TracekitError
from tracekit.faces.shared.document import attribution
from tracekit.trace import Trace

TRIES = int(os.environ.get("TRACEKIT_FUZZ", "150"))
FUZZED = settings(max_examples=TRIES, deadline=10_000, suppress_health_check=list(HealthCheck))


def check(path: Path) -> None:
    """Check that reading ends with a one-sentence error, or with an answer that adds up."""
    try:
        trace = Trace.load(path, use_cache=False)
    except TracekitError:
        return
    attributed = attribute(trace)
    json.dumps(attribution(attributed))
    if "wall" not in attributed.cannot_answer:
        assert (attributed.wall.sum(axis=1) == attributed.wall_ns)[attributed.wall_known].all()
    if "host" not in attributed.cannot_answer:
        assert (attributed.host.sum(axis=1) == attributed.host_ns)[attributed.host_known].all()
    for name in ("lost", "mended"):
        assert getattr(trace, name) >= 0


@pytest.mark.traces
@FUZZED
@given(seed=st.integers(0, 2**40))
def test_bytes_of_real_traces(seed: int, shared_traces: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    rnd = random.Random(seed)
    packed = (shared_traces / f"{rnd.choice(SEEDS)}.json.gz").read_bytes()
    path = tmp_path_factory.getbasetemp() / "mutated.json"
    if rnd.random() < 0.25:
        path.write_bytes(mutated(packed, rnd))
    else:
        broken = mutated(gzip.decompress(packed), rnd)
        path.write_bytes(zlib.compress(broken, 1, 31) if rnd.random() < 0.2 else broken)
    check(path)


NUMBERS = st.one_of(
    st.integers(-5, 50),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([0, -1, 10**30, 1e308, 5e-324, 1712195495561301.842, 9.3e12]),
)
ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=6)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)
NAMES = [
    "aten::mm",
    "cudaLaunchKernel",
    "cudaStreamSynchronize",
    "ProfilerStep#3",
    "ProfilerStep#4",
    'a "b"',
    "gemm",
    "ü\x01",
]
CATS = ["cpu_op", "cuda_runtime", "kernel", "gpu_memcpy", "user_annotation", "python_function", "overhead", "Kernel"]


def maybe(usual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(usual, usual, usual, usual, ANYTHING)


EVENT = st.fixed_dictionaries(
    {"ph": maybe(st.sampled_from(["X", "X", "X", "M", "s"])), "name": maybe(st.sampled_from(NAMES))},
    optional={
        "cat": maybe(st.sampled_from(CATS)),
        "pid": maybe(st.integers(0, 2)),
        "tid": maybe(st.integers(0, 2)),
        "ts": maybe(st.integers(0, 60)),
        "dur": maybe(st.integers(0, 60)),
        "args": maybe(
            st.dictionaries(
                st.sampled_from(["correlation", "External id", "external id", "stream", "bytes", "name"]),
                maybe(st.integers(-1, 4)),
                max_size=3,
            )
        ),
    },
)
EVENTS = maybe(st.lists(st.one_of(*[EVENT] * 9, ANYTHING), max_size=25))
DOCUMENT = st.one_of(
    EVENTS, st.fixed_dictionaries({"schemaVersion": ANYTHING, "traceEvents": EVENTS, "traceName": ANYTHING})
)


@FUZZED
@given(
    document=DOCUMENT,
    indent=st.sampled_from([None, None, 0, 2]),
    cut=st.one_of(st.none(), st.none(), st.floats(0, 1)),
    escaped=st.booleans(),
)
def test_structures(
    document: object, indent: int | None, cut: float | None, escaped: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = json.dumps(document, indent=indent, ensure_ascii=escaped).encode("utf-8", "surrogatepass")
    path = tmp_path_factory.getbasetemp() / "made.json"
    path.write_bytes(text if cut is None else text[: int(len(text) * cut)])
    check(path)
