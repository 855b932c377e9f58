"""Steps that recording stretches, calibrated to unprofiled ones: held against the same worlds without a recording."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.world.captures import capture
from tests.world.causes import Cause, CopyBack, Garbage, ManySmallOperators, PageableCopy, ReadBack, SlowPython
from tests.world.kineto import Switches
from tests.world.machine import Recorder
from tests.world.training import Script
from tests.world.worlds import World
from tracekit.faces.shared.document import as_document
from tracekit.findings import diagnose
from tracekit.profile import Profile, open_subject
from tracekit.report import Report, report
from tracekit.report.sections.headline import headline

RECORDER = Recorder(operator=2_200, frame=700, call=1_300)
SMALL = Script(seed=1, kernel_ns=8_000, layers=10)  # the host cannot keep up


def reported(folder: Path, worlds: Mapping[str, World], recorder: Recorder = RECORDER, **options: object) -> Report:
    folder.mkdir(exist_ok=True)
    return report(open_subject([capture(folder, worlds, recorder, **options)]))  # type: ignore[arg-type]


def truth(folder: Path, world: World) -> Profile:
    """The world as a recording that costs nothing shows it."""
    folder.mkdir(exist_ok=True)
    return open_subject([world.write(folder / "truth")]).profiles[0]


def mixture(seed: int) -> dict[str, World]:
    """An eager network, a compiled one, and two with causes."""
    draw = random.Random(seed)
    script = Script(
        seed, layers=draw.randint(5, 14), kernel_ns=draw.randint(3_000, 12_000), dispatch_ns=draw.randint(4_000, 9_000)
    )
    step = World(script).step_ns
    causes: list[Cause] = [
        SlowPython(int(step * draw.uniform(0.1, 0.8)), 2),
        ManySmallOperators(draw.randint(1_500, 4_000), draw.randint(60, 200)),
        PageableCopy(int(step * draw.uniform(0.1, 0.6))),
        Garbage(int(step * draw.uniform(0.3, 1.0))),
        ReadBack(0, draw.randint(1, 8)),
    ]
    one, other = draw.sample(causes, 2)
    switches = Switches(stacks=draw.random() < 0.5)
    return {
        "eager": World(script, switches=switches),
        "compiled": World(replace(script, compiled=True), switches=switches),
        "one": World(script, (one,), switches=switches),
        "other": World(script, (other,), switches=switches),
    }


@pytest.mark.parametrize("seed", [2, 3, 5, 6])
def test_every_bucket_is_that_of_the_unprofiled_step(tmp_path: Path, seed: int) -> None:
    draw = random.Random(-seed)
    recorder = Recorder(draw.randint(1_500, 3_000), draw.randint(300, 900), draw.randint(1_000, 2_500))
    worlds = mixture(seed)
    made = reported(tmp_path, worlds, recorder)
    for profile in made.profiles:
        step, calibration = worlds[profile.name].step_ns, made.calibrated[profile.name]
        mean = truth(tmp_path / f"{profile.name} alone", worlds[profile.name]).means["wall"]
        assert mean is not None
        assert sum(calibration.wall.values()) == pytest.approx(step, rel=0.01)
        assert max(abs(calibration.wall[key] - ns) for key, ns in mean.parts.items()) < 0.05 * step
        traced = profile.means["wall"]
        assert traced is not None
        assert sum(traced.parts.values()) > 1.1 * step


def test_the_cost_of_each_kind_of_event_is_found_where_variants_tell_them_apart(tmp_path: Path) -> None:
    many = World(replace(SMALL, layers=4), (ManySmallOperators(2_000, 150),), switches=Switches(stacks=False))
    worlds = {"many": many, "eager": World(SMALL, switches=Switches(stacks=False))}
    worlds["compiled"] = replace(worlds["eager"], script=replace(SMALL, compiled=True))
    made = reported(tmp_path, worlds)
    for calibration in made.calibrated.values():
        assert calibration.overhead["operator"] == pytest.approx(RECORDER.operator, rel=0.1)
        assert calibration.overhead["call"] == pytest.approx(RECORDER.call, rel=0.2)
        assert abs(calibration.error) < 0.05


def test_what_two_variants_cannot_tell_is_a_range_in_sentences_and_costs() -> None:
    made = report(open_subject([Path(__file__).parents[2] / "sample_traces" / "h100" / "self_loops" / "run.json"]))
    estimate = made.calibrated["before"]
    assert estimate.other is not None
    (section,) = (section for section in made.sections if section.id == "calibrated")
    told = section.blocks[0].lines[0]  # type: ignore[union-attr]
    assert "Two variants cannot tell the kinds of events apart: " in told
    document = next(each for each in as_document(made)["variants"] if each["name"] == "before")["calibrated"]
    assert document["other"]["event_ns"] == estimate.other.overhead != document["event_ns"]
    building = next(each for each in made.diagnoses["before"].all_findings if each.id == "graph_building")
    said = re.search(r"which explain both variants as well, it is up to (\d+) µs\.", building.why)
    assert said is not None
    assert building.cost_ns is not None
    assert abs(int(said[1]) * 1000 - building.cost_ns) > 0.1 * building.cost_ns


@pytest.mark.parametrize("cause", [CopyBack(300_000), PageableCopy(300_000), Garbage(400_000)])
def test_a_finding_costs_what_the_unprofiled_step_would_save(tmp_path: Path, cause: Cause) -> None:
    worlds = {"eager": World(SMALL), "slow": World(SMALL, (cause,)), "compiled": World(replace(SMALL, compiled=True))}
    made = reported(tmp_path, worlds)
    profile = next(each for each in made.profiles if each.name == "slow")
    share = worlds["slow"].savings[cause] / worlds["slow"].step_ns

    def told(findings: object) -> float:
        return next(each.share for each in findings if each.id in cause.ids)  # type: ignore[attr-defined, no-any-return]

    assert told(made.diagnoses["slow"].all_findings) == pytest.approx(share, rel=0.07)
    assert told(diagnose(profile).all_findings) < 0.88 * share


def test_a_comparison_has_the_sign_and_the_size_of_the_unprofiled_one(tmp_path: Path) -> None:
    worlds = {"eager": World(SMALL, (SlowPython(110_000),)), "compiled": World(replace(SMALL, compiled=True))}
    made = reported(tmp_path, worlds)
    (entry,) = made.comparisons
    saved = worlds["compiled"].step_ns - worlds["eager"].step_ns
    change = made.calibrated_difference(entry)
    assert entry.wall is not None
    assert change is not None
    assert saved < 0 < entry.wall.delta_ns
    assert change.delta_ns == pytest.approx(saved, abs=0.01 * worlds["eager"].step_ns)
    (sentence,) = headline(made)
    assert "Without the profiler's own time (an estimate), a step changes by −" in sentence
    (told,) = as_document(made)["comparison"]
    assert told["calibrated"]["delta_ns"] == sum(told["calibrated"]["wall"].values()) == change.delta_ns
    assert told["delta_ns"] == entry.wall.delta_ns


def why_not(made: Report) -> set[str]:
    return {each.why_not for each in made.calibrations.values()}


def test_one_variant_is_too_few(tmp_path: Path) -> None:
    made = reported(tmp_path, {"eager": World(SMALL)})
    assert why_not(made) == {"the estimate needs two variants with a trace and unprofiled passes"}
    assert any("are not calibrated: the estimate needs two variants" in note.text for note in made.notes)


def test_what_recorded_events_do_not_explain_is_not_calibrated(tmp_path: Path) -> None:
    worlds = {
        "eager": World(SMALL),
        "compiled": World(replace(SMALL, compiled=True)),
        "slow": World(replace(SMALL, seed=2)),
    }
    made = reported(tmp_path, worlds, unprofiled={"slow": 0.5})
    assert "recorded events, at the cost that other variants tell, do not explain it" in why_not(made)
    assert "slow" not in made.calibrated


def test_a_recording_that_hardly_stretches_steps_needs_none(tmp_path: Path) -> None:
    worlds = {"eager": World(SMALL), "compiled": World(replace(SMALL, compiled=True))}
    made = reported(tmp_path, worlds, Recorder(operator=200, call=100))
    assert made.calibrations == {}
    assert "calibrated" not in {each.id for each in made.sections}
    assert as_document(made)["variants"][0]["calibrated"] is None


def test_a_bare_trace_is_not_calibrated(tmp_path: Path) -> None:
    assert report(open_subject([World(SMALL).write(tmp_path / "bare")])).calibrations == {}
