"""What captures and checks promise holds on simulated machines: they drift, change their speed in steps, are disturbed,
and their processes differ for as long as they live."""

import math
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from msgspec.structs import replace
from msgspec.structs import replace as changed
from scipy import stats
from simulated import (
    MACHINES,
    apart,
    captured,
    disturbed,
    heavy_tailed,
    joined_half_way,
    measured,
    one_pass,
    persistent,
    run_on,
    steady,
    two_speeds,
    walking,
)

from tracekit.capture.rounds import detectable
from tracekit.gate import Demand, against
from tracekit.profile import Mean, Subject, open_subject
from tracekit.profile.compare import Difference, by_pairs
from tracekit.statistics.uncertainty import half_width_of_difference, persistence

SAMPLE = Path(__file__).parents[1] / "sample_traces" / "run.json"


@pytest.fixture(scope="module")
def member():
    return open_subject([SAMPLE]).members[0]


def checked(monkeypatch, rng, machine, slower, member, **options):
    """The row of a check of two captures of one program, the later of which is so much slower, and the runs."""
    runs = [
        run_on(monkeypatch, rng, machine, {"a": effect}, begins=begins, **options)
        for effect, begins in ((0.0, 0), (math.log1p(slower), 1_000_000))
    ]
    earlier, later = (
        Subject([replace(member, variant=changed(member.variant, measured=run.variants[0].measured))]) for run in runs
    )
    (row,) = against(later, earlier, metrics=["step_ms"], demand=Demand(strict=True))
    return row, runs


@pytest.mark.parametrize("machine", [persistent, walking, heavy_tailed])
def test_what_is_planted_is_found_at_two_per_cent(monkeypatch, machine):
    """Given enough pairs, nine of ten differences of 3 % are found, and larger ones always."""
    rng = np.random.default_rng(20_261_123)
    times = 2 if os.environ.get("TRACEKIT_VERIFY") else 1
    for share, count, least in ((0.03, 12 * times, 0.9), (0.05, 4 * times, 0.99), (0.1, 4 * times, 0.99)):
        found = [
            captured(monkeypatch, rng, machine, math.log1p(share), 80, precision=0.02).interval[0] > 1
            for _ in range(count)
        ]
        assert sum(found) >= stats.binom.ppf(0.01, count, least), (share, found)


def test_code_against_itself_is_within_noise_however_often_one_looks(monkeypatch):
    """After every round it is decided whether to go on; that must not make chance significant."""
    rng = np.random.default_rng(20_261_124)
    claims = [
        not captured(monkeypatch, rng, machine, 0.0, 40, precision=0.005).noise
        for machine in MACHINES
        for _ in range(4)
    ]
    assert sum(claims) <= stats.binom.ppf(0.99, len(claims), 0.05)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_check_does_not_alarm_on_the_same_code(monkeypatch, machine, member):
    """Its captures are sure to 99 %. A machine that is slower for longer than a capture is taken for slower code."""
    sure = 0.9 if machine in (walking, two_speeds, joined_half_way) else 0.99
    rng = np.random.default_rng(20_261_125)
    rows = [checked(monkeypatch, rng, machine, 0.0, member)[0] for _ in range(40)]
    alarms = sum(row.outcome == "fail" for row in rows)
    assert alarms <= stats.binom.ppf(0.95, len(rows), 1 - sure)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_check_with_default_options_never_passes_a_tenth(monkeypatch, machine, member):
    """It fails, or it says that it could not have seen it, which fails as well where checks are strict."""
    rng = np.random.default_rng(20_261_126)
    rows = [checked(monkeypatch, rng, machine, 0.1, member)[0] for _ in range(20)]
    assert sum(row.fails for row in rows) >= 19, [row.outcome for row in rows]


@pytest.mark.parametrize(("machine", "sees"), [(steady, 0.06), (apart, 0.15), (persistent, 0.2)])
def test_a_check_sees_what_its_captures_promise(monkeypatch, machine, sees, member):
    """19 times in 20, where both captures could take the passes which that needs."""
    rng, seen = np.random.default_rng(20_261_127), []
    for _ in range(40):
        row, runs = checked(monkeypatch, rng, machine, sees, member, passes=60, min_detectable=sees)
        if all(detectable(run) <= sees for run in runs):
            seen.append(row.outcome == "fail")
    assert len(seen) >= 30
    assert sum(seen) >= stats.binom.ppf(0.01, len(seen), 0.95)


BUCKETS_MS = {"python": 20.0, "cpu_compute": 6.0, "idle": 1.5, "dataloader": 0.0}


def side(rng, levels):
    """What `compare` reads of a variant: the means of traces of processes with these levels. Each bucket scatters by
    itself as well, and now and then one step of four takes twice as long."""
    means = []
    for level in levels:
        parts = {
            key: 1e6 * ms * math.exp(level + 0.03 * rng.standard_normal()) * (1.25 if rng.random() < 0.05 else 1)
            for key, ms in BUCKETS_MS.items()
        }
        means.append({"wall": Mean(sum(parts.values()), parts)})
    made = measured(*(one_pass(k, round(each["wall"].step_ns), 10 * k) for k, each in enumerate(means)))
    return SimpleNamespace(
        means=means[0], means_of_turns=dict(enumerate(means[1:], 1)), variant=SimpleNamespace(measured=made)
    )


@pytest.mark.parametrize("machine", [persistent, walking, heavy_tailed, disturbed])
@pytest.mark.parametrize("turns", [2, 3, 7])
def test_buckets_of_the_same_code_do_not_differ(machine, turns):
    rng, claims = np.random.default_rng(20_261_128), dict.fromkeys(BUCKETS_MS, 0)
    claims["total"] = 0
    for _ in range(200):
        levels = machine(rng, 2 * (turns + 1))
        ours, theirs = side(rng, levels[::2]), side(rng, levels[1::2])
        nothing = Difference(0.0, dict.fromkeys(BUCKETS_MS, 0.0), None, {})
        difference = by_pairs(nothing, "wall", ours, theirs)
        for key in BUCKETS_MS:
            claims[key] += not difference.is_noise(key)
        claims["total"] += not difference.is_noise()
    assert difference.pairs == (turns if turns > 3 else turns + 1)
    assert max(claims.values()) <= stats.binom.ppf(0.99, 200, 0.05), claims


def test_buckets_that_differ_by_a_tenth_of_the_step_are_found():
    rng, found = np.random.default_rng(20_261_129), 0
    for _ in range(100):
        levels = persistent(rng, 16)
        ours, theirs = side(rng, levels[::2]), side(rng, levels[1::2])
        for means in ours.means_of_turns.values():
            means["wall"].parts["python"] += 0.15 * 27.5e6
        difference = by_pairs(Difference(0.0, dict.fromkeys(BUCKETS_MS, 0.0), None, {}), "wall", ours, theirs)
        low, _ = difference.intervals["python"]
        found += low > 0
    assert found >= 90, found


def test_passes_that_drift_count_for_fewer():
    rng = np.random.default_rng(1)
    independent = [persistence([rng.standard_normal(n).tolist() for _ in range(2)]) for n in (4, 8, 30) * 100]
    assert np.mean(independent) < 0.1
    walk = [np.cumsum(rng.standard_normal(30)).tolist() for _ in range(2)]
    assert persistence(walk) > 0.5
    shuffled = [rng.permutation(side).tolist() for side in walk]
    assert half_width_of_difference(*walk, 0.95) > 1.5 * half_width_of_difference(*shuffled, 0.95)
    assert persistence([[1.0], [2.0]]) == persistence([[1.0] * 9, [2.0] * 9]) == 0.0
