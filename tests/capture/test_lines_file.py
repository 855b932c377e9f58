"""The file beside a trace with stacks: the lines of the user's calls, and the owners of compiled kernels."""

import gzip
import sys
from types import SimpleNamespace

import pytest

from tests.capture.capturing import COMPILED, perform
from tracekit.capture.child import event_tree
from tracekit.compile_log.log import Provenance
from tracekit.trace import Trace
from tracekit.trace.roles import PYTHON
from tracekit.vocabulary import lines_file

_STACKS = "inductor_provenance_tracking_kernel_stack_traces"
RECIPE = """\
from types import SimpleNamespace
import torch


def twice(x):
    y = x * 2
    return y.sum() + 1


def setup(ctx):
    layer = torch.nn.Linear(4, 4)

    def step():
        loss = twice(layer(torch.randn(3, 4)))
        loss.backward()
        return loss.detach()

    return SimpleNamespace(step=step)
"""


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lines")
    recipe = folder / "lined.py"
    recipe.write_text(RECIPE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(
            "TRACEKIT_VERIFY", "1"
        )  # a new interpreter: in a forked one, the server's frames are recorded, too
        result = perform(folder, "profile", recipe, steps=2, warmup=4)
    assert result.outcome == "ok", result.traceback
    lines = lines_file.read(folder / "detail.json.gz")
    assert lines is not None
    return SimpleNamespace(folder=folder, recipe=recipe, lines=lines)


def test_every_call_has_its_line(captured):
    lines, recipe = captured.lines, str(captured.recipe)
    calls = [(*lines.callers[caller], line) for caller, line in zip(lines.call_caller, lines.call_line, strict=True)]
    assert set(calls) == {(recipe, *each) for each in (("step", 14), ("step", 15), ("step", 16), ("twice", 7))}
    assert lines.sources[recipe] == RECIPE


def test_calls_start_when_the_trace_says(captured):
    trace = Trace.load(captured.folder / "detail.json.gz")
    frames = {trace.meta["baseTimeNanoseconds"] + start for start in trace.ts_ns[trace.roles.kind == PYTHON].tolist()}
    assert len(captured.lines.call_start_ns) == 3 * 6  # three steps
    assert frames.issuperset(captured.lines.call_start_ns)


def test_marks_are_of_the_users_lines(captured):
    lines, recipe = captured.lines, str(captured.recipe)
    assert {lines.callers[caller] for caller, _ in lines.mark_places} == {(recipe, "step"), (recipe, "twice")}
    assert {line for _, line in lines.mark_places} >= {6, 7, 14, 15, 16}
    assert [mark.ns for mark in lines.marks] == sorted(mark.ns for mark in lines.marks)


def test_lines_without_a_call_are_marked_and_dynamo_does_not_notice(tmp_path):
    loop = "        count = 0\n        while count < 200_000:\n            count += 1\n"
    recipe = tmp_path / "looping.py"
    recipe.write_text(
        RECIPE.replace("        loss = twice", f"{loop}        loss = twice").replace(
            "layer = torch.nn.Linear(4, 4)", "layer = ctx.compile(torch.nn.Linear(4, 4))"
        )
    )
    result = perform(tmp_path, "profile", recipe, steps=2, warmup=4, requested=COMPILED)
    assert result.outcome == "ok", result.traceback
    steady = lines_file.marked_path(tmp_path / "steady.json.gz")
    first = recipe.read_text().splitlines().index("        count = 0") + 1
    for trace in (steady if steady.exists() else tmp_path / "steady.json.gz", tmp_path / "detail.json.gz"):
        assert {first + 1, first + 2} <= {line for _, line in lines_file.read(trace).mark_places}
    assert {each.during for each in result.ledger.compiles} == {"cold"}
    assert not result.ledger.breaks


def test_functions_have_full_paths_and_owners(captured):
    owners = {each.owner for each in captured.lines.functions}
    users_functions = {each.name: each.file for each in captured.lines.functions if each.owner == "user"}
    assert users_functions == {"lined.py(5): twice": str(captured.recipe), "lined.py(13): step": str(captured.recipe)}
    assert {"torch", "tracekit"} <= owners


def test_every_trace_but_that_of_the_first_steps_has_marks(captured):
    steady = captured.folder / "steady.json.gz"
    # Before Python 3.12, marks would slow the steady steps down, so others have them.
    assert (lines_file.read(steady) is None) == (sys.version_info < (3, 12))
    assert lines_file.marked_path(steady).exists() == (sys.version_info < (3, 12))
    assert lines_file.read(captured.folder / "cold.json.gz") is None


def test_each_function_has_its_lines():
    code = {each.function: each for each in event_tree.of_file("lined.py", RECIPE)}
    assert {6, 7} <= set(code["twice"].lines)
    assert code["twice"].line == 5


def test_a_file_that_is_not_python_has_no_functions():
    assert event_tree.of_file("broken.py", "def (:") == []
    assert event_tree.of_file("zero.py", "\0") == []


def test_stacks_and_key_of_a_graph_are_joined():
    provenance = Provenance()
    stacks = {"artifact": {"name": "inductor_provenance_tracking_kernel_stack_traces"}}
    provenance.take(stacks, '{"k:1": ["File \\"a.py\\", line 3, in f"]}', "0/0", 1)
    provenance.take({"artifact": {"name": "fx_graph_cache_miss"}}, '{"key": "fabc"}', "0/0", 1)
    provenance.take({"artifact": {"name": "fx_graph_cache_hit"}}, '{"key": "fdef"}', "0/1", 1)  # nothing was reported
    assert provenance.graphs == [lines_file.Graph("fabc", "0/0", [("k:1", ['File "a.py", line 3, in f'])])]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b'{"schema": "tracekit.lines/9"}',
        b'{"schema": "tracekit.lines/1", "call_start_ns": [1], "call_caller": [0], "call_line": [1]}',
        b'{"schema": "tracekit.lines/1", "call_start_ns": [1], "call_caller": [-1], "call_line": [1]}',
        b'{"schema": "tracekit.lines/1", "callers": [["a", "f"]], "mark_places": [[1, 1]]}',
        b'{"schema": "tracekit.lines/1", "callers": [["a", "f"]], "mark_places": [[0, -1]]}',
        b'{"schema": "tracekit.lines/1", "marks": [[1, 0, 1]]}',
        b'{"schema": "tracekit.lines/1", "code": [["a", 1, "f", [], []]]}',
        b'{"schema": "tracekit.lines/1", "call_start_ns": [1' + b"0" * 40 + b'], "call_caller": [0], "call_line": [1]}',
    ],
)
def test_what_cannot_be_understood_counts_as_none(tmp_path, content):
    (tmp_path / "detail.lines.json.gz").write_bytes(gzip.compress(content))
    assert lines_file.read(tmp_path / "detail.json.gz") is None
    (tmp_path / "detail.lines.json.gz").write_bytes(content)
    assert lines_file.read(tmp_path / "detail.json.gz") is None
