"""A trace with our tracks contains all bytes of the original; our events nest, and reading it again changes nothing."""

import gzip
import json

import pyarrow as pa
import pytest
from real import trace_path
from small import BEFORE, kernel, launch, op, step, training, write

from tracekit.analyses.compiles import spans_of
from tracekit.cli import main
from tracekit.engine.buckets import BUCKETS
from tracekit.faces.perfetto import export
from tracekit.faces.shared.document import as_document
from tracekit.profile import open_subject
from tracekit.report import report as make_report
from tracekit.trace.reading import chunks


def exported(path, tmp_path):
    """The report of a trace, the bytes of its export, and the report of the export."""
    report = make_report(open_subject([path]))
    out = tmp_path / "x.json.gz"
    export(report, report.profiles[0], out)
    return report, gzip.decompress(out.read_bytes()), make_report(open_subject([out]))


def without_paths(report):
    document = as_document(report)
    for entry in (document, *document["variants"]):
        for key in ("trace", "name", "baseline"):
            entry.pop(key, None)
    return document["variants"]


def plain_events(trace):
    """The events with texts and threads in place of their numbers, which depend on where the reader cut the file."""
    events = trace.events
    for name in ("cat", "name"):
        events = events.set_column(events.schema.get_field_index(name), name, events[name].cast(pa.string()))
    threads = trace.tracks.select(["pid", "tid", "process", "thread"]).take(trace.track)
    columns = {name: events[name] for name in events.column_names if name != "track"}
    columns |= {name: threads[name] for name in threads.column_names}
    return pa.table({name: column.combine_chunks() for name, column in columns.items()})


def ours(content):
    """Our events in the file; those of the original have other processes."""
    return [each for each in json.loads(content)["traceEvents"] if str(each.get("pid", "")).startswith("9000000")]


def nested(events):
    """Every track's slices in order, as (name, start, end); each ends before the next one that it does not contain."""
    slices, stacks, clocks = {}, {}, {}
    for each in events:
        if each["ph"] not in "BE":
            continue
        track = each["pid"], each["tid"]
        assert each["ts"] >= clocks.get(track, 0)
        clocks[track] = each["ts"]
        stack = stacks.setdefault(track, [])
        if each["ph"] == "B":
            stack.append(each)
        else:
            begun = stack.pop()
            slices.setdefault(each["tid"], []).append((begun["name"], begun["ts"], each["ts"], begun["args"]))
    assert not any(stacks.values())
    return slices


def test_our_tracks_of_a_known_trace(tmp_path):
    memory = {"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": 12.5}
    held = {"Bytes": 512, "Total Allocated": 512, "Total Reserved": 1024, "Device Id": 0, "Device Type": 1}
    path = write(
        tmp_path / "t.json",
        *BEFORE,
        step(7, 0, 100),
        op("aten::mm", 10, 40),
        memory | {"args": held},
        launch(20, 30, 1),
        kernel("gemm", 35, 90, 1),
        op("dynamo", 50, 80),
    )
    report, content, _ = exported(path, tmp_path)
    events = ours(content)
    tracks = {e["tid"]: e["args"]["name"] for e in events if e.get("name") == "thread_name"}
    named = {tracks[tid]: slices for tid, slices in nested(events).items()}
    assert [(name, start, end) for name, start, end, _ in named["steps"]] == [("step 7", 0.0, 100.0)]
    wall = named["where the wall time goes"]
    assert ("GPU compute", 35.0, 90.0) in [(name, start, end) for name, start, end, _ in wall]
    assert next(args for name, *_, args in wall if name == "kernel launch")["blame"] == "cudaLaunchKernel"
    pieces = report.profiles[0].attribution.pieces
    assert sum(round((end - start) * 1000) for _, start, end, _ in wall) == int(pieces.dur.sum()) == 100_000
    assert {name for name, *_ in wall} <= {bucket.label for bucket in BUCKETS.values()}
    assert [(start, end) for _, start, end, _ in named["compilations of thread 1"]] == [(50.0, 80.0)]
    findings = report.diagnoses["t"].findings
    assert findings
    for finding in findings:  # in words, not by the name of the rule
        (track,) = (name for name in named if name.endswith(finding.headline))
        assert finding.id not in track
        assert finding.cost_ns is None or track.startswith("up to ")
        assert {args["what to change"] for *_, args in named[track]} == {finding.advice}
    (counter,) = (each for each in events if each["ph"] == "C")
    assert (counter["ts"], counter["args"]) == (12.5, {"allocated": 512, "reserved": 1024})
    assert counter["name"] == "memory, cuda:0, bytes"


def test_counters_of_memory_survive_a_byte_that_is_no_text(tmp_path, monkeypatch):
    monkeypatch.setattr(chunks.Chunks.__init__, "__defaults__", (1200,))
    held = {
        "Bytes": 512,
        "Total Allocated": 512,
        "Total Reserved": 1024,
        "Device Id": -1,
        "Device Type": 0,
    }
    memory = {"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": 12.5, "args": held}
    path = write(
        tmp_path / "t.json", *BEFORE, step(7, 0, 100), op("aten::\u0101", 10, 40), memory, op("aten::mm", 50, 60)
    )
    path.write_bytes(path.read_bytes().replace(b"\\u0101", b"\x88"))
    (counter,) = (each for each in ours(exported(path, tmp_path)[1].replace(b"\x88", b"?")) if each["ph"] == "C")
    assert counter["args"] == {"allocated": 512, "reserved": 1024}


@pytest.mark.parametrize("name", ["compile_cold_cpu", "luatil_compile_rtx3060"])
def test_a_real_trace_comes_back_as_it_was(tmp_path, name):
    path = trace_path(name)
    report, content, again = exported(path, tmp_path)
    original = gzip.decompress(path.read_bytes())
    head = content.index(b'{"ph":"M","name":"process_name","pid":900000001')
    assert content[:head] + content[len(content) - len(original) + head :] == original
    profile = report.profiles[0]
    expected = int((profile.attribution.answered_view.known & (profile.attribution.answered_view.step_ns > 0)).sum())
    expected += len(profile.attribution.pieces.start) + len(spans_of(profile))
    slices = nested(ours(content))
    findings = len(report.diagnoses[profile.name].findings)
    assert sum(len(slices[tid]) for tid in sorted(slices)[:-findings]) == expected
    assert all(start <= end for track in slices.values() for _, start, end, _ in track)
    one, other = (plain_events(each.profiles[0].trace) for each in (report, again))
    assert one.equals(other)
    assert without_paths(report) == without_paths(again)


@pytest.mark.parametrize(
    "text", ['{"traceEvents": []}', "[ ]", '[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":2}]']
)
def test_lists_of_any_form_stay_json(tmp_path, text):
    path = training(tmp_path / "t.json")
    report = make_report(open_subject([path]))
    path.write_text(text)
    export(report, report.profiles[0], tmp_path / "x.json.gz")
    document = json.loads(gzip.decompress((tmp_path / "x.json.gz").read_bytes()))
    events = document if isinstance(document, list) else document["traceEvents"]
    assert len([each for each in events if each.get("ph") == "X"]) == text.count('"X"')


def test_original_traces_stay(tmp_path, capsys):
    one, two = (training(tmp_path / f"{name}.json.gz.json", python=20) for name in ("eager", "compiled"))
    arguments = ["report", str(one), "--format", "perfetto", "-o"]
    assert main([*arguments, str(one)]) == 1
    assert "must end in .json.gz" in capsys.readouterr().err
    taken = tmp_path / "out.json.gz"
    taken.write_bytes(gzip.compress(two.read_bytes()))
    assert main([*arguments, str(taken)]) == 1
    assert "which only --force replaces" in capsys.readouterr().err
    assert gzip.decompress(taken.read_bytes()) == two.read_bytes()
    assert main([*arguments, str(taken), "--force"]) == 0
    assert main(["report", str(one), str(two), "--format", "perfetto", "-o", str(tmp_path / "both.json.gz")]) == 1
    assert "a file for each variant" in capsys.readouterr().err
    assert main(["report", str(one), str(two), "--format", "perfetto", "-o", str(tmp_path / "both")]) == 0
    assert len([*(tmp_path / "both").iterdir()]) == 2


def test_what_is_not_there_any_more_is_told(tmp_path):
    path = training(tmp_path / "t.json")
    report = make_report(open_subject([path]))
    path.unlink()
    with pytest.raises(Exception, match="is not a file that can be read again"):
        export(report, report.profiles[0], tmp_path / "x.json.gz")
