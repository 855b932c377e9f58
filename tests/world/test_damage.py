"""How often is the law of damage kept: no report of a damaged recording claims more than the truth allows?

`damage.toml` holds a floor for each kind of damage, in percent of the cases with it: what 200 damaged worlds reach
today, rounded down; `make test` asks the first 100. A change that keeps the law more often raises them; none may lower
them. `make verify` asks 2,000 worlds, and every real trace with every kind of damage. `python -m tests.world.damage
--missed` prints the table, and what was claimed beyond the truth.
"""

from __future__ import annotations

import os
import random
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from real import TRACES, trace_names, trace_path

from tests.world import damage
from tests.world.damage import KINDS, File
from tests.world.judging import case, judged, judged_file, judged_traces, table
from tests.world.law import broken
from tests.world.truth import truth_of
from tests.world.worlds import world

FLOORS = tomllib.loads(Path(__file__).with_name("damage.toml").read_text())
WANTED = 99
VERIFYING = bool(os.environ.get("TRACEKIT_VERIFY"))
WORLDS = 2000 if VERIFYING else 100
OFTEN = 4  # cases with each kind of damage, at least


def test_no_more_is_claimed_than_before(record_property: Callable[[str, object], None]) -> None:
    found = judged(range(WORLDS), workers=2)
    reached = table(found)
    record_property("kinds", len(KINDS))
    record_property("kept", [reached["all"]["kept"], len(found), WANTED])
    floors = {"all": FLOORS["all"]} if VERIFYING else FLOORS
    fallen = [
        f"{kind}: {row['kept']} of {row['cases']}, floor {floor} %, wanted {WANTED} %"
        for kind, floor in floors.items()
        for row in [reached[kind]]
        if 100 * row["kept"] < floor * row["cases"]
    ]
    claims = [f"case {k} ({' + '.join(each.kinds)}): {each.claims[0]}" for k, each in enumerate(found) if each.claims]
    assert not fallen, "\n".join(fallen + claims)
    assert {*FLOORS} == {*KINDS, "all"}, "every kind of damage has a floor"
    assert all(row["cases"] >= OFTEN for row in reached.values())


@pytest.mark.skipif(not VERIFYING, reason="TRACEKIT_VERIFY is not set: make verify")
@pytest.mark.skipif(not TRACES.is_dir(), reason=f"the real traces are not here ({TRACES}); set TRACEKIT_TRACES")
def test_no_more_is_claimed_of_damaged_real_traces(record_property: Callable[[str, object], None]) -> None:
    found = judged_traces(map(trace_path, trace_names()), workers=2)
    cases = [each for of_trace in found.values() for each in of_trace]
    record_property("kinds", len(KINDS))
    record_property("kept", [sum(each.kept for each in cases), len(cases), WANTED])
    claims = [
        f"{name} ({' + '.join(each.kinds)}): {each.claims[0]}"
        for name, of_trace in found.items()
        for each in of_trace
        if each.claims
    ]
    assert not claims, "\n".join(claims)


@pytest.mark.parametrize("seed", range(10))
def test_a_world_keeps_the_law_as_it_is(tmp_path: Path, seed: int) -> None:
    made = world(seed)
    path = made.write(tmp_path / "world")
    truth = truth_of(path, made)
    assert broken(truth.told, truth) == []


def test_more_than_the_truth_is_noticed(tmp_path: Path) -> None:
    made = world(19)
    path = made.write(tmp_path / "world")
    truth = truth_of(path, made)
    slower = File.read(path)
    slower = damage.delayed(slower, slower.events[len(slower.events) // 2]["ts"], 20_000)
    folder = tmp_path / "slower"
    folder.mkdir()
    found = judged_file(slower.write(folder / path.name), truth, (), 19)
    assert any(claim.startswith("a step: idle") for claim in found.claims)


@pytest.mark.parametrize("name", KINDS)
def test_damage_is_the_same_each_time_and_changes_the_file(tmp_path: Path, name: str) -> None:
    for seed in range(60):
        path = world(seed).write(tmp_path / str(seed))
        file = File.read(path / "rank0.json" if path.is_dir() else path)
        once, again = (damage.damaged(file, (name,), random.Random(7)) for _ in range(2))
        assert once == again
        if once is not None:
            assert once != file
            return
    pytest.fail("there is no world that it applies to")


def test_the_kinds_take_turns_singly_and_in_pairs() -> None:
    kinds = [case(number)[1] for number in range(200)]
    assert {each for each in kinds if len(each) == 1} == {(name,) for name in KINDS}
    assert sum(len(each) == 2 for each in kinds) == 100
