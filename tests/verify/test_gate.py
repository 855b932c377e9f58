"""The check of captures with default options, made one after the other: a planted regression of a tenth is found, alone
on the machine and beside a load, and captures of the same never fail against each other.

A recipe multiplies matrices, and a parameter makes its step longer by that many per cent.
"""

import os
import statistics
from collections import Counter
from contextlib import nullcontext
from itertools import permutations

import pytest

from tracekit.capture.harness import Options, capture
from tracekit.gate import against
from tracekit.profile import open_subject

from .programs import BUSY, MAX_SLOW_TURNS, SIZE, beside, machine, slow_turns

RECIPE = """
import torch
PARAMS = {"products": 100}
def setup(ctx):
    left, right = torch.randn(2, 200, 200)
    weight = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.01)
    def step():
        for _ in range(ctx.products):
            torch.mm(left, right)
        optimizer.zero_grad()
        loss = weight.square().sum()
        loss.backward()
        optimizer.step()
        return loss.detach()
    return step
"""
CAPTURES = max(3, SIZE // 10)  # of each, beside nothing and beside a load
FOUND = {False: 0.95, True: 0.8}  # the least share of planted regressions: beside nothing, and beside a load

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(not os.environ.get("TRACEKIT_VERIFY"), reason="TRACEKIT_VERIFY is not set: make verify"),
]


@pytest.fixture(scope="module", params=[False, True], ids=["beside nothing", "beside a load"])
def captured(request, tmp_path_factory):
    """Whether they ran beside a load, and captures of the same recipe and of a slower one, in turns."""
    folder, subjects = tmp_path_factory.mktemp("gate"), {100: [], 110: []}
    (folder / "products.py").write_text(RECIPE)
    with beside(BUSY) if request.param else nullcontext():
        for at in range(CAPTURES):
            for products, made in subjects.items():
                out = folder / f"run-{products}-{at}.json"
                options = {"params": {"products": str(products)}, "device": "cpu", "tell": lambda _: None}
                capture(Options(str(folder / "products.py"), ("eager",), out=str(out), **options))
                made.append(open_subject([out]))
    return request.param, *subjects.values()


def outcomes_of(pairs):
    rows = [row for new, old in pairs for row in against(new, old, metrics=["step_ms"])]
    return Counter(row.outcome for row in rows)


def test_captures_of_the_same_never_fail_against_each_other(captured, record_property):
    busy, same, slower = captured
    outcomes = outcomes_of(pair for side in (same, slower) for pair in permutations(side, 2))
    row = {"beside": BUSY if busy else 0, **outcomes, "after": machine()}
    record_property("table", ["checks of captures of the same", row])
    assert not outcomes["fail"], outcomes


def test_a_tenth_more_is_found(captured, record_property):
    busy, same, slower = captured
    runs = [run for subject in (*same, *slower) for run in subject.runs.values()]
    disturbed = statistics.fmean(map(slow_turns, runs))
    outcomes = outcomes_of((new, old) for new in slower for old in same)
    row = {"beside": BUSY if busy else 0, **outcomes, "after": machine()}
    row |= {"turns beside a busy sibling": f"{disturbed:.0%}"}
    record_property("table", ["checks of a tenth more", row])
    assert outcomes["fail"] >= FOUND[busy or disturbed > MAX_SLOW_TURNS] * outcomes.total(), outcomes
