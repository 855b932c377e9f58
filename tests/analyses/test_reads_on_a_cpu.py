"""Without a GPU: which reads of a value would wait for one? Not those of what is on the CPU anyway."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small import event, op, step, write

from tracekit.analyses import summary
from tracekit.profile import open_subject


def read(at: float) -> list[dict[str, Any]]:
    return [op("aten::item", at, at + 2), op("aten::_local_scalar_dense", at + 0.5, at + 1.5)]


def said(path: Path, *events: dict[str, Any]) -> str:
    (profile,) = open_subject([write(path, step(0, 0, 100), op("aten::mm", 1, 5), *events)]).profiles
    return summary(profile, "syncs").sentence


def optimizer(kind: str, low: float, high: float) -> dict[str, Any]:
    return event("user_annotation", f"Optimizer.step#{kind}.step", low, high)


@pytest.mark.parametrize("kind", ["Adam", "AdamW", "Adagrad", "NAdam", "RAdam", "Adamax"])
def test_an_optimizers_counters_are_on_the_cpu(tmp_path: Path, kind: str) -> None:
    counters = [each for at in (52, 56, 60) for each in read(at)]
    assert "no operator would wait" in said(tmp_path / "a.json", optimizer(kind, 50, 90), *counters)
    loss = read(20)
    assert "1 operator a step reads a value back" in said(
        tmp_path / "b.json", *loss, optimizer(kind, 50, 90), *counters
    )


@pytest.mark.parametrize("kind", ["LBFGS", "Adafactor", "ASGD", "Mine"])
def test_what_other_optimizers_read_would_wait(tmp_path: Path, kind: str) -> None:
    assert "1 operator a step reads" in said(tmp_path / "a.json", optimizer(kind, 50, 90), *read(60))


def test_a_closure_reads_what_the_user_reads(tmp_path: Path) -> None:
    backward = op("autograd::engine::evaluate_function: AddmmBackward0", 60, 70)
    sentence = said(tmp_path / "a.json", optimizer("Adam", 40, 90), *read(50), backward, *read(75), *read(80))
    assert "1 operator a step reads" in sentence


def test_what_a_loader_makes_is_on_the_cpu(tmp_path: Path) -> None:
    loader = event("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 30, 60)
    assert "no operator would wait" in said(tmp_path / "a.json", loader, *read(40))
