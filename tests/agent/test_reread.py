"""An input that changed is read again, also where only what lies deeper in it did."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.study.planting import sweep_file, write_run
from tracekit.agent.inputs import Workplace
from tracekit.study.store import CELLS, RECORD
from tracekit.sweep import SweepOptions, runner, sweep

GRID = """
[sweep]
recipes = ["net.py"]
variants = ["eager"]
seeds = [0, 1]
"""


def test_a_study_in_which_a_cell_ended_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "capture", lambda options: write_run(options, 10))
    monkeypatch.setattr(os, "fsync", lambda _: None)
    sweep(SweepOptions(file=sweep_file(tmp_path, GRID), out=tmp_path / "study", tell=lambda _: None))
    workplace = Workplace(tmp_path)
    whole = workplace.open(["study"])
    assert workplace.open(["study"]) is whole
    record = sorted((tmp_path / "study" / CELLS).glob(f"*/{RECORD}"))[0]
    record.rename(record.with_suffix(".away"))
    begun = workplace.open(["study"])
    record.with_suffix(".away").rename(record)
    outcomes = [[member.outcome for member in opened.report.subject.members] for opened in (begun, whole)]
    assert outcomes[0] != outcomes[1]
    assert workplace.open(["study"]) is whole
