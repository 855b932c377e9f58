"""One typical step of each variant, on one scale; and the picture of them."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
import small

from tracekit.faces.shared.timeline_svg import LaneDrawing, svg, typical_step_svg, typical_steps
from tracekit.profile import Profile, open_subject
from tracekit.timeline import CATEGORIES, CATEGORY, Index

HOSTILE = '</svg><script>alert("x")</script>\x1b[31m'

pytestmark = pytest.mark.usefixtures("own_cache")


def pair(folder: Path, name: str = "gemm") -> list[Profile]:
    """Two variants, with steps of 80 and of 160 columns; a column is 1 µs."""
    events = {
        "short": [
            small.step(3, 1000, 1080),
            small.op("aten::mm", 1010, 1030),
            small.launch(1015, 1020, 1),
            small.kernel(name, 1020, 1060, 1),
        ],
        "long": [
            small.step(5, 7000, 7160),
            small.op("aten::mm", 7000, 7100),
            small.launch(7010, 7020, 1),
            small.kernel(name, 7040, 7160, 1),
            small.kernel("after the step", 7170, 7180, 2),
        ],
    }
    paths = [small.write(folder / f"{stem}.json", *each) for stem, each in events.items()]
    return open_subject(paths).profiles


def stretches(lane: LaneDrawing) -> list[tuple[int, int, str, int]]:
    keys = [CATEGORIES[code].key for code in lane.category]
    return list(zip(lane.first.tolist(), lane.stop.tolist(), keys, lane.level.tolist(), strict=True))


def test_steps_begin_together_and_are_equally_near(tmp_path: Path) -> None:
    steps = typical_steps([Index.of(profile) for profile in pair(tmp_path)], columns=160)
    assert (steps.span_ns, [(still.variant, still.step, still.dur_ns) for still in steps.stills]) == (
        160_000,
        [("short", 3, 80_000), ("long", 5, 160_000)],
    )
    short, long = ({lane.title or lane.family: lane for lane in still.lanes} for still in steps.stills)
    assert stretches(short["stream 7"]) == [(20, 60, "gpu_compute", 8)]
    assert stretches(long["stream 7"]) == [(40, 160, "gpu_compute", 8)]  # and nothing that follows the step
    assert stretches(short["main thread"]) == [(10, 30, "dispatch", 8)]
    assert stretches(short["host"]) == [(15, 20, "kernel_launch", 8)]
    (named,) = short["stream 7"].named_events
    assert (named.first, named.stop, named.category, named.names, named.dur_ns) == (
        20,
        60,
        CATEGORY["gpu_compute"],
        ("gemm",),
        40_000,
    )


def test_a_column_that_is_half_covered_is_half_as_high(tmp_path: Path) -> None:
    steps = typical_steps([Index.of(profile) for profile in pair(tmp_path)], columns=2)
    lane = next(lane for lane in steps.stills[0].lanes if lane.title == "stream 7")
    assert stretches(lane) == [(0, 1, "gpu_compute", 4)]


def test_the_picture_is_drawn_to_scale_and_says_what_it_shows(tmp_path: Path) -> None:
    profiles = pair(tmp_path)
    picture = ElementTree.fromstring(typical_step_svg(profiles))
    assert picture.get("aria-label") == "short: step 3, 80.0 µs; long: step 5, 160 µs"
    texts = ["".join(each.itertext()) for each in picture.iter() if each.tag == "text"]
    assert {"short, step 3: 80.0 µs", "long, step 5: 160 µs", "stream 7", "gemm", "GPU compute"} <= {*texts}
    events = [each for each in picture.iter("rect") if (each.get("class") or "").startswith("event")]
    widths = [float(each.get("width", "0")) for each in events if "gemm" in "".join(each.itertext())]
    assert widths == [pytest.approx(870 * 40 / 160, abs=0.6), pytest.approx(870 * 120 / 160, abs=0.6)]
    assert svg(typical_steps([])).count("<path") <= 10
    assert typical_step_svg([]) == ""


def test_hostile_names_are_shown(tmp_path: Path) -> None:
    text = typical_step_svg(pair(tmp_path, HOSTILE))
    assert "<script" not in text
    assert "\x1b" not in text
    assert "&lt;/svg&gt;" in text
    ElementTree.fromstring(text)
