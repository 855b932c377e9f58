"""The first two answers, overview and findings, name a planted cause and its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from real import ROOT

from tests.agent.conftest import Ask, asked
from tests.world.causes import (
    Allocation,
    Cause,
    CopyBack,
    CountRows,
    Garbage,
    HostComputing,
    ManySmallOperators,
    PageableCopy,
    Preprocessing,
    SlowLoader,
    SlowPython,
)
from tests.world.kineto import Switches
from tests.world.training import Script
from tests.world.worlds import World
from tracekit.agent.inputs import Workplace

SCRIPT = Script(seed=1, kernel_ns=30_000)
PLANTED = [  # the cause, and the line at which the world puts it
    (SlowPython(2_000_000), "model.py:57"),
    (ManySmallOperators(3_000, times=200), "model.py:80"),
    (CopyBack(7_000_000), "train.py:99"),
    (Allocation(1_000_000, times=3), "model.py:18"),
    (Garbage(6_000_000), "train.py:40"),
    (PageableCopy(20_000_000), "train.py:33"),
    (SlowLoader(3_000_000), "train.py:40"),
    (Preprocessing(2_000_000), "train.py:27"),
    (HostComputing(2_000_000), "model.py:101"),
    (CountRows(0, times=8), "model.py:64"),
]


@pytest.mark.parametrize(("cause", "place"), PLANTED, ids=[type(cause).__name__ for cause, _ in PLANTED])
def test_the_first_finding_is_the_cause_at_its_line(cause: Cause, place: str, tmp_path: Path, below: Ask) -> None:
    path = World(SCRIPT, (cause,), switches=Switches(stacks=True)).write(tmp_path / "world")
    arguments = {"inputs": [str(path.relative_to(tmp_path))]}
    overview, findings = below("overview", **arguments), below("findings", **arguments)
    first = findings["findings"][0]
    assert first["id"] in cause.ids
    assert f"{first['untrusted']['file']}:{first['untrusted']['line']}" == place
    assert first["cost"]["value"] > 0
    (variant,) = overview["variants"]
    assert (variant["verdict"], variant["first"]["id"]) == (first["id"], first["id"])
    assert place in variant["first"]["untrusted"]["text"]


@pytest.mark.parametrize(
    ("recording", "found", "place"),
    [
        ("shapes/run.json", "recompile_limit", "recipes/pathologies/shapes.py:32"),
        ("pairs/loading-before.json.gz", "dataloader_bound", None),  # without stacks, no line is known
        ("pairs/copies-before.json.gz", "h2d_pageable_copy", None),
    ],
)
def test_so_it_is_on_an_h100(recording: str, found: str, place: str | None) -> None:
    workplace, arguments = Workplace(ROOT / "sample_traces" / "h100"), {"inputs": [recording]}
    summary = asked(workplace, "overview", **arguments)["variants"][0]["first"]
    first = asked(workplace, "findings", **arguments)["findings"][0]
    assert (first["finding"], first["id"]) == (summary["finding"], summary["id"]) == ("v1.f1", found)
    assert place is None or f"{first['untrusted']['file']}:{first['untrusted']['line']}" == place
