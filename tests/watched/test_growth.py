"""A list that grows in the loop shows in the traces of a watch, and nothing is said of graph breaks."""

import shutil

import pytest
from small import op, step, write

from tests.watched.written import FACTS, steps
from tests.watched.written import write as write_watch
from tracekit import faces
from tracekit.faces import Options
from tracekit.profile import open_subject
from tracekit.report import report


def trace(path, stacked, products=2):
    """Steps that go through a list: `aten::unsqueeze` for each of its entries, then what every step does."""
    events, at = [], 0
    for number, entries in enumerate(stacked):
        names = ["aten::unsqueeze"] * entries + ["aten::mm"] * products
        end = at + 10 * len(names) + 10
        events += [step(number, at, end), *(op(name, at + 10 * k, at + 10 * k + 9) for k, name in enumerate(names))]
        at = end
    return write(path, *events)


def watched(folder, **traces):
    path = write_watch(folder, steps(600, {}))
    for name, made in traces.items():
        shutil.move(made, path.with_name(f"{FACTS.stem}-{name.replace('_', '-')}.pt.trace.json"))
    return open_subject([folder])


def test_operators_that_every_step_calls_more_often_are_told(tmp_path):
    subject = watched(
        tmp_path / "watch",
        step100_snap=trace(tmp_path / "a.json", [517, 518, 519]),
        step200_trend=trace(tmp_path / "b.json", [800, 801, 802]),
        step300_snap=trace(tmp_path / "c.json", [900, 901, 902]),
        step500_snap=trace(tmp_path / "d.json", [2063, 2064, 2065]),
    )
    assert [profile.name for profile in subject.profiles] == [f"trace at step {at}" for at in (100, 300, 500)]
    text = " ".join(faces.find("markdown").draw(report(subject), Options()).split())
    assert "Each step does more than those before: aten::unsqueeze 518 → 2,064 a step." in text
    assert "Next: look for what the loop appends to and goes through in every step" in text
    assert "Look for what the loop appends to" in text
    assert "graph breaks around" not in text
    assert "larger batches" not in text


@pytest.mark.parametrize("late", [[518, 519, 520], [519, 5, 2000], [3, 2, 1]])
def test_what_only_varies_does_not_grow(tmp_path, late):
    subject = watched(
        tmp_path / "watch",
        step100_snap=trace(tmp_path / "a.json", [517, 518, 519]),
        step500_snap=trace(tmp_path / "b.json", late),
    )
    assert {profile.growth for profile in subject.profiles} == {()}
