"""Turns, traces and variants whose steps are of different numbers and kinds: each trace leaves out its own steps."""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from small import op, step, write

from tests.agent.conftest import asked
from tests.faces.formats import written
from tracekit import faces
from tracekit.agent.inputs import Workplace
from tracekit.faces.shared.explain import explain
from tracekit.profile import open_subject
from tracekit.profile.compare import compare
from tracekit.report import report
from tracekit.run import Measured, Pass, Requested, Run, Traces, Variant, now
from tracekit.run import write as write_run
from tracekit.sql import query

RARE_US = 1000
Kinds = list[bool]  # of each step: whether it is rare


def lasting(kinds: Kinds, rare_us: int = RARE_US) -> list[int]:
    """µs; no two usual steps of a trace take the same, so that a mean shows which it is over."""
    return [rare_us if is_rare else 100 + number % 5 for number, is_rare in enumerate(kinds)]


def trace_of(path: Path, kinds: Kinds, rare_us: int = RARE_US) -> None:
    """A usual step runs one operator, a rare one another in addition."""
    events, at = [], 0
    for number, length in enumerate(lasting(kinds, rare_us)):
        events += [step(number, at, at + length), op("aten::relu", at + 10, at + 90)]
        events += [op("aten::mm", at + 92, at + length - 5)] * kinds[number]
        at += length
    write(path, *events)


class Captured:
    """A run whose variants have a long trace and turns of these steps."""

    def __init__(self, folder: Path, variants: dict[str, tuple[Kinds, dict[int, Kinds]]], period: int) -> None:
        self.path = folder / "run.json"
        made = []
        for name, (long, turns) in variants.items():
            passes = []
            for number, kinds in {0: [], **turns}.items():
                trace = f"{name}-{number}.json" if kinds else None
                if trace is not None:
                    trace_of(folder / trace, kinds)
                fields = {"alike": period == 1, "period": period, "trace": trace}
                passes.append(Pass(round=number, started_ns=number, step_ns=10**5, step_all_ns=[10**5] * 20, **fields))
            trace_of(folder / f"{name}.json", long)
            made.append(
                Variant(
                    name=name,
                    outcome="ok",
                    requested=Requested(compile=False),
                    traces=Traces(steady=f"{name}.json"),
                    measured=Measured(
                        step_ns=10**5,
                        step_all_ns=[10**5] * 20,
                        spread_ns=0,
                        clock="perf_counter",
                        passes=passes,
                    ),
                )
            )
        write_run(Run(created=now(), tracekit="0", recipe="r", script="r.py", variants=made), self.path)


def every_10th(count: int, first: int = 9) -> Kinds:
    return [number % 10 == first for number in range(count)]


USUAL = [False] * 4


@pytest.mark.parametrize("turn", [USUAL, [False] * 3 + [True], [False]])
@pytest.mark.parametrize("rare_at", [1, 19])
def test_a_turn_leaves_out_its_own_steps(tmp_path, turn, rare_at):
    """Not those at the places of the long trace's, which it may not even have; as in the variant without any."""
    long = [number == rare_at for number in range(20)]
    captured = Captured(
        tmp_path,
        {
            "eager": (long, dict.fromkeys(range(1, 6), turn)),
            "other": ([False] * 20, {**dict.fromkeys(range(1, 5), USUAL), 5: [True, *USUAL]}),
        },
        period=1,
    )
    eager, other = open_subject([captured.path]).profiles
    assert (eager.unshared, other.unshared) == ((rare_at,), ())
    usual_ns = 1000 * fmean(us for us in lasting(turn) if us != RARE_US)
    assert [means["wall"].step_ns for means in eager.means_of_turns.values()] == [usual_ns] * 5
    assert other.means_of_turns[5]["wall"].step_ns == 1000 * fmean(lasting([True, *USUAL])[1:])
    assert compare(other, eager).wall.pairs == 5


def test_where_both_hold_rare_steps_no_turn_leaves_any_out(tmp_path):
    turn = [False] * 3 + [True]
    variants = dict.fromkeys(("eager", "other"), ([number == 7 for number in range(20)], {1: turn}))
    for profile in open_subject([Captured(tmp_path, variants, period=1).path]).profiles:
        assert profile.means_of_turns[1]["wall"].step_ns == 1000 * fmean(lasting(turn))


def test_rare_steps_that_are_hardly_longer_are_held_all_the_same(tmp_path):
    """In the other trace, the machine hides that they take longer; their operators show them."""
    captured = Captured(tmp_path, dict.fromkeys(("eager", "other"), (every_10th(20), {})), period=10)
    trace_of(tmp_path / "other.json", every_10th(20), rare_us=110)
    assert [profile.unshared for profile in open_subject([captured.path]).profiles] == [(), ()]


def kinds_of(most: int) -> st.SearchStrategy[Kinds]:
    """No rare step, one, several, or only such."""
    return st.lists(st.sampled_from([False] * 6 + [True]), min_size=1, max_size=most) | st.just([True] * most)


TURNS = st.dictionaries(st.integers(1, 5), kinds_of(6), max_size=5)
VARIANTS = st.dictionaries(st.sampled_from(["eager", "compiled", "third"]), st.tuples(kinds_of(24), TURNS), min_size=1)


@settings(max_examples=settings.default.max_examples // 10)
@given(VARIANTS, st.sampled_from([1, 1, 4, 10]))
@example({"eager": (every_10th(20), {1: USUAL, 2: USUAL}), "compiled": ([False] * 19, {1: USUAL, 2: [True]})}, 1)
@example({"eager": (every_10th(25), {1: every_10th(6, 3)}), "compiled": ([False] * 9, {1: [False]})}, 10)
def test_every_face_shows_them(variants, period):
    with tempfile.TemporaryDirectory() as folder:
        captured = Captured(Path(folder), variants, period)
        opened = report(open_subject([captured.path]))
        assert {profile.name for profile in opened.profiles} == {*variants}
        for number, name in enumerate(faces.names()):
            (out := Path(folder, f"out-{number}")).mkdir()
            written(opened, out, name)
            assert [*out.iterdir()], name
        assert query(opened, "select count(*) as n from steps").column("n").to_pylist()[0] > 0
        assert explain(opened, 1000)
        for tool in ("overview", "findings", "lines", *(["compare"] if len(variants) > 1 else [])):
            assert asked(Workplace(Path(folder)), tool, inputs=["run.json"])
