"""Python frames as text, in the three forms in which they are written."""

import pytest

from tracekit.vocabulary.code_owner import PythonFrame, plain_function, profiled, stacked


@pytest.mark.parametrize(
    ("name", "frame"),
    [
        ("train.py(12): main", PythonFrame("train.py", 12, "main")),
        ("a (2)/b.py(3): <lambda>", PythonFrame("a (2)/b.py", 3, "<lambda>")),
        ("<string>(3): f", PythonFrame("<string>", 3, "f")),
        ("<built-in method relu>", None),
        ("nn.Module: Linear_0", None),
    ],
)
def test_as_the_profiler_writes_it(name, frame):
    assert profiled(name) == frame


def test_as_a_stack_has_it():
    stack = '  File "a.py", line 3, in <module>\n    run()\n  File "/b c/d.py", line 40, in run\n    x + 1\n'
    assert stacked(stack) == [PythonFrame("a.py", 3, "<module>"), PythonFrame("/b c/d.py", 40, "run")]


def test_a_function_that_dynamo_resumes_is_the_function():
    assert plain_function("torch_dynamo_resume_in_forward_at_16") == "forward"
    assert plain_function("forward") == "forward"
