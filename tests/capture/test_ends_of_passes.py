"""A pass that fails, dies or takes too long says why."""

import time
from inspect import signature

import pytest
import torch
from torch._dynamo.exc import BackendCompilerFailed

from tests.capture.capturing import COMPILED, FAILING, perform
from tracekit.capture.child import memory
from tracekit.capture.child.failures import one_line, outcome


def test_a_pass_that_takes_too_long_is_stopped(tmp_path, write_recipe):
    recipe = write_recipe("import time\ntime.sleep(600)")
    started = time.monotonic()
    result = perform(tmp_path, "measure", recipe, timeout=1)
    assert (result.outcome, result.error) == ("timeout", "took longer than 1 s")
    assert time.monotonic() - started < 60


def in_the_compiler(error: Exception) -> BackendCompilerFailed:
    """The error as the compiler passes it on: in some versions with what the user's code did, in others without."""
    without_more = len(signature(BackendCompilerFailed).parameters) == 2
    return BackendCompilerFailed(print, error, *(() if without_more else (None,)))


@pytest.mark.parametrize(
    ("ending", "outcome", "error"),
    [
        ("os.kill(os.getpid(), 9)", "crash", "killed, perhaps because memory ran out"),
        ("os.abort()", "crash", "died of SIGABRT"),
        ("os._exit(3)", "crash", "ended with exit code 3 and no answer"),
        ("sys.exit('enough')", "error", "SystemExit: enough"),
        ("import nowhere", "error", "ModuleNotFoundError: No module named 'nowhere'"),
        ("1 +", "error", "SyntaxError: invalid syntax (recipe.py, line 1)"),
        ("bytearray(1 << 62)", "oom", "MemoryError: out of memory: "),
        ("import torch; torch.empty(1 << 60)", "oom", "RuntimeError: out of memory: 4,194,304 TiB asked for, "),
    ],
)
def test_a_pass_that_dies_says_of_what(tmp_path, write_recipe, ending, outcome, error):
    line = ending if ending == "1 +" else f"import os, sys; {ending}"
    result = perform(tmp_path, "inspect", write_recipe(line))
    assert result.outcome == outcome
    assert result.error is not None
    assert (result.error[: len(error)] if outcome == "oom" else result.error) == error


def test_memory_that_ran_out_is_known_through_what_wraps_it():
    assert outcome(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 16.00 TiB")) == "oom"
    assert outcome(RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")) == "oom"
    assert outcome(BackendCompilerFailed(print, torch.OutOfMemoryError("no more"), None)) == "oom"
    assert outcome(ValueError("the memory of this is out of order")) == "error"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            torch.OutOfMemoryError(
                "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which "
                "12.20 GiB is free. Process 7 has 66.9 GiB memory in use."
            ),
            "OutOfMemoryError: out of memory: 20.00 GiB asked for, 12.20 GiB free on the GPU",
        ),
        (
            RuntimeError(
                "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 15.78 GiB total capacity; 14.06 GiB already "
                "allocated; 700.00 MiB free; 14.1 GiB reserved in total by PyTorch)"
            ),
            "RuntimeError: out of memory: 2.00 GiB asked for, 700.00 MiB free on the GPU",
        ),
        (
            RuntimeError(
                "[enforce fail at alloc_cpu.cpp:121] . DefaultCPUAllocator: can't allocate memory: you tried to "
                "allocate 4398046511104 bytes. Error code 12 (Cannot allocate memory)"
            ),
            "RuntimeError: out of memory: 4.00 TiB asked for, 3.00 GiB free on the host",
        ),
        (
            MemoryError("Unable to allocate 7.28 TiB for an array with shape (1000000000000,) and data type float64"),
            "MemoryError: out of memory: 7.28 TiB asked for, 3.00 GiB free on the host",
        ),
        (MemoryError(), "MemoryError: out of memory: 3.00 GiB free on the host"),
        (
            in_the_compiler(MemoryError("std::bad_alloc")),
            "MemoryError: out of memory: 3.00 GiB free on the host",
        ),
    ],
)
def test_what_was_free_is_said_beside_what_was_asked_for(monkeypatch, error, said):
    monkeypatch.setattr(memory, "free_on_host", lambda: 3 << 30)
    assert (outcome(error), one_line(error)) == ("oom", said)


def test_where_nothing_is_known_of_memory_the_error_speaks_for_itself(monkeypatch):
    monkeypatch.setattr(memory, "free_on_host", lambda: None)
    assert one_line(RuntimeError("no: out of memory")) == "RuntimeError: no: out of memory"


def test_batches_that_end_are_told(tmp_path, write_recipe):
    text = "from types import SimpleNamespace\ndef setup(ctx): return SimpleNamespace(step=id, batches=iter([1, 2]))"
    result = perform(tmp_path, "measure", write_recipe(text))
    assert "batches are empty, or can be iterated only once" in result.error


def test_a_model_that_nobody_compiles_is_told(tmp_path, write_recipe):
    result = perform(tmp_path, "profile", write_recipe(FAILING), requested=COMPILED, steps=1, warmup=0)
    assert result.effective.mode == "eager"
    assert "does the recipe pass its model through ctx.compile?" in result.effective.notes[0]
