"""Every row that names something of the recording is found on the timeline: its gap, its step, its longest event."""

from pathlib import Path

import numpy as np
import pytest
from real import trace_path

from tests.tui.pilots import key_of, press, said, started
from tests.tui.timelines import compiling, indexes
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.tui.model.opened import OpenReport
from tracekit.tui.model.panes import all_panes
from tracekit.tui.model.panes.instances import about_gap
from tracekit.tui.model.panes.timeline import on_timeline
from tracekit.tui.model.selection import Selection
from tracekit.tui.model.sheet import Sheet
from tracekit.tui.timeline import Moment
from tracekit.tui.timeline.slices import bounds
from tracekit.tui.timeline.state import State, shown
from tracekit.tui.timeline.view import Viewport

NAMING = ("kernels", "operators", "gaps", "launches", "syncs", "steps", "findings", "instances")
REAL = ("leimao_eager_rtx5080", "kineto_resnet50_v100_dataloader4", "luatil_compile_rtx3060", "compile_cold_cpu")


def opened(*paths: Path) -> OpenReport:
    made = OpenReport(report(open_subject([*paths])))
    assert made.outline.chapters  # so that its chapters are panes
    return made


def sheets(of: OpenReport) -> dict[str, tuple[Selection, Sheet]]:
    """The tables of all panes, by name."""
    found = {}
    for pane in all_panes(of):
        for sheet in pane.query(of, Selection(pane.name)).sheets:
            found.setdefault(sheet.name, (Selection(pane.name), sheet))
    return found


@pytest.mark.parametrize("name", REAL)
def test_every_row_of_a_real_trace_that_names_something_leads_to_it(name: str) -> None:
    of = opened(trace_path(name))
    trace = of.report.profiles[0].trace
    tables = sheets(of)
    assert {"operators", "steps"} <= tables.keys()
    for table, (now, sheet) in tables.items():
        for index in range(min(len(sheet), 20)) if table in NAMING else ():
            selection = on_timeline(of, now, sheet, index)
            row = {column: sheet.table[column][sheet.row_at(index)].as_py() for column in sheet.table.column_names}
            if selection is None:
                assert "nothing" in str(row["name"])
                continue
            assert selection.pane == "timeline"
            assert sheet.destination(index) is not None
            facet = selection.facets[-1]
            if facet.kind == "event":
                event = trace.names[trace.name_codes[facet.value[1]]]
                assert event == row.get("call") or table in ("operators", "findings") or event == row["name"]
            elif table == "gaps":
                variant, at = facet.value
                assert row["start_ns"] < at < row["start_ns"] + row["gap_ns"]
                assert f"{variant}: step {row['step']}," in about_gap(of.profile(variant), at, at + 1).lines[1]


def test_a_kernel_leads_to_its_longest_instance_in_the_steps_that_count() -> None:
    of = opened(trace_path("leimao_eager_rtx5080"))
    (profile,) = of.report.profiles
    now, sheet = sheets(of)["kernels"]
    for index in range(len(sheet)):
        name = sheet.table["name"][sheet.row_at(index)].as_py()
        facet = on_timeline(of, now, sheet, index).facets[-1]
        work = of.work(profile)
        inside = np.append(profile.counted, False)[work.step]
        alike = work.event[inside & (work.name == profile.trace.names.index(name))]
        assert profile.trace.dur_ns[facet.value[1]] == profile.trace.dur_ns[alike].max()
        assert facet.value[1] in alike


def test_every_row_of_every_pane_leads_on(tmp_path: Path) -> None:
    """Also rows of ranks, collectives, phases, stages and compilations; what a run is told to be has no events."""
    facts = {"conditions", "variants", "run_facts", "memory_devices"}
    runs = [
        [trace_path(f"param_dlrm_v100_rank{rank}") for rank in range(4)],
        [Path(__file__).parent.parent.parent / "sample_traces" / "run.json"],
        [trace_path("tracelens_owlv2_h100_dataloader")],
    ]
    led = set()
    for paths in runs:
        of = opened(*paths)
        for pane in all_panes(of):
            now = Selection(pane.name)
            for sheet in pane.query(of, now).sheets if pane.is_listed else ():
                for index in range(min(len(sheet), 5)) if sheet.name not in facts and pane.name != "source" else ():
                    assert sheet.destination(index) is not None, (sheet.name, index)
                    shown = on_timeline(of, now, sheet, index)
                    assert getattr(shown, "pane", None) == "timeline", (sheet.name, index)
                    led.add(sheet.name)
    assert {"ranks", "stragglers", "collectives", "communication", "phases", "stages", "memory_phases"} <= led
    assert {"launches", "lines", "libraries", "compiles", "regions", "buckets"} <= led


def test_a_late_rank_leads_to_what_makes_it_late_in_its_own_recording() -> None:
    of = opened(*(trace_path(f"param_dlrm_v100_rank{rank}") for rank in range(4)))
    now, sheet = sheets(of)["ranks"]
    late = max(range(len(sheet)), key=lambda index: sheet.table["late_ns"][sheet.row_at(index)].as_py())
    assert sheet.table["because"][sheet.row_at(late)].as_py() == "dispatch"
    name, moment = on_timeline(of, now, sheet, late).of("moment")
    assert name == "param_dlrm_v100 rank 2"
    pieces = of.profile(name).attribution.pieces
    waits = pieces.of("dispatch")
    longest = int(np.argmax(np.where(waits, pieces.dur, 0)))
    assert pieces.start[longest] < moment < pieces.end[longest]
    home, findings = sheets(of)["findings"]
    verdict = next(k for k, row in enumerate(findings.table.to_pylist()) if row["finding"].startswith("Rank 2 delays"))
    assert on_timeline(of, home, findings, verdict).of("moment") == (name, moment)
    lanes = next(pane for pane in all_panes(of) if pane.name == "timeline").query(of, on_timeline(of, now, sheet, late))
    assert [profile.name for profile in lanes.pieces[0].profiles] == ["param_dlrm_v100", name]


def test_a_collective_leads_to_its_call_on_its_rank() -> None:
    of = opened(*(trace_path(f"param_dlrm_v100_rank{rank}") for rank in range(4)))
    now, sheet = sheets(of)["collectives"]
    for index in range(8):
        row = {name: sheet.table[name][sheet.row_at(index)].as_py() for name in ("rank", "transfer_ns", "wait_ns")}
        name, event = on_timeline(of, now, sheet, index).of("event")
        trace = of.profile(name).trace
        assert trace.dur_ns[event] == row["transfer_ns"] + row["wait_ns"]
        assert name == "param_dlrm_v100" + f" rank {row['rank']}" * (row["rank"] > 0)


def test_a_compilation_of_the_first_steps_is_shown_in_their_recording() -> None:
    of = opened(Path(__file__).parent.parent.parent / "sample_traces" / "run.json")
    now, sheet = sheets(of)["compiles"]
    row = next(k for k in range(len(sheet)) if sheet.table["trace"][sheet.row_at(k)].as_py() == "cold")
    name, event = on_timeline(of, now, sheet, row).of("event")
    assert name == "compiled, cold"
    assert of.profile(name).trace.dur_ns[event] == sheet.table["dur_ns"][sheet.row_at(row)].as_py()


def test_a_gap_is_selected_as_such(tmp_path: Path) -> None:
    (index,) = indexes(compiling(tmp_path / "trace.json"))
    idle = next(group for group in index.groups if group.family == "idle")
    state = State(Viewport.of([index]))
    for start, end in zip(idle.lanes[0].start.tolist(), idle.lanes[0].end.tolist(), strict=True):
        selected = shown(state, Moment(index.profile.name, (start + end) // 2))
        assert bounds(index, selected.selection) == (start, end)
        assert index.groups[selected.selection.group].family == "idle"
    whole = state.fit().fit().longest_gap()
    start, end = bounds(index, whole.selection)
    assert end - start == (idle.lanes[0].end - idle.lanes[0].start).max()


def test_a_gap_tells_what_the_host_did(tmp_path: Path) -> None:
    (profile,) = opened(compiling(tmp_path / "trace.json")).report.profiles
    idle = next(group for group in indexes(tmp_path / "trace.json")[0].groups if group.family == "idle")
    longest = int(np.argmax(idle.lanes[0].end - idle.lanes[0].start))
    start, end = int(idle.lanes[0].start[longest]), int(idle.lanes[0].end[longest])
    lines = about_gap(profile, start, end).lines
    assert lines[0].startswith("GPU idle for ")
    assert lines[2:4] == ("54.5 % Python", "36.4 % compile, most in entire_frame_compile (dynamo_timed)")


async def test_two_keys_lead_from_the_longest_gap_to_what_the_host_did(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))
    async with started([compiling(tmp_path / "trace.json")]) as (app, pilot):
        await press(pilot, key_of(app, "gaps"), "t")
        for _ in range(500):
            await pilot.pause(0.01)
            if "GPU idle for" in said(app, "#row"):
                break
        assert "GPU idle for" in said(app, "#row")
        assert app.now.pane == "timeline"
        await press(pilot, "escape")  # drops what is selected, and stays
        assert (app.now.pane, app.now.facets) == ("timeline", ())
        await press(pilot, "escape")
        assert app.now.pane != "timeline"


async def test_enter_leads_there_as_well(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))
    async with started([compiling(tmp_path / "trace.json")]) as (app, pilot):
        await press(pilot, key_of(app, "launches"), "enter")
        for _ in range(500):
            await pilot.pause(0.01)
            if app.now.pane == "timeline":
                break
        assert app.now.of("event") is not None
