"""A watch is listed, and its slow steps, their causes and its trend are findings that need no trace."""

import shutil

from small import training

from tests.watched.written import FACTS, MS, steps, write

LATE = {"waited_ns": 41 * MS, "step_ns": 40 * MS, "worker": 2}
COMPILES = {"compile_ns": 60 * MS, "compiles": 1, "step_ns": 60 * MS}


def test_an_overview_lists_watches_without_their_traces(below, tmp_path):
    (tmp_path / "runs").mkdir()
    write(tmp_path / "runs" / "watch", steps(100, {}))
    taken = tmp_path / "runs" / "watch" / f"{FACTS.stem}-step30-snap.pt.trace.json"
    shutil.move(training(tmp_path / "t.json"), taken)
    training(tmp_path / "runs" / "watch" / "other.trace.json")
    listed = below("overview")["inputs"]
    assert sorted((each["kind"], each["untrusted"]["file"]) for each in listed) == [
        ("trace", "runs/watch/other.trace.json"),
        ("watch", "runs/watch"),
    ]
    assert below("overview", inputs=["runs/watch"])["next"][0]["why"].startswith("the slow steps of the watch")


def test_the_findings_of_a_watch_are_its_slow_steps_and_their_causes(below, tmp_path):
    write(tmp_path / "watch", steps(400, {100: LATE, 200: COMPILES, 300: LATE}))
    told = below("findings", inputs=["watch"])
    assert [(each["cause"], each["steps"]) for each in told["causes"]] == [("late batch", 2), ("compilation", 1)]
    assert {(each["step"], each["cause"]) for each in told["slow_steps"]} == {
        (100, "late batch"), (200, "compilation"), (300, "late batch"),
    }  # fmt: skip
    assert told["slow_steps"][0]["step"] == 200, "the costliest first"
    assert "made by worker 2" in told["causes"][0]["untrusted"]["text"]
    assert "trends" not in told


def test_the_findings_of_a_watch_tell_its_trend(below, tmp_path):
    longer = {
        number: {"step_ns": number * MS // 20, "processor_ns": 10 * MS + number * MS // 20} for number in range(900)
    }
    write(tmp_path / "watch", steps(900, longer))
    (trend, *_) = below("findings", inputs=["watch"])["trends"]
    assert trend["step"] > 0
    assert "steps had become longer, from" in trend["untrusted"]["text"]


def test_lines_say_which_time_they_are_of_and_lead_to_another_tool(sample):
    told = sample("lines")
    assert {call["tool"] for call in told["next"]}.isdisjoint({"lines"})
    for time in told["times"]:
        recorded_ns, unprofiled_ns = time["step"]["value"], time["unprofiled_step"]["value"]
        assert time["view"] in ("wall", "host")
        assert 0 < unprofiled_ns < 3 * recorded_ns
        costs = sum(line["costs"].get(time["variant"], {"value": 0})["value"] for line in told["lines"])
        assert 0 < costs <= recorded_ns * 1.001
