"""A against A, in captures as users make them: neither the headline nor the table reports a difference."""

import math
import os
import statistics
from contextlib import nullcontext
from itertools import pairwise

import pytest
from scipy import stats

from tracekit.faces.shared.document import as_document
from tracekit.gate import against
from tracekit.profile import open_subject
from tracekit.profile.compare import COVERS
from tracekit.report import report

from .programs import ALIKE, BUSY, SIZE, beside, captured, machine

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(not os.environ.get("TRACEKIT_VERIFY"), reason="TRACEKIT_VERIFY is not set: make verify"),
]
_WIDE, _WIDE_BESIDE = 0.03, 0.08  # half of an interval, in the middle of all beside nothing else, and beside a load


@pytest.fixture(scope="module")
def taken(tmp_path_factory):
    """What each capture says of two variants of the same code, and its run file; every other capture beside a load."""
    parent, rows = tmp_path_factory.mktemp("alike"), []
    for at in range(SIZE):
        name = [*ALIKE][at % len(ALIKE)]
        busy = (at // len(ALIKE) + at) % 2 == 1  # each program in half of its captures
        before = machine()
        with beside(BUSY) if busy else nullcontext():
            out = captured(ALIKE[name], parent / str(at))
        (entry,) = as_document(report(open_subject([out])))["comparison"]
        rows.append((name, busy, before, entry, out))
        low, high = entry["unprofiled"]["interval"]
        print(
            f"{name}{', beside 2' if busy else ''}: {entry['unprofiled']['ratio']:.3f} ({low:.3f}–{high:.3f})",
            flush=True,
        )
    return rows


def half_width(entry):
    low, high = entry["unprofiled"]["interval"]
    return math.log(high / low) / 2


def differing_buckets(entry):
    """The buckets, and the whole, of which the table says that they differ; from one trace each it says nothing."""
    if entry["wall"] is None or entry["interval_covers"] == COVERS:
        return []
    intervals = {**entry["interval"], "": entry["delta_interval"]}
    return [key for key, ends in intervals.items() if ends is not None and not ends[0] <= 0 <= ends[1]]


def test_code_against_itself_is_noise(taken, record_property):
    claims, wrong, told = 0, 0, 0
    for busy in (False, True):
        for name in ALIKE:
            rows = [(before, entry) for each, beside_it, before, entry, _ in taken if (each, beside_it) == (name, busy)]
            if not rows:
                continue
            entries = [entry for _, entry in rows]
            claimed = sum(not entry["unprofiled"]["noise"] for entry in entries)
            buckets = [len(differing_buckets(entry)) for entry in entries]
            claims, wrong, told = (
                claims + claimed,
                wrong + sum(buckets),
                told + sum(len(e["wall"] or {}) + 1 for e in entries),
            )
            row = {
                "program": name,
                "beside": f"{BUSY} busy processes" if busy else "nothing",
                "captures": len(rows),
                "claims": claimed,
                "buckets claimed": sum(buckets),
                "half-width": f"± {statistics.median(map(half_width, entries)):.1%}",
                "pairs": statistics.median(entry["unprofiled"]["passes"] for entry in entries),
                "before": rows[0][0],
            }
            record_property("table", ["code against itself", row])
    assert claims <= stats.binom.ppf(0.95, len(taken), 0.05)
    assert wrong <= stats.binom.ppf(0.95, told, 0.05)


def test_the_interval_is_narrow_where_nothing_else_runs(taken):
    quiet = [half_width(entry) for _, busy, before, entry, _ in taken if not busy and float(before.split()[1]) < 1]
    if not quiet:
        pytest.skip("other work ran before each of the captures")
    assert statistics.median(quiet) <= _WIDE


def test_the_interval_is_useful_beside_a_load(taken):
    assert statistics.median(half_width(entry) for _, busy, _, entry, _ in taken if busy) <= _WIDE_BESIDE


def test_a_check_never_alarms_on_a_second_capture(taken, record_property):
    """The captures of each program that ran beside as much, the later against the earlier."""
    alarms, checks, unseen = [], 0, 0
    for name in ALIKE:
        for busy in (False, True):
            files = [out for each, beside_it, _, _, out in taken if (each, beside_it) == (name, busy)]
            for earlier, later in pairwise(files):
                rows = against(open_subject([later]), open_subject([earlier]), metrics=["step_ms"])
                alarms += [(name, row) for row in rows if row.outcome == "fail"]
                checks, unseen = checks + len(rows), unseen + sum(row.outcome == "unseen" for row in rows)
    row = {"checks": checks, "alarms": len(alarms), "could not have seen 6.1 %": unseen, "after": machine()}
    record_property("table", ["checks of a second capture of the same code", row])
    assert not alarms
