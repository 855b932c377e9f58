"""The events of a step on a lane, and how many of them a page holds."""

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
import small

from tracekit.faces.shared import timeline_svg
from tracekit.faces.shared.timeline_svg import EventKind, step_events
from tracekit.profile import Profile, open_subject
from tracekit.timeline import CATEGORY, Index

pytestmark = pytest.mark.usefixtures("own_cache")


def a_step(folder: Path) -> Profile:
    """A step of 80 µs with kernels of 5, 10 and 20 µs, and one after it."""
    kernels = [(1010, 1015), (1020, 1030), (1040, 1060), (1090, 1095)]
    work = [
        each
        for number, (begin, end) in enumerate(kernels, 1)
        for each in (small.launch(begin - 8, begin - 7, number), small.kernel(f"gemm{number % 2}", begin, end, number))
    ]
    return open_subject([small.write(folder / "trace.json", small.step(1, 1000, 1080), *work)]).profiles[0]


def document(profile: Profile) -> dict[str, Any]:
    (data,) = re.findall(r'data-events="([^"]*)"', timeline_svg.typical_step_svg([profile]))
    found: dict[str, Any] = json.loads(html.unescape(data))
    return found


def test_events_are_cut_at_the_ends_of_what_is_asked_for(tmp_path: Path) -> None:
    index = Index.of(a_step(tmp_path))
    stream = next(group for group in index.groups if group.family == "gpu")
    origin = int(stream.lanes[0].start[0]) - 10_000  # ns; where the step begins
    found = step_events(index, stream, 0, origin + 12_000, origin + 50_000)
    assert (found.start_ns.tolist(), found.dur_ns.tolist()) == ([0, 8_000, 28_000], [3_000, 10_000, 10_000])
    compute = CATEGORY["gpu_compute"]
    assert [found.kinds[kind] for kind in found.kind] == [
        EventKind("gemm1", "gemm1", compute),
        EventKind("gemm0", "gemm0", compute),
        EventKind("gemm1", "gemm1", compute),
    ]


def test_the_page_has_every_event_and_gap_of_the_step(tmp_path: Path) -> None:
    found = document(a_step(tmp_path))
    assert found["shown"] == found["all"]
    stream, idle = (next(lane for lane in found["lanes"] if lane["family"] == family) for family in ("gpu", "idle"))
    assert stream["dur"][:3] == [5_000, 10_000, 20_000]
    assert stream["start"][1:3] == [10_000, 20_000]  # each from the start before it
    assert {5_000, 10_000} <= {*idle["dur"]}
    assert [found["kinds"][kind][0] for kind in stream["kind"][:3]] == ["gemm1", "gemm0", "gemm1"]


@pytest.mark.parametrize("limit", ["_MOST_EVENTS", "_MOST_BYTES"])
def test_of_more_events_the_page_has_the_longest(limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    profile = a_step(tmp_path)
    everything = document(profile)
    size = len(html.escape(json.dumps(everything, ensure_ascii=False, separators=(",", ":"))).encode())
    monkeypatch.setattr(timeline_svg, limit, {"_MOST_EVENTS": 4, "_MOST_BYTES": size - 1}[limit])
    found = document(profile)
    assert 0 < found["shown"] < found["all"] == everything["all"]
    kept = sorted(dur for lane in found["lanes"] for dur in lane["dur"])
    assert kept == sorted(dur for lane in everything["lanes"] for dur in lane["dur"])[-len(kept) :]
