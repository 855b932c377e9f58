"""A line that calls an operator again and again is told with its calls, and is to be vectorised."""

import pytest
from small import event, op, step, write

from tests.lines.recorded import FILE, SOURCE, call, with_lines
from tracekit.findings import diagnose
from tracekit.findings.loops import busiest_line
from tracekit.lines.calls import known_calls
from tracekit.profile import open_subject
from tracekit.report.owner_costs import VariantOwners
from tracekit.report.sections.lines import SideBySide
from tracekit.vocabulary.lines_file import Code

CODE = [Code(FILE, 1, "work", [2, 3, 4])]


def profile_of(path, loop, calls, *around):
    """Two steps in which line 2 runs so many of these operators, and line 4 one more."""
    events, lines = [], {}
    for number in range(2):
        at = number * 40_000
        last = at + 30 * calls + 20
        events += [step(number, at, last + 200), call("mine.py(1): work", at, last + 200)]
        events += [
            call("<built-in function slow>", at + 10, last),
            call("<built-in function fast>", last + 50, last + 150),
        ]
        for k in range(calls):
            start = at + 12 + 30 * k
            events += [op(loop, start, start + 28), op("aten::_local_scalar_dense", start + 5, start + 20)]
        events += [event(cat, name, at + 11, last - 1) for cat, name in around]
        events.append(op("aten::relu", last + 60, last + 140))
        lines |= {at + 10: 2, last + 50: 4}
    trace = with_lines(write(path, *events), lines, code=CODE, sources={FILE: SOURCE})
    (profile,) = open_subject([trace], mine=["mine.py"]).profiles
    return profile


def test_outermost_operators_are_counted_by_line(tmp_path):
    profile = profile_of(tmp_path / "t.json", "aten::item", 1_037)
    found = {one.lines[0].line: one for one in known_calls(profile.ownership, profile.counted)}
    assert [(line, one.in_words, one.looped) for line, one in sorted(found.items())] == [
        (2, "1,037 × .item()", 1_037.0),
        (4, "1 × aten::relu", 1.0),
    ]
    owners = VariantOwners(profile.name, profile.owner_means, "wall", [*found.values()])
    table = SideBySide([owners]).table()
    told = dict(zip(table["line_number"].to_pylist(), table["calls"].to_pylist(), strict=True))
    assert (told[2], told[4]) == ("1,037 × .item()", None)


@pytest.mark.parametrize(
    ("operator", "called", "cure"),
    [
        ("aten::item", ".item()", "read the result back a single time"),
        ("aten::select", "aten::select", "in place of a loop"),
    ],
)
def test_the_advice_is_to_vectorise_that_line(tmp_path, operator, called, cure):
    findings = diagnose(profile_of(tmp_path / "t.json", operator, 1_037)).all_findings
    finding = next(each for each in findings if each.id == "cpu_compute")
    assert f"1,037 × {called} a step at …/me/mine.py:2." in finding.why
    assert finding.do.startswith(f"Vectorise the line at …/me/mine.py:2, which calls {called} 1,037 times a step: ")
    assert cure in finding.do
    assert "larger batches" not in finding.advice


def test_few_calls_and_those_of_an_optimizer_are_no_loop_of_the_line(tmp_path):
    assert busiest_line(profile_of(tmp_path / "few.json", "aten::item", 20)) is None
    of_optimizer = profile_of(tmp_path / "o.json", "aten::add_", 1_037, ("user_annotation", "Optimizer.step#SGD.step"))
    assert busiest_line(of_optimizer) is None
    (line, *_) = sorted(known_calls(of_optimizer.ownership, of_optimizer.counted))
    assert line.in_words == "1,037 × aten::add_"
