"""A limit is exceeded only with certainty; what cannot be answered fails unless allowed; all formats agree."""

import json
import random
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace as changed
from small import training, write

from tracekit import run as runs
from tracekit.cli import main
from tracekit.errors import BudgetError
from tracekit.gate import Budget, against, failed, read_budget, within
from tracekit.profile import Subject, open_subject
from tracekit.run import Measured, Pass

SAMPLE = Path(__file__).parents[2] / "sample_traces" / "run.json"
RUN = json.loads(SAMPLE.read_text())
MS = 1_000_000


@pytest.fixture(scope="module")
def sample():
    return open_subject([SAMPLE])


def measured(rng, slower=1.0, passes=8, drift=0.01):
    """Passes of 20 steps of 10 ms, which vary by 3 %; from pass to pass, the machine's speed changes by `drift`."""
    rounds = []
    for k in range(passes):
        mood = slower * rng.lognormvariate(0, drift)
        steps = sorted(int(10 * MS * mood * rng.lognormvariate(0, 0.03)) for _ in range(20))
        rounds.append(Pass(round=k, started_ns=k, step_ns=steps[10], step_all_ns=steps))
    every = [ns for each in rounds for ns in each.step_all_ns]
    step = int(float.__pow__(float(_product(each.step_ns / MS for each in rounds)), 1 / passes) * MS)
    return Measured(step_ns=step, step_all_ns=every, spread_ns=0, clock="perf_counter", passes=rounds)


def _product(values):
    whole = 1.0
    for value in values:
        whole *= value
    return whole


def of(sample, measured):
    member = sample.members[0]
    return Subject([replace(member, variant=changed(member.variant, measured=measured))])


def test_a_run_against_itself_never_fails_and_ten_per_cent_always_does(sample):
    rng, outcomes = random.Random(1), {1.0: [], 1.03: [], 1.1: [], 1.5: []}
    for slower in outcomes:
        for _ in range(50):
            pair = of(sample, measured(rng, slower)), of(sample, measured(rng))
            outcomes[slower] += against(*pair, metrics=["step_ms"])
    assert not failed(outcomes[1.0])
    assert all(row.fails for row in outcomes[1.1] + outcomes[1.5])
    assert len({row.outcome for row in outcomes[1.03]}) > 1  # exactly as much as is tolerated: either result is right


def test_noise_passes(sample):
    rng = random.Random(2)
    rows = [*against(of(sample, measured(rng, 1.08, drift=0.2)), of(sample, measured(rng)), metrics=["step_ms"])]
    assert rows[0].value > rows[0].limit
    assert rows[0].interval[0] <= rows[0].limit
    assert rows[0].outcome == "noise"
    assert not failed(rows)


def test_every_bucket_is_the_reports(sample):
    member = sample.members[2]
    keys = {**member.means["wall"].parts, "wall": member.means["wall"].step_ns}
    rows = within(sample, Budget({member.name: {f"{key}_ms": 1e9 for key in keys}}))
    assert [row.value for row in rows] == pytest.approx([ns / MS for ns in keys.values()])
    assert all(row.interval[0] <= row.value <= row.interval[1] for row in rows)


def test_limits_that_are_broken_and_what_nobody_can_say(sample):
    limits = {"recompiles": 1, "graph_breaks": 5, "peak_allocated_mib": 1, "wall_ms": 1}
    rows = {row.metric: row for row in within(sample, Budget({"compiled": limits}))}
    assert {name: row.outcome for name, row in rows.items()} == {
        "recompiles": "fail",
        "graph_breaks": "pass",
        "peak_allocated_mib": "unanswered",
        "wall_ms": "fail",
    }
    allowed = within(sample, Budget({"compiled": {"peak_allocated_mib": 1}}), frozenset({"peak_allocated_mib"}))
    assert [row.outcome for row in allowed] == ["allowed"]
    assert not failed(allowed)


def test_a_variant_that_is_gone_fails(sample):
    fewer = Subject([member for member in sample.members if member.name != "compiled"])
    gone = [row for row in against(fewer, sample) if row.variant == "compiled"]
    assert {row.outcome for row in gone} == {"unanswered"}
    assert "no longer exists" in gone[0].why
    assert within(sample, Budget({"max-autotune": {"wall_ms": 1}}))[0].outcome == "unanswered"


def test_two_bare_traces_are_compared_whatever_their_names(tmp_path):
    slow = open_subject([training(tmp_path / "slow.json", steps=6, python=400)])
    fast = open_subject([training(tmp_path / "fast.json", steps=6, python=10)])
    assert failed(against(slow, fast))
    assert not failed(against(fast, slow))
    assert against(fast, slow)[0].metric == "wall_ms"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it limits nothing"),
        ("[variant.eager", "it is not TOML"),
        ("[variant.eager]\nwall = 3\n", "'wall' is not a metric"),
        ("[variant.eager]\nwall_ms = 'x'\n", "wall_ms of eager is not a number"),
        ("[variant.eager]\nwall_ms = -1\n", "wall_ms of eager is not a number"),
        ("[variant.eager]\nwall_ms = nan\n", "wall_ms of eager is not a number"),
        ("variants = 1\n", "'variants' is not a key"),
        ("variant = 1\n", "it limits nothing"),
        ("[variant]\neager = 1\n", "variant.eager is not a table"),
        ("allow_unanswered = 'syncs'\n[variant.eager]\nwall_ms = 1\n", "allow_unanswered is not a list"),
    ],
)
def test_a_budget_that_cannot_be_used_is_named(tmp_path, text, why):
    (tmp_path / "budget.toml").write_text(text)
    with pytest.raises(BudgetError, match=why):
        read_budget(tmp_path / "budget.toml")


def test_exit_codes_and_formats(tmp_path, capsys):
    budget, run = tmp_path / "budget.toml", str(SAMPLE)
    budget.write_text(
        'allow_unanswered = ["peak_allocated_mib"]\n[variant.eager]\nstep_ms = 1\npeak_allocated_mib = 1\n'
    )
    junit, markdown = tmp_path / "junit.xml", tmp_path / "check.md"
    assert main(["check", run, "--budget", str(budget), "--junit", str(junit), "--markdown", str(markdown)]) == 1
    assert "1 of 2 checks fails." in capsys.readouterr().out
    suite = ElementTree.parse(junit).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert [[child.tag for child in case] for case in suite] == [["failure"], ["skipped"]]
    step_ms = runs.read(SAMPLE).variant("eager").measured.step_ns / MS
    assert f"| eager | step\\_ms | 1 | {step_ms:.4g} |" in markdown.read_text()
    assert main(["check", run, "--against", run, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "tracekit.check/1"
    assert set(document["rows"][0]) >= {"variant", "metric", "limit", "value", "interval", "outcome"}
    assert main(["check", run, "--against", str(tmp_path / "none.json")]) == 1
    assert main(["check", run, "--against", run, "--metric", "speed"]) == 1
    assert "speed: no such metric" in capsys.readouterr().err


def test_hostile_names_stay_text(tmp_path, capsys):
    trace = write(
        tmp_path / "a<b>&\x1b[31m.json", *json.loads(training(tmp_path / "t.json").read_text())["traceEvents"]
    )
    assert main(["check", str(trace), "--against", str(trace), "--format", "junit"]) == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert ElementTree.fromstring(text.split("\n", 1)[1])[0].get("classname").startswith("a<b>&")


def test_the_documented_steps_of_a_workflow(tmp_path, monkeypatch, capsys):
    page = (Path(__file__).parents[2] / "docs" / "checks.md").read_text()
    workflow = page.split("```yaml", 1)[1].split("```", 1)[0]
    commands = [line.split("run: ", 1)[1] for line in workflow.splitlines() if "run: tracekit check" in line]
    assert len(commands) == 1
    monkeypatch.chdir(tmp_path)
    (tmp_path / "main").mkdir()
    for folder in (tmp_path, tmp_path / "main"):
        (folder / "run.json").symlink_to(SAMPLE)
    assert main(commands[0].split()[1:]) == 0
    assert "all pass" in (tmp_path / "check.md").read_text()
    assert ElementTree.parse(tmp_path / "check.xml").getroot().get("failures") == "0"


@pytest.mark.parametrize(
    ("change", "warned"),
    [
        ({"recipe": "gat"}, "recipe than in the earlier run (gat; gcn_cora)"),
        ({"data": "made up"}, "data than in the earlier run (made up; real Cora from data)"),
        (
            {"params": RUN["params"] | {"hidden": 128}},
            "set of parameters than in the earlier run (hidden=128; hidden=64)",
        ),
        ({"environment": {"cpu": "other"}}, "device than in the earlier run (other; AMD EPYC)"),
        ({}, None),
    ],
)
def test_it_warns_where_the_two_are_not_of_the_same_thing(tmp_path, capsys, change, warned):
    (tmp_path / "run.json").write_text(json.dumps(RUN | change))
    drawn = {}
    for name in ("text", "json", "markdown", "junit"):
        main(["check", str(tmp_path / "run.json"), "--against", str(SAMPLE), "--metric", "step_ms", "--format", name])
        drawn[name] = capsys.readouterr().out
    warnings = json.loads(drawn["json"])["warnings"]
    assert [warned in each for each in warnings] == ([True] if warned else [])
    assert (
        "system-out" in drawn["junit"],
        "make it slower" in " ".join(drawn["text"].split()),
        "make it slower" in drawn["markdown"],
    ) == ((bool(warned),) * 3)
