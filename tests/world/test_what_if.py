"""Is what a step would take without a cause within the range that a replay gives, in worlds where the cause can be
removed?"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.world.causes import PageableCopy, SlowLoader
from tests.world.worlds import world
from tracekit.analyses import summary
from tracekit.profile import open_subject

WORLDS = 2000 if os.environ.get("TRACEKIT_VERIFY") else 120
WANTED = 0.9
_ALIKE = 0.02  # a mean over steps that differs by more is not that of the steps that the world knows about


@pytest.mark.parametrize(
    ("cause", "change"),
    [(SlowLoader, "batches were always ready"), (PageableCopy, "copies came from pinned memory")],
    ids=["loader", "copies"],
)
def test_the_true_gain_lies_in_the_range(
    tmp_path: Path, cause: type, change: str, record_property: Callable[[str, object], None]
) -> None:
    inside, missed = 0, []
    for seed in range(WORLDS):
        made = world(seed)
        if not made.switches.gpu or not any(isinstance(one, cause) for one in made.causes):
            continue
        folder = tmp_path / str(seed)
        folder.mkdir()
        (profile,) = open_subject([made.write(folder)]).profiles
        answer, mean = summary(profile, "what_if"), profile.means["wall"]
        row = next((row for row in answer.table.to_pylist() if row["if"] == change), None)
        if row is None or mean is None or abs(mean.step_ns / made.step_ns - 1) > _ALIKE:
            continue
        gain = next(saved for one, saved in made.savings.items() if isinstance(one, cause))
        low, high = mean.step_ns - row["worst_ns"], mean.step_ns - row["best_ns"]
        if low <= gain <= high:
            inside += 1
        else:
            missed.append(f"world {seed}: {low:.0f} … {high:.0f}, in truth {gain:.0f} of {mean.step_ns:.0f} ns")
    record_property("change", change)
    record_property("within", [inside, inside + len(missed), round(100 * WANTED)])
    assert inside >= 4, "too few worlds have this cause"
    assert inside >= WANTED * (inside + len(missed)), "\n".join(missed)
