"""The recommendations that follow from planted results, for and against a variant."""

import json
import math

import pytest

from tests.study.planting import sweep_file, write_run
from tracekit.errors.capturing import NothingCapturedError, StudyAmongOthersError
from tracekit.faces.shared.document import as_document
from tracekit.profile import open_subject
from tracekit.report import report as make_report
from tracekit.report.sections.variants import table
from tracekit.study import read_study
from tracekit.study.pairs import axis_effects, pairs
from tracekit.study.recommendations import recommend
from tracekit.study.settings import settings
from tracekit.sweep import SweepOptions, runner, sweep
from tracekit.tui.study import study_pages

GRID = '[sweep]\nrecipes = ["net.py"]\nvariants = ["eager", "compiled", "max-autotune"]\n'


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """A study in which each cell takes the ms that `cost(options)` returns, which may add arguments of `write_run`."""

    def plant(cost, text=GRID):
        def capture(options):
            ms, more = cost(options)
            return write_run(options, ms, **more)

        monkeypatch.setattr(runner, "capture", capture)
        sweep(SweepOptions(file=sweep_file(tmp_path, text), out=tmp_path / "study", tell=lambda _: None))
        return read_study(tmp_path / "study")

    return plant


def by_variant(eager, compiled, max_autotune):
    costs = {"eager": eager, "compiled": compiled, "max-autotune": max_autotune}
    return lambda options: costs[options.variants[0]]


def sentence(study):
    (setting,) = settings(study)
    return recommend(setting).sentence


def test_the_fastest_is_recommended_with_its_price(planted):
    study = planted(by_variant((10, {}), (8, {"compile_s": 20}), (5, {"compile_s": 90})))
    assert sentence(study) == (
        "net: use max-autotune, 2.0 × faster than eager (1.91–2.10), breaks even after 18,000 steps; "
        "compiled is only 1.25 × faster than eager (1.19–1.31)."
    )


def test_of_equally_fast_ones_the_cheaper_to_compile_wins(planted):
    study = planted(by_variant((10, {}), (8, {"compile_s": 20}), (7.999, {"compile_s": 540})))
    assert sentence(study).startswith("net: use compiled, 1.25 × faster than eager")
    assert "max-autotune is as fast within noise, but takes longer to compile (540 s)" in sentence(study)


def test_nothing_gained_means_stay(planted):
    study = planted(by_variant((10, {}), (10.001, {"compile_s": 9}), (12, {"compile_s": 540})))
    assert sentence(study) == (
        "net: stay with eager; compiled is within noise of eager; "
        "max-autotune is 1.20 × slower than eager (1.14–1.26) and takes 540 s to compile."
    )


def test_what_rests_on_one_pass_says_so(planted):
    study = planted(by_variant((10, {"passes": 1}), (8, {"passes": 1}), (5, {"passes": 1})))
    assert sentence(study).startswith("net: stay with eager; compiled cannot be told from eager: one pass each proves")
    (setting,) = settings(study)
    assert recommend(setting).basis == "one pass"


def test_what_is_within_noise_says_so(planted):
    study = planted(by_variant((10, {"spread": 0.5}), (9.9, {"spread": -0.5}), (10.1, {"spread": -0.5})))
    (setting,) = settings(study)
    made = recommend(setting)
    assert made.sentence.startswith("net: stay with eager; compiled is within noise of eager")
    assert (made.variant, made.basis) == ("eager", "within noise")


def test_what_rests_on_several_passes_names_them(planted):
    (setting,) = settings(planted(by_variant((10, {}), (8, {}), (5, {}))))
    assert recommend(setting).basis == "6 passes"


def test_what_computes_something_else_is_not_recommended(planted):
    study = planted(by_variant((10, {}), (5, {"losses": (1.0, 0.9)}), (20, {})))
    assert "stay with eager; compiled computes different losses" in sentence(study)


@pytest.mark.parametrize(
    ("reached", "said"),
    [
        ((0.80, 0.81, 0.80), "net: use compiled, 2.0 × faster than eager"),
        ((0.70, 0.71, 0.70), "net: stay with eager; compiled trains worse (test accuracy)"),
    ],
)
def test_what_trains_worse_is_not_recommended(planted, reached, said):
    eager = (0.80, 0.81, 0.80)

    def cost(options):
        ms, of = (10, eager) if options.variants[0] == "eager" else (5, reached)
        return ms, {"accuracy": of[options.seed]}

    study = planted(cost, GRID.replace(', "max-autotune"', "") + "seeds = [0, 1, 2]\n")
    assert sentence(study).startswith(said)
    assert ("no loss of test accuracy" in sentence(study)) == (reached == eager)


@pytest.fixture
def uneven(planted):
    """A study of two seeds; compiled fails with the first, with which everything takes ten times as long."""

    def cost(options):
        if (options.variants[0], options.seed) == ("compiled", 0):
            raise NothingCapturedError(options.program, "measure: OutOfMemoryError", "oom")
        return (10 if options.variants[0] == "eager" else 8) * (1 if options.seed else 10), {}

    return planted(cost, GRID.replace(', "max-autotune"', "") + "seeds = [0, 1]\n")


def test_variants_are_compared_by_the_seeds_that_both_have(uneven):
    (speed_up,) = settings(uneven)[0].speed_ups
    assert (speed_up.seeds, speed_up.speed_up) == (1, pytest.approx(1.25, rel=1e-2))
    assert speed_up.baseline.step_ns == pytest.approx(10e6, rel=1e-2)


def test_a_report_says_which_seeds_are_compared(uneven):
    document = json.dumps(as_document(make_report(open_subject([uneven.folder]))))
    assert "net: compiled and eager are compared by the seeds that both have: 1." in document


def test_a_cell_that_failed_has_no_speed_up(uneven):
    rows = {(row["variant"], row["seed"]): row for row in study_pages(uneven.folder).pages[0].table.to_pylist()}
    assert rows["compiled", 0]["speed_up"] is None
    assert rows["compiled", 1]["speed_up"] == pytest.approx(1.25, rel=1e-2)


def test_without_a_common_seed_nothing_is_compared(planted):
    def cost(options):
        if (options.variants[0] == "eager") == (options.seed == 0):
            return 10, {}
        raise NothingCapturedError(options.program, "measure: OutOfMemoryError", "oom")

    study = planted(cost, GRID.replace(', "max-autotune"', "") + "seeds = [0, 1]\n")
    assert "compiled has no seed in common with eager, so they cannot be compared" in sentence(study)


def test_the_interval_covers_the_seeds(planted):
    ms = {("eager", 0): 10, ("compiled", 0): 8, ("eager", 1): 10, ("compiled", 1): 13}
    text = GRID.replace(', "max-autotune"', "") + "seeds = [0, 1]\n"
    (setting,) = settings(planted(lambda options: (ms[options.variants[0], options.seed], {}), text))
    (speed_up,) = setting.speed_ups
    assert speed_up.time_ratio == pytest.approx((0.8 * 1.3) ** 0.5, rel=1e-3)
    assert (speed_up.seeds, speed_up.noise) == (2, True)
    low, high = speed_up.interval
    assert math.log(high / low) == pytest.approx(12.706 * math.log(1.3 / 0.8), rel=1e-3)  # Student's t for 95 %


def test_one_axis_at_a_time(planted):
    text = (
        GRID.replace('"compiled", "max-autotune"', '"compiled", "compiled:dynamic=true"')
        + '[sweep.params]\nmodel = ["a", "b"]\n'
    )
    times = {"eager": 10, "compiled": 5, "compiled:dynamic=true": 6}
    study = planted(
        lambda options: (times[options.variants[0]] * (1 if options.params["model"] == "a" else 3), {}), text
    )
    effects = {
        (each.axis, each.value): (each.reference, each.pairs, round(each.ratio, 3)) for each in axis_effects(study)
    }
    assert effects == {
        ("mode", "default"): ("eager", 2, 0.5),
        ("dynamic", "true"): ("auto", 2, 1.2),
        ("model", "b"): ("a", 3, 3.0),
    }


def test_a_study_opens_like_a_run(planted, tmp_path):
    study = planted(by_variant((10, {}), (8, {}), (5, {})))
    report = make_report(open_subject([study.folder]))
    document = json.loads(json.dumps(as_document(report)))
    first = [section["id"] for section in document["sections"]][:4]
    assert first == ["overview", "recommendations", "by_mode", "speed_ups"]
    assert [each["name"] for each in document["variants"]] == [
        f"net seed=0: {name}" for name in ("eager", "compiled", "max-autotune")
    ]
    rows = table(report).to_pylist()
    assert [(row["recipe"], row["seed"], row["workload"], round(row["step_ns"] / 1e6)) for row in rows] == [
        ("net", 0, "training", 10), ("net", 0, "training", 8), ("net", 0, "training", 5),
    ]  # fmt: skip
    assert all((study.folder / "cells" / row["cell"]).is_dir() for row in rows)
    with pytest.raises(StudyAmongOthersError):
        open_subject([study.folder, tmp_path / "trace.json"])


def test_a_pair_names_what_it_has_in_common_in_the_order_of_the_study(planted):
    text = GRID.replace('"max-autotune"]', '"max-autotune"]\nseeds = [0, 1]')
    found = [*pairs(planted(lambda options: (1.0, {}), text), "seed", "1", "0")]
    assert found
    for pair in found:
        axes = [*pair.result.cell.axes]
        assert [*pair.common] == [name for name in axes if name in pair.common]
        assert len(pair.common) > 2
