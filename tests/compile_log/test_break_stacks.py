"""On which line of a compiled function its graph breaks, if the compiler's own stack omits the function."""

import pytest

from tracekit.compile_log.ledger import ledger
from tracekit.compile_log.log import CompileLog

MINE, LIBRARY = "/home/me/model.py", "/lib/site-packages/gnn/conv.py"
FILES = {0: MINE, 1: LIBRARY}
STEP, FORWARD, CONV, NORM = ("step", 0, 20), ("forward", 0, 6), ("conv", 1, 227), ("norm", 1, 99)


def starts(log, compile_id, *frames):
    """A compilation of the innermost of these frames, each given as a function, a file number and a line."""
    stack = [{"name": name, "filename": file, "line": line, "loc": f"{name}()"} for name, file, line in frames]
    frame, attempt = compile_id.split("/")
    log.take({"dynamo_start": {"stack": stack}, "frame_id": frame, "frame_compile_id": attempt}, None, 0, 1)


def breaks(log, compile_id, *frames):
    shown = "".join(f'  File "{FILES[file]}", line {line}, in {name}\n    {name}()\n' for name, file, line in frames)
    frame, attempt = compile_id.split("/")
    text = f"Graph break in user code at {LIBRARY}:99\nGraph Break Reason: item\nUser code traceback:\n{shown}"
    metadata = {"artifact": {"name": "dynamo_graph_break_reason"}, "frame_id": frame, "frame_compile_id": attempt}
    log.take(metadata, f'{text}\nTraceback (most recent call last):\n  File "x.py", line 1, in y\n', 0, 1)


@pytest.fixture
def log():
    log = CompileLog()
    for number, file in FILES.items():
        log.take({"str": [file, number]}, None, 0, 1)
    starts(log, "0/0", STEP, FORWARD)
    breaks(log, "0/0", STEP, CONV, NORM)
    return log


def stacks(log):
    return [[line.split()[-1] for line in each.stack.splitlines() if "File" in line] for each in ledger(log, []).breaks]


def test_what_runs_after_the_break_has_the_line(log):
    assert stacks(log) == [["step", "conv", "norm"]]
    starts(log, "1/0", STEP, ("forward", 0, 8), CONV)
    assert stacks(log) == [["step", "forward", "conv", "norm"]]
    assert f'File "{MINE}", line 8, in forward' in ledger(log, []).breaks[0].stack


def test_a_function_that_resumes_is_the_one_it_resumes(log):
    starts(log, "1/0", STEP, ("forward", 0, 8), CONV)
    resumed = ("torch_dynamo_resume_in_forward_at_8", 0, 8)
    starts(log, "2/0", STEP, resumed)
    breaks(log, "2/0", STEP, CONV, NORM)
    starts(log, "1/1", STEP, ("torch_dynamo_resume_in_forward_at_8", 0, 9), CONV)
    assert f'File "{MINE}", line 9, in forward' in ledger(log, []).breaks[1].stack


def test_a_stack_that_has_the_function_stays(log):
    breaks(log, "0/0", STEP, ("forward", 0, 8), NORM)
    starts(log, "1/0", STEP, ("forward", 0, 8), CONV)
    assert stacks(log)[1] == ["step", "forward", "norm"]


def test_what_compiles_elsewhere_tells_nothing(log):
    starts(log, "0/1", STEP, FORWARD)  # the same function anew
    starts(log, "3/0", STEP, ("other", 0, 30), CONV)
    starts(log, "4/0", STEP, ("forward", 1, 8), CONV)  # a function of another file
    assert stacks(log) == [["step", "conv", "norm"]]
