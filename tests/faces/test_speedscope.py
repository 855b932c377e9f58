"""A file for speedscope is valid, its frames nest, and no ns of the trace's events is lost or added."""

import json
from collections import Counter

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from real import trace_path
from small import event, kernel, launch, op, step, training, write

from tracekit.base.intervals import Union
from tracekit.cli import main
from tracekit.faces import Options
from tracekit.faces.speedscope import nested, render
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.trace.roles import OVERHEAD

# Written by hand after speedscope's own types (src/lib/file-format-spec.ts in github.com/jlfwong/speedscope), and
# stricter: nothing else is allowed, and frames and moments are whole numbers that JavaScript holds exactly.
WHOLE = {"type": "integer", "minimum": 0, "maximum": 2**53 - 1}
FRAME = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "file": {"type": "string"}, "line": WHOLE, "col": WHOLE},
    "required": ["name"],
    "additionalProperties": False,
}
EVENT = {
    "type": "object",
    "properties": {"type": {"enum": ["O", "C"]}, "frame": WHOLE, "at": WHOLE},
    "required": ["type", "frame", "at"],
    "additionalProperties": False,
}
PROFILE = {
    "type": "object",
    "properties": {
        "type": {"const": "evented"},
        "name": {"type": "string"},
        "unit": {"const": "nanoseconds"},
        "startValue": WHOLE,
        "endValue": WHOLE,
        "events": {"type": "array", "items": EVENT},
    },
    "required": ["type", "name", "unit", "startValue", "endValue", "events"],
    "additionalProperties": False,
}
FILE = {
    "type": "object",
    "properties": {
        "$schema": {"const": "https://www.speedscope.app/file-format-schema.json"},
        "shared": {
            "type": "object",
            "properties": {"frames": {"type": "array", "items": FRAME}},
            "required": ["frames"],
            "additionalProperties": False,
        },
        "profiles": {"type": "array", "items": PROFILE},
        "name": {"type": "string"},
        "activeProfileIndex": WHOLE,
        "exporter": {"type": "string"},
    },
    "required": ["$schema", "shared", "profiles"],
    "additionalProperties": False,
}


def exported(path, number=None):
    """The profile of a trace, and its file, which is valid."""
    opened = report(open_subject([path]))
    document = json.loads(render(opened, Options(step=number)))
    jsonschema.validate(document, FILE)
    return opened.profiles[0], document


def spans(parts):
    """Each stretch of a frame: its depth, frame, start and end, in order of ends. They nest, and are in order."""
    stack, found, clock = [], [], 0
    for kind, frame, at in parts:
        assert at >= clock
        clock = at
        if kind == "O":
            stack.append((frame, at))
        else:
            opened, start = stack.pop()
            assert opened == frame
            found.append((len(stack), frame, start, at))
    assert not stack
    return found


def spans_of(profile):
    assert all(event["at"] <= profile["endValue"] for event in profile["events"])
    return spans((event["type"], event["frame"], event["at"]) for event in profile["events"])


def test_a_known_trace(tmp_path):
    path = write(
        tmp_path / "t.json",
        step(7, 0, 100),
        event("python_function", "train.py(3): forward", 5, 60),
        op("aten::mm", 10, 40),
        launch(20, 30, 1),
        kernel("gemm", 35, 90.001, 1),
    )
    _, document = exported(path)
    host, stream = document["profiles"]
    names = [frame["name"] for frame in document["shared"]["frames"]]
    assert (host["name"], stream["name"], document["activeProfileIndex"]) == ("main thread", "stream 7", 0)
    assert host["endValue"] == stream["endValue"] == 100_000
    assert [(depth, names[frame], start, end) for depth, frame, start, end in sorted(spans_of(host))] == [
        (0, "ProfilerStep#7", 0, 100_000),
        (1, "forward", 5_000, 60_000),
        (2, "aten::mm", 10_000, 40_000),
        (3, "cudaLaunchKernel", 20_000, 30_000),
    ]
    assert [(names[frame], start, end) for _, frame, start, end in spans_of(stream)] == [("gemm", 35_000, 90_001)]
    frames = {frame["name"]: frame for frame in document["shared"]["frames"]}
    assert frames["forward"] == {"name": "forward", "file": "train.py", "line": 3}


def test_one_step(tmp_path):
    path = training(tmp_path / "t.json")
    profile, document = exported(path, 2)
    view = profile.attribution.answered_view
    host, stream = document["profiles"]
    assert host["endValue"] <= int(view.step_ns[2])
    kernels = [end - start for _, _, start, end in spans_of(stream)]
    assert kernels == [30_000]
    assert sum(len(each["events"]) for each in document["profiles"]) < sum(
        len(each["events"]) for each in exported(path)[1]["profiles"]
    )


@pytest.mark.parametrize("name", ["leimao_eager_rtx5080", "luatil_compile_rtx3060", "kineto_resnet50_v100_dataloader4"])
def test_weights_are_those_of_the_trace_to_the_ns(name):
    profile, document = exported(trace_path(name))
    trace, roles = profile.trace, profile.trace.roles
    drawn = (trace.dur_ns > 0) & (roles.host | (roles.kind == OVERHEAD) | roles.gpu)
    tracks = np.unique(trace.track[drawn])
    assert len(document["profiles"]) == len(tracks)
    expected, found = Counter(), Counter()
    for track in tracks:
        rows = np.flatnonzero(drawn & (trace.track == track))
        busy = Union.of(trace.ts_ns[rows], trace.end_ns[rows]).total()
        expected[busy, int(trace.dur_ns[rows].sum())] += 1
    for shown in document["profiles"]:
        stretches = spans_of(shown)
        outermost = sum(end - start for depth, _, start, end in stretches if not depth)
        found[outermost, sum(end - start for *_, start, end in stretches)] += 1
    assert found == expected


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 20)), max_size=12))
def test_events_that_do_not_nest_keep_all_of_their_time(events):
    starts = np.array([start for start, _ in events], np.int64)
    ends = starts + np.array([length for _, length in events], np.int64)
    stretches = spans(nested(starts, ends, np.arange(len(events))))
    covered = {frame: Union.of(starts[[frame]], ends[[frame]]) for frame in range(len(events))}
    for frame, union in covered.items():
        own = [(start, end) for _, number, start, end in stretches if number == frame]
        pieces = Union.of(*(np.array(column, np.int64) for column in zip(*own, strict=True)))
        assert sum(end - start for start, end in own) == union.total()
        assert pieces.starts.tolist() == union.starts.tolist()


def test_a_step_that_is_not_there(tmp_path, capsys):
    path = str(training(tmp_path / "t.json"))
    assert main(["report", path, "--step", "9", "-o", str(tmp_path / "x.speedscope.json")]) == 1
    assert capsys.readouterr().err == "tracekit: t has no step 9: its steps are 0 to 3.\n"
    assert main(["report", path, "--step", "1"]) == 1
    assert "--step is for --format speedscope only" in capsys.readouterr().err
    assert main(["report", path, "--step", "1", "-o", str(tmp_path / "x.speedscope.json")]) == 0
    assert json.loads((tmp_path / "x.speedscope.json").read_text())["$schema"] == FILE["properties"]["$schema"]["const"]


def test_several_variants_are_in_one_file(tmp_path):
    paths = [training(tmp_path / f"{name}.json") for name in ("eager", "compiled")]
    document = json.loads(render(report(open_subject(paths))))
    names = [profile["name"] for profile in document["profiles"]]
    assert names == ["eager: main thread", "eager: stream 7", "compiled: main thread", "compiled: stream 7"]
