"""What a trace cannot tell comes first in every face, and nothing is told of what rests on it."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import pytest
from on_screen import ask, opened
from small import Event

from tests.faces.formats import written
from tests.trace.broken_laws import CASES, loop, text_of
from tracekit.faces.shared.explain import explain
from tracekit.profile import open_subject
from tracekit.report import Report, report
from tracekit.tui.model.content import Prose
from tracekit.tui.model.selection import Selection

LOST = "In doubt: 6 of 24 launches have no work in the trace, in step 1: whether the GPU worked then is unknown."
CLOCKS = "Unknown: The host's calls and the GPU's work are stamped by two clocks"
COUNTED = "Hardware counters were recorded, for which every kernel runs alone"
_MARKUP = re.compile(r"<(style|script|title|nav)\b.*?</\1>|<[^>]*>|^%.*?$|\\\w+\s?|[{}*\\]|^#", re.S | re.M)
_FORMATS = ("text", "markdown", "html", "latex")


def trace(folder: Path, events: list[Event], name: str = "eager") -> Path:
    path = folder / f"{name}.json"
    path.write_text(text_of(events))
    return path


def made(folder: Path, case: str) -> Report:
    return report(open_subject([trace(folder, CASES[case].damaged)]))


def plain(shown: str) -> str:
    """What people read of a face, in one line."""
    return " ".join(unescape(_MARKUP.sub(" ", shown)).split())


def variant(made: Report, folder: Path) -> dict[str, object]:
    (only,) = json.loads(written(made, folder, "json").read_text())["variants"]
    return only


@pytest.mark.parametrize(("case", "doubt"), [("lost_work of a step", LOST), ("two_clocks", CLOCKS)])
@pytest.mark.parametrize("face", _FORMATS)
def test_the_doubt_stands_before_the_headline(tmp_path: Path, face: str, case: str, doubt: str) -> None:
    shown = plain(written(made(tmp_path, case), tmp_path, face).read_text())
    headline = re.search(r"eager(:| takes)", shown)
    assert headline is not None
    assert 0 <= shown.find(doubt) < headline.start()
    assert shown.find(doubt) < 120  # nothing but titles comes before


@pytest.mark.parametrize("face", _FORMATS)
def test_a_whole_trace_is_not_doubted(tmp_path: Path, face: str) -> None:
    shown = plain(written(report(open_subject([trace(tmp_path, loop())])), tmp_path, face).read_text())
    assert "eager takes" in shown
    assert not re.search(r"In doubt|Unknown:", shown)


@pytest.mark.parametrize("tokens", [40, 1000])
def test_explain_begins_with_it(tmp_path: Path, tokens: int) -> None:
    assert explain(made(tmp_path, "lost_work of a step"), tokens).startswith(LOST)


def test_the_overview_of_the_terminal_ui_begins_with_it(tmp_path: Path) -> None:
    first = ask(opened([trace(tmp_path, CASES["lost_work of a step"].damaged)]), Selection("overview")).pieces[0]
    assert isinstance(first, Prose)
    assert first.lines[0] == LOST


def test_of_several_variants_the_doubtful_is_named(tmp_path: Path) -> None:
    paths = [trace(tmp_path, loop()), trace(tmp_path, CASES["lost_work of a step"].damaged, "compiled")]
    shown = written(report(open_subject(paths)), tmp_path, "text").read_text()
    assert " ".join(shown.split()).startswith(LOST.replace("In doubt:", "In doubt, compiled:"))


def test_the_gravest_of_many_are_told_and_the_others_counted(tmp_path: Path) -> None:
    events = [each for each in CASES["sampled"].damaged if each["name"] != "ProfilerStep#2"]
    first, second = (
        written(report(open_subject([trace(tmp_path, events)])), tmp_path, "markdown").read_text().splitlines()[2:4]
    )
    assert first.startswith("**Unknown: The file seems to hold only a sample")
    assert re.search(r"In doubt: .*2 more laws are broken: see the notes", plain(second))


@pytest.mark.parametrize("case", CASES)
def test_programs_get_every_breach(tmp_path: Path, case: str) -> None:
    health = variant(made(tmp_path, case), tmp_path)["health"]
    told = [(each["id"], each["severity"], each["count"]) for each in health]  # type: ignore[attr-defined]
    assert (CASES[case].law, CASES[case].severity, CASES[case].count) in told


def test_findings_that_rest_on_it_are_withheld_with_the_reason(tmp_path: Path) -> None:
    """A twin without the damage has that finding."""
    twin = variant(report(open_subject([trace(tmp_path, loop())])), tmp_path)
    assert twin["withheld"] == []
    assert twin["verdict"]["id"] == "launch_bound"  # type: ignore[index]
    found = variant(made(tmp_path, "serialised"), tmp_path)
    (withheld,) = found["withheld"]  # type: ignore[misc]
    assert (withheld["id"], withheld["law"]) == ("launch_bound", "serialised")
    assert withheld["reason"].startswith(COUNTED)
    assert found["verdict"]["id"] != "launch_bound"  # type: ignore[index]
    (note,) = (each["text"] for each in found["notes"] if each["kind"] == "cannot answer")  # type: ignore[attr-defined]
    assert note.startswith("the finding launch bound is withheld, since it rests on figures in doubt. " + COUNTED)


def test_what_if_promises_nothing(tmp_path: Path) -> None:
    def sentence(of: Report) -> str:
        return next(str(answer.sentence) for _, answer in of.answers if answer.analysis == "what_if")

    assert sentence(made(tmp_path, "serialised")).startswith(f"Cannot be told. {COUNTED}")
    assert not sentence(report(open_subject([trace(tmp_path, loop())]))).startswith("Cannot be told")


def test_lost_work_is_not_idle_time(tmp_path: Path) -> None:
    """Of 3.58 ms, kernels ran for 1.44 ms, and 1.01 ms are unknown."""
    sentences = [str(answer.sentence) for _, answer in made(tmp_path, "lost_work of a step").answers]
    (idle,) = (each for each in sentences if "from the first to the last" in each)
    assert "the GPU is idle for 1.13 ms" in idle
    assert "for 1.01 ms it is unknown" in idle
