"""A backend that does not say which lines its graphs come from: their time is given to no line, and this is said."""

from small import event, op, step, write

from tests.lines.recorded import call, of_lines, with_lines
from tracekit.engine import attribute
from tracekit.lines.ownership import Ownership
from tracekit.profile import open_subject
from tracekit.report.owner_costs import VariantOwners
from tracekit.report.sections.lines import SideBySide
from tracekit.trace import Trace
from tracekit.vocabulary.lines_file import Graph

BACKWARD = "autograd::engine::evaluate_function: CompiledFunctionBackward"


def numbered(name, start, end, forward_thread):
    return event("cpu_op", name, start, end, **{"Sequence number": 7, "Fwd thread id": forward_thread})


def compiled(path, *more, **known):
    """Line 2 calls compiled code from 10 to 40, line 3 its backward pass from 50 to 90."""
    trace = write(
        path,
        step(0, 0, 100),
        call("mine.py(1): work", 0, 100),
        call("<built-in function compiled>", 5, 45),
        event("user_annotation", "Torch-Compiled Region: 0/0", 10, 40),
        numbered("CompiledFunction", 12, 38, 0),
        *more,
        call("<built-in method run_backward>", 50, 95),
        numbered(BACKWARD, 55, 90, 1),
    )
    return with_lines(trace, {5: 2, 50: 3}, **known)


def test_its_time_is_no_lines_and_the_lines_verb_says_so(tmp_path):
    trace = compiled(tmp_path / "detail.json")
    ownership = Ownership.of(attribute(Trace.load(trace)), None)
    assert of_lines(ownership) == {1: 5, 2: 15, 3: 15}
    (profile,) = open_subject([trace]).profiles
    sentences, *_ = SideBySide([VariantOwners("compiled", profile.owner_means, "wall")]).blocks()
    assert any(each.startswith("compiled: this backend does not keep the lines") for each in sentences.lines)


def test_graphs_of_inductor_stay_at_the_line_that_calls_them(tmp_path):
    named = op("## Call CompiledFxGraph fabc ##", 15, 30)
    assert of_lines(Ownership.of(attribute(Trace.load(compiled(tmp_path / "d.json", named))), None))[2] == 45 + 35
    known = [Graph("fabc", "0/0", [("k:1", [])])]
    ownership = Ownership.of(attribute(Trace.load(compiled(tmp_path / "e.json", graphs=known))), None)
    assert of_lines(ownership)[2] == 45 + 35
