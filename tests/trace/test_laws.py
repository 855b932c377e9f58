"""Each law fires on a small trace that breaks it, tells exactly what is spoiled, and is silent on the whole twin."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from real import ROOT, trace_names, trace_path
from small import Event, event, kernel

from docs.made import with_laws
from tests.strategies import as_json, traces
from tests.trace.broken_laws import (
    CASES,
    IDLE,
    WORK,
    Spans,
    capturing,
    copying,
    framed,
    graph_loop,
    in_step,
    is_gpu,
    loading,
    loop,
    numbered,
    text_of,
    without,
)
from tracekit.base.intervals import Union
from tracekit.errors import TracekitError
from tracekit.trace import Trace
from tracekit.trace.facts import FIGURES, Breach, all_laws
from tracekit.trace.facts.law import Unknown
from tracekit.trace.split import split


def health_of(folder: Path, content: str | bytes) -> list[Breach]:
    path = folder / "trace.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return Trace.load(path, use_cache=False).health


def grave_ids(health: Iterable[Breach]) -> list[str]:
    return [breach.id for breach in health if breach.is_grave]


def spans_of(breach: Breach) -> Spans:
    return tuple(
        (int(start) // 1000, int(end) // 1000) for start, end in zip(breach.gpu.starts, breach.gpu.ends, strict=True)
    )


@pytest.mark.parametrize("name", CASES)
def test_a_broken_law_says_what_is_spoiled(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    (breach,) = (each for each in health_of(tmp_path, text_of(case.damaged)) if each.id == case.law)
    worst = (breach.worst["name"], breach.worst["start_ns"] // 1000) if breach.worst else None
    assert (breach.severity, breach.count, worst) == (case.severity, case.count, case.worst)
    assert breach.touches == case.touches
    assert (spans_of(breach), breach.host.total()) == (case.gpu, 0)
    assert breach.steps == case.steps
    assert case.says in breach.message


@pytest.mark.parametrize("name", CASES)
def test_the_whole_twin_keeps_the_law(tmp_path: Path, name: str) -> None:
    twin = CASES[name].twin
    said = health_of(tmp_path, text_of(loop() if twin is None else twin))
    assert CASES[name].law not in {breach.id for breach in said}


def test_the_loop_itself_breaks_no_law(tmp_path: Path) -> None:
    for events in (
        loop(),
        loop(2, 60),
        graph_loop(),
        numbered(),
        framed(),
        loading(),
        capturing(),
        copying(0, 1, 2, 3),
    ):
        assert grave_ids(health_of(tmp_path, text_of(events))) == []


def test_events_that_cannot_be_read(tmp_path: Path) -> None:
    """One in a hundred does no harm."""
    for steps, severity in ((4, "doubt"), (40, "note")):
        whole = text_of(loop(steps))
        (breach,) = (
            each for each in health_of(tmp_path, whole.replace('"dur": 80', '"dur" 80', 1)) if each.id == "lost_events"
        )
        assert (breach.severity, breach.count) == (severity, 1)
        assert breach.touches == (WORK, IDLE, "host time")
        assert "lost_events" not in {each.id for each in health_of(tmp_path, whole)}


def test_a_file_that_was_cut_is_unknown_from_where_events_may_be_missing(tmp_path: Path) -> None:
    """Host first, GPU last, as Kineto writes them: anything may be missing."""
    ordered = sorted(loop(), key=is_gpu)
    whole = text_of(ordered)
    (breach,) = (each for each in health_of(tmp_path, whole[: int(0.9 * len(whole))]) if each.id == "cut_short")
    assert breach.severity == "doubt"
    assert breach.touches == (WORK, IDLE, "host time", "steps")
    assert spans_of(breach)[0][0] == 0
    assert (breach.host, breach.everywhere) == (breach.gpu, False)
    assert "cut_short" not in {each.id for each in health_of(tmp_path, whole)}


def test_an_archive_that_is_damaged(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(text_of(loop()).encode()))
    assert "damaged" not in grave_ids(health_of(tmp_path, bytes(packed)))
    packed[-6] ^= 255
    (breach,) = (each for each in health_of(tmp_path, bytes(packed)) if each.id == "damaged")
    assert (breach.severity, breach.everywhere) == ("doubt", True)


def test_every_law_that_spoils_figures_is_tried_here() -> None:
    tried = {case.law for case in CASES.values()} | {"lost_events", "cut_short", "damaged"}
    assert {law.id for law in all_laws() if law.severity != "note"} == tried - {"graph_recording"}
    assert all({*law.touches} <= {*FIGURES} and bool(law.touches) == (law.severity != "note") for law in all_laws())


@pytest.mark.traces
@pytest.mark.parametrize("name", trace_names())
def test_no_real_trace_is_doubted_without_reason(name: str) -> None:
    expected = ["no_gpu_side"] if name == "pyg_timeline_rtx4090_no_kernels" else []
    assert grave_ids(Trace.load(trace_path(name)).health) == expected


def test_the_page_lists_every_law() -> None:
    page = (ROOT / "docs" / "traces.md").read_text(encoding="utf-8")
    assert with_laws(page) == page, "run: make pages"
    assert all(f"| [`{law.id}`](laws/{law.id}.md) | {law.severity} |" in page for law in all_laws())


def test_the_gravest_come_first(tmp_path: Path) -> None:
    severities = [each.severity for each in health_of(tmp_path, text_of(CASES["sampled"].damaged))]
    assert severities[0] == "refusal"
    assert severities == sorted(severities, key=["refusal", "doubt", "note"].index)


def spans(*edges: tuple[int, int]) -> Union:
    return Union.of(*(np.array(column, np.int64) for column in zip(*edges, strict=True)))


def test_what_is_unknown_is_what_any_breach_makes_so() -> None:
    lost = Breach("a", "doubt", "", gpu=spans((10, 20), (40, 50)), steps=(1,))
    late = Breach("b", "doubt", "", gpu=spans((15, 30)), host=spans((0, 5)), steps=(2, 1))
    light = Breach("c", "note", "", gpu=spans((60, 70)), steps=(3,))
    unknown = Unknown.of([lost, late, light])
    assert [unknown.gpu.starts.tolist(), unknown.gpu.ends.tolist()] == [[10, 40, 60], [30, 50, 70]]
    assert [unknown.host.starts.tolist(), unknown.host.ends.tolist()] == [[0], [5]]
    assert unknown.steps == {1, 2}  # a step that lacks little is whole
    nothing = Unknown.of([])
    assert (nothing.gpu.total(), nothing.host.total(), nothing.steps) == (0, 0, frozenset())


def test_where_a_breach_spoils_all_that_it_touches() -> None:
    anywhere = Breach("a", "doubt", "", ("steps",))
    assert anywhere.everywhere
    assert not replace(anywhere, severity="note").everywhere
    for named in ({"gpu": spans((1, 2))}, {"host": spans((1, 2))}, {"steps": (0,)}):
        assert not replace(anywhere, **named).everywhere


@pytest.mark.parametrize("name", CASES)
def test_the_cache_gives_back_what_it_was_given(tmp_path: Path, name: str) -> None:
    for breach in health_of(tmp_path, text_of(CASES[name].damaged)):
        again = Breach.restored(json.loads(json.dumps(breach.stored())))
        assert again.stored() == breach.stored()
        assert [spans_of(again), again.host.starts.tolist(), again.host.ends.tolist()] == [
            spans_of(breach),
            breach.host.starts.tolist(),
            breach.host.ends.tolist(),
        ]
        assert again.document() == breach.document()


@settings(max_examples=150)
@given(events=traces(), kept=st.data())
def test_no_law_fails_on_a_part_of_a_trace(
    events: list[Event], kept: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever kinds of events are missing: no main thread, no calls, no work, no steps."""
    kinds = sorted({str(each.get("cat")) for each in events})
    gone = kept.draw(st.sets(st.sampled_from(kinds))) if kinds else set()
    path = tmp_path_factory.getbasetemp() / "part.json"
    path.write_bytes(as_json(without(events, lambda each: str(each.get("cat")) in gone)))
    try:
        trace = Trace.load(path, use_cache=False)
    except TracekitError:
        return
    for told in (trace, trace.as_told(), *(part.trace for part in split(trace))):
        for breach in told.health:
            assert breach.message.endswith(".")
            assert breach.count > 0
            assert {*breach.steps} <= {*range(len(told.steps))}
        assert told.unknown.steps <= {*range(len(told.steps))}


@pytest.mark.parametrize("cat", ["kernel", "cpu_op", "cuda_runtime", "user_annotation"])
def test_a_trace_of_one_kind_of_events(tmp_path: Path, cat: str) -> None:
    broken = {"kernel": ["calls_unknown"], "cuda_runtime": ["no_gpu_side"], "user_annotation": ["no_host_side"]}
    expected = broken.get(cat, [])
    assert grave_ids(health_of(tmp_path, text_of([each for each in loop() if each["cat"] == cat]))) == expected


def test_work_that_starts_before_its_call_is_not_lost(tmp_path: Path) -> None:
    assert grave_ids(health_of(tmp_path, text_of(CASES["causality"].damaged))) == ["causality"]


def test_calls_with_negative_ids_have_no_work(tmp_path: Path) -> None:
    calls = [
        each | {"args": {"correlation": -7 - each["args"]["correlation"]}} if each["cat"] == "cuda_runtime" else each
        for each in loop()
    ]
    assert "lost_work" in grave_ids(health_of(tmp_path, text_of(calls)))


def test_sentences_about_one_and_about_several(tmp_path: Path) -> None:
    jumps = without(loop(6), lambda each: each["name"] in ("ProfilerStep#1", "ProfilerStep#4"))
    longest = [kernel("gemm", 100, 999_999, 97), kernel("gemm", 150, 900_000, 98)]
    for events, said in (
        (jumps, "Step 0 is followed by step 2, the first of 2 jumps: "),
        (without(loop(), lambda each: each["name"] == "ProfilerStep#1"), "Step 0 is followed by step 2: "),
        ([*loop(), kernel("late", 3900, 90_000, 97)], "1 GPU activity lasts for 86.1 ms, "),
        ([*loop(), *longest], "2 GPU activities cannot have lasted as long as recorded (up to 1.00 s), "),
    ):
        assert any(said in breach.message for breach in health_of(tmp_path, text_of(events))), said


def test_annotations_alone_are_no_sample_of_operators(tmp_path: Path) -> None:
    marks = [
        event("user_annotation", f"ProfilerStep#{k}", 100 * k, 100 * k + 90, **{"External id": 50 * k + 1})
        for k in range(30)
    ]
    assert grave_ids(health_of(tmp_path, text_of(marks))) == ["no_host_side"]


def test_numbers_of_operators_that_other_threads_took_are_no_loss(tmp_path: Path) -> None:
    """The profiler gives out numbers in blocks of 512 for each thread."""
    rows = [
        event("cpu_op", "aten::mm", 10 * k, 10 * k + 8, **{"External id": k % 40 + 1 + 512 * (k // 40)})
        for k in range(120)
    ]
    assert grave_ids(health_of(tmp_path, text_of(rows))) == []


def test_in_a_merged_file_each_process_is_judged_by_itself(tmp_path: Path) -> None:
    """What one process has lost is no loss of the other, whose launches have the same ids."""
    theirs = [
        each | {"pid": 10 if is_gpu(each) else 11, "tid": 8 if is_gpu(each) else 2}
        for each in without(loop(), in_step(1, "kernel"))
    ]
    path = tmp_path / "merged.json"
    counted = event("cuda_profiler_range", "gemm", 40, 120, tid=8, pid=10)
    path.write_text(text_of([*loop(), *theirs, counted]))
    parts = split(Trace.load(path, use_cache=False))
    assert [grave_ids(part.trace.health) for part in parts] == [[], ["lost_work", "serialised"]]
