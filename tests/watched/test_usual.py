"""What is usual: quiet loops raise no alarm, planted slow steps are caught, and a trend is told once."""

import json
import random
from collections import Counter
from itertools import chain
from pathlib import Path

import pytest

from tests.watched.planted_steps import QUIET, a_step, caught, false_alarms, loop, verdicts
from tracekit.watched.usual import BLOCK_STEPS, FIRST_STEPS, LEAST_NS, LEVEL_STEPS, Usual

SAMPLES = Path(__file__).parents[2] / "sample_traces"
MS = 1_000_000


@pytest.mark.parametrize("noise", QUIET)
def test_a_quiet_loop_raises_at_most_one_alarm_in_10_000_steps(noise):
    assert false_alarms(QUIET[noise], 10_000, 100 * MS) <= 1
    assert false_alarms(QUIET[noise], 10_000, 100 * MS, together=64) <= 1


@pytest.mark.parametrize(
    "noise", ["constant", "gauss 2 %", "quantised", "t with 3 degrees of freedom, 1 %", "wandering pace"]
)
@pytest.mark.parametrize("usual_ns", [10 * MS, 300 * MS])
def test_a_step_that_takes_1_6_times_as_long_is_caught(noise, usual_ns):
    hits, planted = caught(QUIET[noise], 4_000, usual_ns, 1.6, 0.02)
    assert planted > 50
    assert hits >= 0.95 * planted


@pytest.mark.parametrize("together", [1, 64])
def test_one_step_in_forty_may_be_slow(together):
    hits, planted = caught(QUIET["gauss 2 %"], 8_000, 20 * MS, 3, 1 / 40, together=together)
    assert planted > 150
    assert hits >= 0.95 * planted


def _recorded() -> list[list[int]]:
    """The step times of the sample runs, unprofiled, that were measured on an H100."""
    series = set()

    def look(value: object) -> None:
        if isinstance(value, dict):
            series.update(tuple(value[key]) for key in ("step_all_ns",) if value.get(key))
            value = list(value.values())
        for part in value if isinstance(value, list) else ():
            look(part)

    for path in SAMPLES.glob("h100/*/run.json"):
        look(json.loads(path.read_text()))
    return [list(each) for each in sorted(series)]


@pytest.mark.parametrize("together", [1, 64])
def test_recorded_steps_of_a_gpu_raise_an_alarm_in_one_place_only(together):
    recorded = _recorded()
    assert sum(map(len, recorded)) > 9_000
    alarms = [[number for number, verdict in enumerate(verdicts(each, together)) if verdict.slow] for each in recorded]
    burst = max(alarms, key=len)
    assert sum(map(len, alarms)) == len(burst) <= 5
    assert burst[-1] - burst[0] < 10  # where 4 steps in a row took 5 times as long as usual


def test_nothing_is_said_of_the_first_steps():
    said = verdicts([9_000 * MS, *[10 * MS] * FIRST_STEPS])
    assert [verdict.limit_ns for verdict in said[:FIRST_STEPS]] == [-1] * FIRST_STEPS
    assert said[FIRST_STEPS].usual_ns == 10 * MS  # a slow beginning is not usual


def test_less_than_the_least_is_never_slow():
    said = verdicts([100_000] * 100 + [100_000 + LEAST_NS, 100_001 + LEAST_NS])
    assert [verdict.slow for verdict in said[-2:]] == [False, True]


@pytest.mark.parametrize("together", [1, 64])
def test_steps_that_lengthen_are_told_once_and_none_is_slow(together):
    growing = (10 * MS + number * 10_000 for number in range(1_400))  # 10 ms, then 24 ms
    said = verdicts(growing, together)
    assert not any(verdict.slow for verdict in said)
    (told,) = (number for number, verdict in enumerate(said) if verdict.trend)
    assert (
        400 < told < 400 + FIRST_STEPS + 5 * BLOCK_STEPS
    )  # a quarter longer than the first four blocks, for four more


def test_fast_growth_is_told_again_when_steps_have_doubled():
    said = verdicts(int(10 * MS * 1.002**number) for number in range(2_000))  # 55 times as long at the end
    assert not any(verdict.slow for verdict in said)
    assert 3 <= sum(verdict.trend for verdict in said) <= 6


def test_a_new_level_is_usual_after_half_the_window_and_told_once():
    said = verdicts(chain([10 * MS] * 200, [20 * MS] * 1_000))
    slow = [number for number, verdict in enumerate(said) if verdict.slow]
    assert slow == list(range(200, 200 + LEVEL_STEPS // 2 + 1))
    assert sum(verdict.trend for verdict in said) == 1
    assert said[-1].usual_ns == 20 * MS


def test_the_first_step_of_each_epoch_is_periodic_after_three():
    durations = [100 * MS if number % 70 == 0 else 10 * MS for number in range(1, 1_000)]
    usual = Usual()
    said = {number: usual.judge(a_step(number, step_ns)) for number, step_ns in enumerate(durations, 1)}
    assert [number for number, verdict in said.items() if verdict.slow] == [70, 140, 210]
    assert [(number, verdict.period) for number, verdict in said.items() if verdict.period][:2] == [
        (280, 70),
        (350, 70),
    ]
    assert sum(bool(verdict.period) for verdict in said.values()) == 11
    worse = usual.judge(a_step(1_050, 300 * MS))
    assert worse.slow
    assert not worse.period


@pytest.mark.parametrize("noise", ["gauss 10 %", "t with 3 degrees of freedom, 1 %", "every 10th 3 times as long"])
def test_at_a_glance_the_same_is_said(noise):
    judged, glanced = Usual(), Usual()
    seen = 0
    for number, usual_ns in enumerate(loop(QUIET[noise], 3_000, MS // 2)):
        step = a_step(number, usual_ns + (7 * MS if number % 97 == 96 else 0))
        verdict = glanced.at_a_glance(number, step.step_ns)
        seen += verdict is not None
        assert judged.judge(step) == (glanced.judge(step) if verdict is None else verdict)
    assert seen > 1_500


def test_what_was_not_timed_is_not_judged():
    usual = Usual()
    for number in range(100):
        usual.judge(a_step(number))
    assert usual.judge(a_step(100, -1)).limit_ns == -1
    assert usual.typical.step_ns == 10 * MS


def test_all_steps_may_take_no_time():
    assert not any(verdict.slow for verdict in verdicts(iter([0] * 200)))


def test_a_usual_step_has_the_medians_of_what_was_observed():
    usual = Usual()
    for number, step_ns in enumerate(loop(QUIET["gauss 2 %"], 300)):
        usual.judge(a_step(number, step_ns, waited_ns=1000 + number % 3, edges=-1))
    assert usual.typical.waited_ns == 1001
    assert usual.typical.edges == -1


SHORT = 500_000  # ns


def short_loop(steps, spikes, usual_ns=SHORT):
    """The durations of short steps that scatter, and of some that last 6 ms."""
    pace = loop(QUIET["gauss 10 %"], steps, usual_ns)
    return [6 * MS if number in spikes else step_ns for number, step_ns in enumerate(pace)]


def test_of_short_steps_one_in_a_hundred_is_caught():
    source = random.Random(2)
    spikes = {number for number in range(1_000, 50_000) if source.random() < 0.01}
    said = verdicts(short_loop(50_000, spikes))
    slow = {number for number, verdict in enumerate(said) if verdict.slow or verdict.period}
    assert slow <= spikes
    assert len(slow) >= 0.95 * len(spikes) > 400
    assert not any(verdict.trend for verdict in said)


@pytest.mark.parametrize("usual_ns", [50_000, SHORT, 2 * MS])
def test_short_steps_have_a_new_level_after_half_the_window(usual_ns):
    said = verdicts(chain(short_loop(20_000, (), usual_ns), [20 * MS] * 1_000))
    slow = [number for number, verdict in enumerate(said) if verdict.slow]
    assert slow == [*range(20_000, 20_000 + len(slow))]
    assert LEVEL_STEPS // 2 <= len(slow) <= LEVEL_STEPS // 2 + 2
    assert sum(verdict.trend for verdict in said) == 1
    assert said[-1].usual_ns == 20 * MS


@pytest.mark.parametrize("usual_ns", [SHORT, 1 * MS])
@pytest.mark.parametrize("noise", QUIET)
def test_quiet_loops_of_short_steps_raise_no_alarm(noise, usual_ns):
    assert false_alarms(QUIET[noise], 10_000, usual_ns) == 0


@pytest.mark.parametrize("period", [3, 8, 21, 55])
def test_short_steps_of_a_rarer_kind_raise_few_alarms(period):
    durations = [8 * MS if number % period == 0 and number > 2_000 else SHORT for number in range(20_000)]
    assert sum(verdict.slow for verdict in verdicts(iter(durations))) < 10


def test_short_steps_are_learnt_from_at_no_fixed_interval():
    usual = Usual()
    for number in range(1_000):
        usual.judge(a_step(number, SHORT))
    learnt = [number for number in range(1_000, 11_000) if usual.at_a_glance(number, SHORT) is None]
    assert len(learnt) == pytest.approx(10_000 * 2 * SHORT / LEAST_NS, rel=0.05)
    for kinds in (2, 3, 4, 5, 8, 10, 16):
        assert min(Counter(number % kinds for number in learnt).values()) > 0.7 * len(learnt) / kinds
    assert usual.at_a_glance(11_000, 20 * MS) is None
    assert usual.at_a_glance(11_000, -1) is None
    skipped = {*range(1_000, 11_000)}.difference(learnt)
    assert all(usual.at_a_glance(number, 5 * MS).limit_ns == SHORT + LEAST_NS for number in skipped)
