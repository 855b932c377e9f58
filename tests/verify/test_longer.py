"""Variants that are longer by a known share: captures find that they are, and checks with default options, too."""

import math
import os
from contextlib import nullcontext

import pytest
from scipy import stats

from tracekit.gate import Demand, against
from tracekit.profile import open_subject
from tracekit.profile.run_facts import contrast_of

from .programs import BUSY, SIZE, beside, by_products, by_sleep, captured, machine

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(not os.environ.get("TRACEKIT_VERIFY"), reason="TRACEKIT_VERIFY is not set: make verify"),
]
HOW = {"matrix products": by_products, "a sleep": by_sleep}


def test_what_is_planted_is_found_at_two_per_cent(tmp_path, record_property):
    count, late = max(SIZE // 6, 1), []
    for share in (0.03, 0.05, 0.1):
        found, reached, holding = 0, 0, 0
        before = machine()
        for at in range(count):
            out = captured(by_products(share), tmp_path / f"{share}-{at}", passes=100, precision=0.02, budget=240.0)
            base, longer = open_subject([out]).members
            contrast = contrast_of(longer, base)
            low, high = contrast.interval
            found += low > 1
            reached += math.log(high / low) / 2 <= 0.02
            holding += low <= 1 + share <= high
        row = {"planted": f"{share:.0%}", "captures": count, "± 2 % reached": reached, "found": found}
        row |= {"interval has it": holding, "before": before}
        record_property("table", ["planted matrix products", row])
        if reached == count and found < stats.binom.ppf(0.05, count, 0.9):
            late.append(row)
    assert not late


@pytest.mark.parametrize("how", HOW)
def test_a_check_with_default_options_finds_a_tenth(how, tmp_path, record_property):
    """It fails, or says that it could not have seen it: it never passes."""
    count, outcomes = max(SIZE // 3, 1), []
    program, before = HOW[how](0.1), machine()
    for at in range(count):
        with beside(BUSY) if at % 2 else nullcontext():
            files = [
                captured(
                    program, tmp_path / f"{at}-{longer}", program.variants[:1], params=program.params if longer else {}
                )
                for longer in (False, True)
            ]
        earlier, later = (open_subject([file]) for file in files)
        (row,) = against(later, earlier, metrics=["step_ms"], demand=Demand(strict=True))
        outcomes.append(row.outcome)
    counted = {each: outcomes.count(each) for each in ("fail", "unseen", "noise", "pass")}
    record_property(
        "table", [f"checks of ten per cent more by {how}", {"captures": 2 * count, **counted, "before": before}]
    )
    assert not counted["pass"] + counted["noise"]
