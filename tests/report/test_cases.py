"""Small inputs whose truth is known to the microsecond: what must be told of each, and what must not.

Each folder of `cases` has its truth beside it. What is recorded in a foreign or a damaged way is told with the damage
in the first two lines, or is not told; what only looks like damage is told as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from real import case_path

from tracekit.faces import Options
from tracekit.faces.shared.document import as_document
from tracekit.faces.text import draw
from tracekit.profile import open_subject
from tracekit.report import report

_BUSY = ("gpu_compute", "gpu_comm", "gpu_copy")
MS, US = 1e6, 1e3


@dataclass(frozen=True)
class Told:
    """What the report of a case says, for programs and for people."""

    document: dict[str, Any]
    text: str

    def variant(self, name: str | None = None) -> dict[str, Any]:
        return next(each for each in self.document["variants"] if name in (None, each["name"]))

    @property
    def lead(self) -> str:
        """The sentences before the first empty line, on one line."""
        return " ".join(self.text.partition("\n\n")[0].split())

    @property
    def grave(self) -> list[dict[str, Any]]:
        """The laws that are broken so that figures must not be believed."""
        health = self.variant()["health"]
        return [entry for entry in health if entry.get("severity", "note") != "note"]

    def findings(self, name: str | None = None) -> list[dict[str, Any]]:
        return [each for each in self.document["findings"] if name in (None, each["variant"])]

    def rows(self, analysis: str) -> list[dict[str, Any]]:
        for answer in self.document["answers"]:
            if answer["analysis"] == analysis:
                names = [column["name"] for column in answer["columns"]]
                return [dict(zip(names, row, strict=True)) for row in answer["rows"]]
        return []

    @property
    def names_the_damage(self) -> bool:
        said = [" ".join(entry["message"].split())[:40].rstrip(".") for entry in self.grave]
        return any(sentence in self.lead for sentence in said)


@cache
def _told(*names: str) -> Told:
    made = report(open_subject([case_path(name) for name in names]))
    return Told(as_document(made), draw(made, Options(full=True)))


def told(*names: str) -> Told:
    """The report of these files of a case."""
    for name in names:
        case_path(name)  # skips outside of the cache
    return _told(*names)


def busy(row: dict[str, Any]) -> float:
    """The GPU's work of a step, or of the mean."""
    return sum(row["wall"][name] for name in _BUSY)


class TestAscend:
    """Quoted times of 19 digits, ids of 22, kernels of a process called `Ascend Hardware`."""

    def test_its_work_is_read_to_the_nanosecond(self) -> None:
        found = told("ascend_trace_view/trace_view.json")
        variant = found.variant()
        assert variant["device"] == "gpu"
        assert [busy(each) for each in variant["steps"]] == [3_452_000] * 3
        assert variant["mean"]["wall_ns"] == pytest.approx(5 * MS, rel=0.02)
        assert "CPU only" not in found.text


class TestCompiledIsSlower:
    """The GPU works less and is launched less often, but compiled code is entered three times a step."""

    FILES = ("compiled_is_slower/eager.json", "compiled_is_slower/compiled.json")

    def test_by_how_much_and_where(self) -> None:
        (difference,) = told(*self.FILES).document["comparison"]
        assert difference["delta_ns"] == pytest.approx(0.5 * MS, rel=0.02)
        assert difference["wall"]["gpu_compute"] == pytest.approx(-114 * US, rel=0.02)
        assert difference["wall"]["guards"] == pytest.approx(720 * US, rel=0.02)
        assert "1.21 × slower" in told(*self.FILES).lead

    def test_entering_compiled_code_is_what_costs_and_graph_breaks_are_why(self) -> None:
        entering = [each for each in told(*self.FILES).findings("compiled") if "graph break" in each["title"]]
        costs = [each["claimed_ns"] or each["cost_ns"] or 0.0 for each in entering]
        assert any(1.0 * MS <= cost <= 1.3 * MS for cost in costs), costs
        assert any(re.search(r"\b(2|two) graph breaks", each["title"]) for each in entering)

    def test_what_was_slower_is_not_what_to_do_next(self) -> None:
        assert "torch.compile" not in told(*self.FILES).lead


class TestGraphsRecordedEveryStep:
    """Each step records, instantiates and replays a graph of its own."""

    FILE = "graphs_recorded_every_step/trace.json"

    def test_recording_them_is_what_costs(self) -> None:
        first = told(self.FILE).findings()[0]
        assert first["claimed_ns"] == pytest.approx(17.7 * MS, rel=0.05)
        assert re.search(r"\b9\b[^.]*graphs", first["title"])
        assert re.search(r"\bpad|fewer sizes|few sizes", first["advice"])

    def test_captured_launches_are_no_lost_kernels(self) -> None:
        found = told(self.FILE)
        assert found.variant()["mean"]["wall_ns"] == pytest.approx(25 * MS, rel=0.02)
        assert busy(found.variant()["mean"]) == pytest.approx(2.28 * MS, rel=0.02)
        assert found.grave == []

    def test_more_of_the_step_in_graphs_is_no_advice(self) -> None:
        assert not any("Bring more" in each["advice"] for each in told(self.FILE).findings())


class TestHostFarAhead:
    """The host issues a step in 30 ms, the GPU needs 200."""

    FILE = "host_far_ahead/trace.json"

    def test_a_step_lasts_until_its_work_is_done(self) -> None:
        found = told(self.FILE)
        steps = [each["wall_ns"] for each in found.variant()["steps"]]
        assert steps == pytest.approx([200 * MS] * 5, rel=0.02)
        assert found.variant()["verdict"]["id"].startswith("gpu_bound")
        assert busy(found.variant()["mean"]) / found.variant()["mean"]["wall_ns"] == pytest.approx(0.9975, abs=0.002)
        assert "200 ms a step" in found.lead
        assert not re.search(r"\b(30|880)(\.0)? ms a step", found.text)

    def test_kernels_half_as_long_save_half(self) -> None:
        assert all(row["gain"] <= 0.51 for row in told(self.FILE).rows("what_if"))
        assert all(row["best_ns"] >= 95 * MS for row in told(self.FILE).rows("what_if"))


class TestImpossibleDurations:
    """Three kernels of 80 last for a second and more, over many later ones of their stream."""

    FILE = "impossible_durations/trace.json"

    def test_the_damage_is_named_first(self) -> None:
        found = told(self.FILE)
        assert sum(entry["count"] for entry in found.grave) == 3  # of the last, no later one says where it ends
        assert found.names_the_damage

    def test_they_end_where_their_stream_goes_on_or_nothing_is_told(self) -> None:
        variant = told(self.FILE).variant()
        if variant["mean"]["wall"] is None:
            assert "wall" in variant["cannot_answer"]
            return
        told_steps = [each for each in variant["steps"] if each["step"] in variant["mean_over"]]
        assert len(told_steps) >= 3  # the last holds the activity that no later one shortens
        assert all(each["wall_ns"] == pytest.approx(10 * MS, rel=0.02) for each in told_steps)
        assert all(busy(each) == pytest.approx(8 * MS, rel=0.02) for each in told_steps)

    def test_no_figure_rests_on_them(self) -> None:
        found = told(self.FILE)
        figures = " ".join(found.text.split())
        for entry in found.grave:  # which says how wrong they are
            figures = figures.replace(" ".join(entry["message"].split()), "")
        assert not re.search(r"\b[1-9][\d.]* s\b|\b\d{3,} ms\b", figures)
        assert all((each["cost_ns"] or 0.0) <= 10 * MS for each in found.findings())
        assert all(row["best_ns"] <= row["worst_ns"] <= 11 * MS for row in found.rows("what_if"))


class TestKernelsInAnotherClock:
    """The host's uptime and the GPU's time of day are 54 years apart."""

    FILE = "kernels_in_another_clock/trace.json"

    def test_that_the_clocks_differ_is_said_first(self) -> None:
        found = told(self.FILE)
        assert found.names_the_damage
        assert "clock" in found.lead

    def test_when_the_gpu_idled_is_unknown(self) -> None:
        variant = told(self.FILE).variant()
        assert variant["mean"]["wall_ns"] is None or variant["mean"]["wall"] is None
        assert "clock" in variant["cannot_answer"]["wall"]
        assert all(each["wall"] is None for each in variant["steps"])
        assert all(each["cost_ns"] is None for each in told(self.FILE).findings())

    def test_nothing_lasts_for_years(self) -> None:
        text = told(self.FILE).text
        assert not re.search(r"\d{1,3}(,\d{3})+(\.\d+)? s\b", re.sub(r"54 years", "", text)), text[:300]


class TestLegacyWithABrokenKey:
    """No flow end is valid JSON, and all stands in one line."""

    FILE = "legacy_with_a_broken_key/trace.json"

    def test_flow_ends_are_lost_and_counted_and_spans_are_read(self) -> None:
        found = told(self.FILE)
        (profile,) = open_subject([case_path(self.FILE)]).profiles
        spans = [row for row in profile.trace.events.to_pylist() if row["dur_ns"] > 0]
        assert len(spans) == 40
        (lost,) = (entry for entry in found.variant()["health"] if entry["code"] == "lost_events")
        assert re.match(r"20 events could not be read", lost["message"])

    def test_cuda_spans_are_no_kernels(self) -> None:
        assert not any(row.get("kernel") for row in told(self.FILE).rows("kernels"))


class TestLoaderWithoutAnEvent:
    """Batches come from a generator, in whose 40 ms nothing is recorded."""

    FILE = "loader_without_an_event/trace.json"

    def test_the_time_before_the_first_operator_is_the_hosts_own(self) -> None:
        found = told(self.FILE)
        wall = found.variant()["mean"]["wall"]
        assert wall["python"] + wall["unrecorded"] == pytest.approx(40 * MS, rel=0.05)
        first = found.findings()[0]
        assert first["id"] in ("python_bound", "host_freeze", "idle_unexplained", "dataloader_bound")
        claimed = sum(each["claimed_ns"] or 0.0 for each in found.findings() if each["id"] == first["id"])
        assert claimed == pytest.approx(40 * MS, rel=0.07)

    def test_that_it_may_be_loading_is_a_guess(self) -> None:
        first = told(self.FILE).findings()[0]
        assert first["confidence"] == "inferred"
        assert re.search(r"\bload", first["title"] + first["advice"])

    def test_an_absent_row_proves_nothing(self) -> None:
        found = told(self.FILE)
        assert not re.search(r"does not wait for a? ?(loader|batch)", found.text)
        assert found.variant()["verdict"]["id"] not in ("dispatch_bound", "cpu_compute")


class TestOverlapOnOneStream:
    """Neighbours overlap by 3 µs, as programmatic dependent launch makes them: this is no damage."""

    FILE = "overlap_on_one_stream/trace.json"

    def test_all_kernels_count_and_no_time_twice(self) -> None:
        found = told(self.FILE)
        assert [busy(each) for each in found.variant()["steps"]] == [1_503_000] * 3
        kernels = [row for row in found.rows("kernels") if row.get("count")]
        assert sum(row["count"] for row in kernels) in (30, 90)

    def test_nothing_is_wrong_with_it(self) -> None:
        found = told(self.FILE)
        assert found.grave == []
        assert not re.search(r"overlap|outlast|shorten", " ".join(e["message"] for e in found.variant()["health"]))


class TestStepsWithoutKernels:
    """The kernels of the steps #3 and #6 are missing."""

    FILE = "steps_without_kernels/trace.json"

    def test_figures_of_the_gpu_are_those_of_the_other_steps(self) -> None:
        variant = told(self.FILE).variant()
        assert variant["mean_over"] == [4, 5, 7]
        assert [each["step"] for each in variant["steps"] if each["wall"] is None] == [3, 6]
        assert busy(variant["mean"]) == pytest.approx(864 * US, rel=0.01)

    def test_they_are_named_first(self) -> None:
        found = told(self.FILE)
        assert found.names_the_damage
        assert re.search(r"\b3\b.*\b6\b", found.lead)

    def test_they_are_not_idle(self) -> None:
        found = told(self.FILE)
        assert "518" not in found.text
        wall = found.variant()["mean"]["wall_ns"]
        idle = [each for each in found.findings() if not each["id"].startswith("gpu_bound")]
        assert all((each["cost_ns"] or 0.0) <= 1.1 * (wall - 864 * US) for each in idle)


class TestWaitingFlips:
    """In the first half rank 0 is late by 20 ms, in the second half rank 1."""

    FILES = "waiting_flips"

    def test_what_waiting_costs_and_who_is_late_when(self) -> None:
        found = told(self.FILES)
        late = next(each for each in found.findings() if each["id"] == "late_rank")
        assert late["cost_ns"] == pytest.approx(20 * MS, rel=0.05)
        assert re.search(r"\b20(\.\d)? ms", found.lead)
        assert re.search(r"rank 0\b.*rank 1\b|rank 1\b.*rank 0\b|ranks 0 and 1", late["title"])

    def test_no_rank_is_blamed_for_all_of_it_and_waiting_is_no_communication(self) -> None:
        found = told(self.FILES)
        assert not re.search(r"[Rr]ank [01] delays the others", found.text)
        assert not re.search(r"\b15(\.\d+)? ms communication", found.text)
