"""The page is what the command writes from its last run, whatever tools say or however they fail."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests.compare import __main__ as command
from tests.compare.page import written
from tests.compare.peers import peers
from tests.compare.recordings import RECORDINGS


@pytest.fixture(name="results", scope="module")
def last_run() -> dict[str, Any]:
    results: dict[str, Any] = json.loads(command.RESULTS.read_text(encoding="utf-8"))
    return results


def test_the_page_is_that_of_the_last_run(results: dict[str, Any]) -> None:
    assert command.PAGE.read_text(encoding="utf-8") == written(results)


def test_the_last_run_asked_every_tool_about_every_recording(results: dict[str, Any]) -> None:
    assert [tool["id"] for tool in results["tools"]] == [peer.id for peer in peers()]
    assert [each["id"] for each in results["recordings"]] == [each.id for each in RECORDINGS]
    asked = {tool["id"] for tool in results["tools"] if "absent" not in tool}
    assert len(asked) >= 3
    assert all(set(each["answers"]) == asked for each in results["recordings"])


def test_every_step_of_ours_adds_up(results: dict[str, Any]) -> None:
    for recording in results["recordings"]:
        (way,) = recording["answers"]["ours"]
        assert (way["sum_off"], way["busy_off"]) == (0, 0)
    assert results["own"]["ours"]["sum_off"] == 0


def test_the_message_of_a_tool_that_fails_cannot_break_the_table(results: dict[str, Any]) -> None:
    hostile = copy.deepcopy(results)
    hostile["recordings"][0]["answers"]["hta"] = "Error: `<b>` | x"
    assert "fails: `Error: '<b>' ¦ x` |" in written(hostile)


def test_a_tool_that_is_faster_is_said_to_be(results: dict[str, Any]) -> None:
    faster = copy.deepcopy(results)
    for recording in faster["recordings"]:
        if "hta" in recording["first_table"]:
            recording["first_table"]["hta"] = {**recording["first_table"]["ours"], "seconds": 0.01}
    assert "**HTA** takes 0.0" in written(faster)


def test_a_tool_that_cannot_be_had_or_fails_has_a_sentence(results: dict[str, Any]) -> None:
    without = copy.deepcopy(results)
    del without["own"]["first_table"]["tlparse"]
    assert "- **tlparse** fails.\n" in written(without)
    without["own"]["absent"] = "pip could not install it."
    assert "- **tlparse** was not asked: pip could not install it.\n" in written(without)


def test_without_the_recordings_it_says_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["tests.compare", "--traces", str(tmp_path)])
    assert command.main() == 1
    said = capsys.readouterr().err
    assert all(each.source in said for each in RECORDINGS)
