"""The lanes of a variant: every event on exactly one, in the order in which people look at them."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import small
from real import trace_path

from tracekit.profile import Profile, open_subject
from tracekit.timeline import CATEGORIES, CATEGORY, Index
from tracekit.timeline.categories import FRAMES, GPU, HOST

pytestmark = pytest.mark.usefixtures("own_cache")


def profile_of(path: Path) -> Profile:
    (profile,) = open_subject([path]).profiles
    return profile


def test_the_lanes_of_a_small_trace(tmp_path: Path) -> None:
    index = Index.of(profile_of(small.training(tmp_path / "trace.json", steps=3)))
    assert [(group.family, group.title, [len(lane) for lane in group.lanes]) for group in index.groups] == [
        ("wall", "wall", [18]),
        ("gpu", "stream 7", [3]),
        ("idle", "GPU idle", [4]),
        ("host", "main thread", [6, 3]),  # the operator and the sync, and the launch inside the operator
    ]
    host = index.groups[3].lanes
    kinds = [[CATEGORIES[code].key for code in lane.category] for lane in host]
    assert kinds == [["dispatch", "sync"] * 3, ["kernel_launch"] * 3]
    assert (host[0].start[:2].tolist(), host[0].end[:2].tolist()) == ([20_000, 65_000], [60_000, 80_000])
    assert index.groups[2].lanes[0].end[0] == 45_000  # idle until the first kernel
    assert (index.low, index.high) == (0, 2_112_000)


def test_compiling_has_lanes_and_streams_that_overlap_have_two(tmp_path: Path) -> None:
    path = small.write(
        tmp_path / "trace.json",
        small.step(0, 0, 100),
        small.op("entire_frame_compile (dynamo_timed)", 5, 40),
        small.op("compile_inner (dynamo_timed)", 10, 30),
        small.launch(50, 55, 1),
        small.launch(56, 60, 2),
        small.kernel("one", 60, 80, 1),
        small.kernel("two", 70, 90, 2),
    )
    groups = {group.family: group for group in Index.of(profile_of(path)).groups}
    assert [lane.start.tolist() for lane in groups["compile"].lanes] == [[5_000], [10_000]]
    assert [lane.end.tolist() for lane in groups["gpu"].lanes] == [[80_000], [90_000]]


def test_without_a_gpu_there_is_no_gap_of_it(tmp_path: Path) -> None:
    path = small.write(tmp_path / "trace.json", small.step(0, 0, 50), small.op("aten::mm", 10, 40))
    index = Index.of(profile_of(path))
    assert [group.family for group in index.groups] == ["wall", "host"]
    assert index.groups[1].lanes[0].category.tolist() == [CATEGORY["cpu_compute"]]


def test_a_typical_step_lasts_as_long_as_most(tmp_path: Path) -> None:
    events = [
        each
        for number, (start, length) in enumerate([(0, 90), (100, 40), (200, 50), (300, 10), (400, 60)])
        for each in (small.step(number, start, start + length), small.op("aten::mm", start, start + length))
    ]
    assert Index.of(profile_of(small.write(tmp_path / "trace.json", *events))).typical_step == 2


@pytest.mark.traces
@pytest.mark.parametrize(
    "name", ["leimao_eager_rtx5080", "luatil_compile_cudagraph_rtx3060", "kineto_resnet50_v100_dataloader4"]
)
def test_every_event_of_a_real_trace_lies_on_one_lane(name: str) -> None:
    profile = profile_of(trace_path(name))
    index = Index.of(profile)
    chosen = {"gpu": GPU, "host": HOST, "frames": FRAMES}
    shown = Counter(
        row for group in index.groups if group.family in chosen for lane in group.lanes for row in lane.row.tolist()
    )
    assert set(shown.values()) == {1}
    assert sorted(shown) == np.flatnonzero(index.kinds.lanes >= 0).tolist()
    for group in index.groups:
        for lane in group.lanes:
            assert (lane.start[1:] >= lane.end[:-1]).all()
    wall = index.groups[0].lanes[0]
    bounds = np.concatenate(([index.low], np.sort(np.concatenate(index.step_bounds)), [index.high]))
    edges = np.unique(bounds)
    assert wall.columns(edges).covered_ns.sum() == profile.views["wall"].totals[profile.views["wall"].known].sum()
