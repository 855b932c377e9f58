"""The lines that `tracekit audit` says would wait, on a GPU that it emulates, wait on the fake one, and no others do.

CUPTI calls back whenever the host enters the runtime, and the stack of the thread that takes the steps tells where.
"""

import ctypes
import os
import sys
import threading
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest

if "FAKECUDA" not in os.environ:
    pytest.skip("needs the fake GPU: make verify-cuda", allow_module_level=True)

import torch

from tests.capture.test_audit_notices import COPIES, NO_WAITS, WAITS
from tracekit.capture.audit.child import audit
from tracekit.capture.child import recipe
from tracekit.capture.job import Job
from tracekit.capture.options import plan_variants

RECIPES = Path(__file__).parents[2] / "recipes"
STEPS = 3
RUNTIME, ENTER = 2, 0  # CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_API_ENTER
WAITING = ("cudaStreamSynchronize", "cudaEventSynchronize", "cudaDeviceSynchronize", "cudaMemcpy")
# Sizes that depend on what kernels have computed are none here, so that these cannot be compared.
CASES = [
    ("gcn_cora", "eager", {}),
    ("gcn_cora", "eager-norm", {}),
    ("gat_pubmed", "eager", {"scale": 0.03}),
    ("rgcn_mag", "eager", {"scale": 0.0005, "hidden": 8}),
    ("rgcn_mag", "typed-eager", {"scale": 0.0005, "hidden": 8}),
    ("hetero_parts", "eager", {"scale": 0.1, "hidden": 8}),
    ("sage_products", "eager", {"scale": 0.001, "batch": 40}),
    ("gin_molecules", "eager", {"scale": 0.04, "batch": 32}),
    ("gcn_sampled", "sampled", {"batch": 20}),
    ("gcn_sampled", "sampled-amp", {"batch": 20}),
    ("gcn_amp", "fp16", {}),
    ("gcn_amp", "bf16", {}),
    ("growing_graph", "eager", {"nodes": 400}),
    ("pathologies/syncs", "metric", {"nodes": 200}),
    ("pathologies/syncs", "mean-metric", {"nodes": 200}),
    ("pathologies/syncs", "mask", {"nodes": 200}),
    ("pathologies/syncs", "after", {"nodes": 200}),
]


# There is no solver, and no mask of the GPU has a true value. Versions of torch before 2.13 wait for a mask on the CPU.
LEFT_OUT = ("inverse", "put by a mask", "mask on the CPU")
WAITING_CALLS = {name: call for name, call in {**WAITS, **COPIES}.items() if name not in LEFT_OUT}
OTHERS = {name: call for name, call in NO_WAITS.items() if name != "indices"}  # which are made within the call


class Called(ctypes.Structure):
    """The beginning of CUpti_CallbackData."""

    _fields_ = (("site", ctypes.c_int), ("function", ctypes.c_char_p))


@pytest.mark.parametrize(("name", "variant", "params"), CASES, ids=str)
def test_what_it_lists_waits_and_nothing_else(name, variant, params):
    program = str(RECIPES / f"{name}.py")
    job = Job(stage="audit", program=program, label=variant, params=params, steps=STEPS, device="cuda")
    waited = _waited(job)
    result = audit(job, [])
    assert result.outcome == "ok", result.error
    listed = Counter()
    for row in result.audit.rows:
        if row.kind in {"sync", "copy"} and row.count:
            listed[row.line] += row.count
    assert waited == listed


@pytest.fixture
def x():
    return torch.arange(6, device="cuda", dtype=torch.float)


@pytest.mark.parametrize(("call", "_"), WAITING_CALLS.values(), ids=WAITING_CALLS)
def test_what_is_known_to_wait_does(x, call, _):
    assert _waits_in(call, x)


@pytest.mark.parametrize("call", OTHERS.values(), ids=OTHERS)
def test_what_is_known_not_to_wait_does_not(x, call):
    assert not _waits_in(call, x)


def _waits_in(call, x):
    seen = []
    with _calls(seen.append):
        call(x)
    return [name for name in seen if name in WAITING]


def _waited(job):
    """How often each line of the recipe waits in the steps after the first."""
    module = recipe.load(job.program)
    declared = {**module.PARAMS, **job.params}
    planned = plan_variants([job.label], declared, getattr(module, "VARIANTS", {}), "inductor")[0]
    job = Job(**{**_fields(job), "params": {**job.params, **planned.params}})
    recipe.seed_all(0)
    feed = recipe.RecipeStep(module, recipe.make_context(module, job, []))
    feed()
    torch.cuda.synchronize()
    lines = Counter()
    with _calls(lambda name: name in WAITING and lines.update([_line(job.program)])):
        for _ in range(job.steps):
            feed()
    return lines


def _fields(job):
    from msgspec.structs import asdict

    return {**asdict(job), "requested": type(job.requested)(compile=False)}


def _line(program):
    """The line of the recipe at which the main thread is, whichever thread waits."""
    frame = sys._current_frames()[threading.main_thread().ident]
    while frame.f_code.co_filename != program:
        frame = frame.f_back
    return frame.f_lineno


@contextmanager
def _calls(of):
    """Call `of` with the name of each function of the runtime that is entered."""
    cupti = ctypes.CDLL("libcupti.so.13")
    handle = ctypes.c_void_p()

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.POINTER(Called))
    def called(_, domain, number, data):
        if data.contents.site == ENTER:
            of(data.contents.function.decode())

    assert not cupti.cuptiSubscribe(ctypes.byref(handle), called, None)
    try:
        assert not cupti.cuptiEnableDomain(1, handle, RUNTIME)
        yield
    finally:
        cupti.cuptiEnableDomain(0, handle, RUNTIME)
        cupti.cuptiUnsubscribe(handle)
