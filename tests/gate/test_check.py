"""A limit is exceeded only with certainty; what cannot be answered fails unless allowed; all formats agree."""

import json
import math
import random
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace
from msgspec.structs import replace as changed
from small import training, write

from tracekit import run as runs
from tracekit.cli import main
from tracekit.errors.asking import BudgetError
from tracekit.faces import Options
from tracekit.gate import Budget, Demand, against, failed, read_budget, within
from tracekit.gate.drawing import as_junit, as_markdown, as_text
from tracekit.gate.rows import Check, Row
from tracekit.profile import Subject, open_subject
from tracekit.run import Measured, Pass, Turn
from tracekit.statistics.uncertainty import typical

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
    step = round(math.exp(typical([math.log(each.step_ns) for each in rounds])))
    return Measured(step_ns=step, step_all_ns=every, spread_ns=0, clock="perf_counter", passes=rounds)


def later(measured, slower=1.0):
    """The same an hour later, slower by a factor."""
    passes = [
        changed(each, started_ns=each.started_ns + 3600 * 10**9, step_ns=round(each.step_ns * slower))
        for each in measured.passes
    ]
    return changed(measured, passes=passes, step_ns=round(measured.step_ns * slower))


def of(sample, measured):
    member = sample.members[0]
    return Subject([replace(member, variant=changed(member.variant, measured=measured))])


def test_a_run_against_itself_never_fails_and_ten_per_cent_always_does(sample):
    rng, outcomes = random.Random(1), {1.0: [], 1.03: [], 1.1: [], 1.5: []}
    for slower in outcomes:
        for _ in range(50):
            before, after = measured(rng, passes=20), later(measured(rng, slower, passes=20))
            pair = of(sample, after), of(sample, before)
            outcomes[slower] += against(*pair, metrics=["step_ms"])
    assert not failed(outcomes[1.0])
    assert all(row.fails for row in outcomes[1.5])
    assert sum(row.fails for row in outcomes[1.1]) >= 0.95 * len(outcomes[1.1])
    assert len({row.outcome for row in outcomes[1.03]}) > 1  # exactly as much as is tolerated: either result is right


def two_captures(sample, seed, slower=1.0, passes=8, drift=0.02):
    """Two captures of the same, an hour apart, the later one slower by a factor."""
    rng = random.Random(seed)
    before, after = (measured(rng, passes=passes, drift=drift) for _ in range(2))
    return of(sample, later(after, slower)), of(sample, before)


def step_row(pair, **demand):
    (row,) = against(*pair, metrics=["step_ms"], demand=Demand(**demand))
    return row


def test_a_regression_of_the_size_that_would_have_been_seen_is_seen(sample):
    """19 times in 20, whatever the number of passes; of half that size, at most every second one."""
    for passes in (2, 4, 8):
        seen = []
        for seed in range(300):
            would = step_row(two_captures(sample, seed, passes=passes)).detectable
            seen.append(
                [
                    step_row(two_captures(sample, seed, slower, passes)).outcome == "fail"
                    for slower in (1 + would, 1 + would / 2)
                ]
            )
        whole, half = (sum(found) / len(seen) for found in zip(*seen, strict=True))
        assert whole >= 0.92, passes
        assert half <= 0.5, passes


def test_what_noise_would_have_hidden_is_no_pass(sample):
    """With the noise of a busy machine, ten per cent more is neither seen nor called a pass."""
    outcomes = [step_row(two_captures(sample, seed, 1.1, 4, drift=0.1)) for seed in range(40)]
    assert {row.outcome for row in outcomes} <= {"unseen", "fail"}
    hidden = [row for row in outcomes if row.outcome == "unseen"]
    assert len(hidden) > 20
    assert not failed(hidden)
    assert all(row.detectable > 0.1 and "could not have been seen" in row.why for row in hidden)
    strict = [step_row(two_captures(sample, seed, 1.1, 4, drift=0.1), strict=True) for seed in range(40)]
    assert all(row.fails for row in strict)


def test_a_demand_is_met_by_sharp_captures_only(sample):
    sharp, blurred = (two_captures(sample, 2, passes=40, drift=drift) for drift in (0.002, 0.08))
    assert step_row(sharp, smallest=0.06, strict=True).outcome == "pass"
    assert step_row(sharp).outcome == "pass"
    assert step_row(two_captures(sample, 2, 1.033, passes=40, drift=0.002)).outcome == "noise"
    assert step_row(blurred, smallest=0.05, strict=True).fails
    assert not step_row(blurred, smallest=0.9, strict=True).fails
    allowed = step_row(blurred, smallest=0.05, strict=True, allow=frozenset({"step_ms"}))
    assert (allowed.outcome, allowed.fails) == ("allowed", False)


def test_one_pass_shows_nothing_about_another(sample):
    row = step_row(two_captures(sample, 1, passes=1), strict=True)
    assert (row.outcome, row.detectable, row.fails) == ("unseen", None, True)
    assert row.why == "one pass does not show how much passes differ"


def test_a_run_against_itself_could_have_seen_no_more_than_against_another(sample):
    run, _ = two_captures(sample, 1, drift=0.05)
    assert step_row((run, run)).detectable > 0.1


def test_one_pass_each_fails_nothing_and_says_why(sample):
    rng = random.Random(3)
    one_pass = (of(sample, measured(rng, slower, passes=1)) for slower in (3.0, 1.0))
    (row,) = against(*one_pass, metrics=["step_ms"])
    assert (row.outcome, row.interval, row.why) == ("unseen", None, "one pass does not show how much passes differ")


def test_passes_that_differ_too_much_are_not_called_one(sample):
    unlike = of(sample, measured(random.Random(3), passes=3, drift=0.5))
    (row,) = within(unlike, Budget({"eager": {"step_ms": 1e6}}))
    assert row.why == "its passes differ so much that more are needed"


def test_of_one_pass_the_steps_are_not_the_whole_uncertainty(sample):
    rng, name = random.Random(4), sample.members[0].name
    one_pass = of(sample, measured(rng, passes=1))
    limits = [within(one_pass, Budget({name: {"step_ms": ms}}))[0].outcome for ms in (9.0, 5.0)]
    assert limits == ["unseen", "fail"]


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
    allowed = within(
        sample, Budget({"compiled": {"peak_allocated_mib": 1}}), Demand(allow=frozenset({"peak_allocated_mib"}))
    )
    assert [row.outcome for row in allowed] == ["allowed"]
    assert not failed(allowed)


def test_a_compile_cost_far_above_its_limit_fails_although_it_was_measured_once(sample):
    far, near = (within(sample, Budget({"compiled": {"compile_cost_s": limit}}))[0] for limit in (0.001, 1e6))
    assert (far.outcome, near.outcome) == ("fail", "unseen")
    assert "measured once" in near.why


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


@pytest.mark.parametrize("passes", [1, 2, 5])
@pytest.mark.parametrize("load", [1e6, 1e300])
def test_a_load_beyond_measure_can_be_reckoned_with(sample, passes, load):
    usual = measured(random.Random(1), passes=passes)
    busy = changed(usual, passes=[changed(each, load=load, cores=1) for each in usual.passes])
    (row,) = against(of(sample, busy), of(sample, busy), metrics=["step_ms"])
    assert not row.fails


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it limits nothing"),
        ("[variant.eager", "it is not TOML"),
        ("[variant.eager]\nwall = 3\n", "'wall' is not a metric"),
        ("[variant.eager]\nwall_ms = 'x'\n", "wall_ms of eager is not a number"),
        ("[variant.eager]\nwall_ms = -1\n", "wall_ms of eager is not a number"),
        ("[variant.eager]\nwall_ms = nan\n", "wall_ms of eager is not a number"),
        (f"[variant.eager]\nwall_ms = 1{'0' * 400}\n", "wall_ms of eager is not a number"),
        (f"[variant.eager]\nwall_ms = 1{'0' * 5000}\n", "it is not TOML"),
        (f"x = {'[' * 100_000}", "it is not TOML"),
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
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    assert [[child.tag for child in case] for case in suite.iter("testcase")] == [["failure"], ["skipped"]]
    step_ms = runs.read(SAMPLE).variant("eager").measured.step_ns / MS
    assert f"| eager | step\\_ms | 1 | {step_ms:.4g} |" in markdown.read_text()
    assert main(["check", run, "--against", run, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "tracekit.check/1"
    assert set(document["rows"][0]) >= {"variant", "metric", "limit", "value", "interval", "outcome"}
    assert main(["check", run, "--against", run, "--metric", "speed"]) == 3
    assert "speed: no such metric" in capsys.readouterr().err


def test_what_could_not_be_checked_is_an_error_and_no_failure(tmp_path, capsys):
    run, junit, broken = str(SAMPLE), tmp_path / "junit.xml", tmp_path / "broken.json"
    broken.write_text("{")
    for earlier in (tmp_path / "none.json", broken):
        assert main(["check", run, "--against", str(earlier), "--junit", str(junit)]) == 3
        suite = ElementTree.parse(junit).getroot()
        assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("1", "0", "1")
        assert earlier.name in suite.find("testcase/error").get("message")
    capsys.readouterr()
    assert main(["check", run, "--against", "none.json", "--format", "junit"]) == 3
    assert "<error" in capsys.readouterr().out
    budget = tmp_path / "budget.toml"
    budget.write_text("[variant.eager]\npeak_allocated_mib = 1\n")
    assert main(["check", run, "--budget", str(budget), "--junit", str(junit)]) == 3  # nobody measured it
    assert ElementTree.parse(junit).getroot().get("errors") == "1"
    budget.write_text("[variant.eager]\npeak_allocated_mib = 1\nstep_ms = 1\n")
    assert main(["check", run, "--budget", str(budget)]) == 1  # what is worse for certain decides


def first_lines(run, earlier, capsys, *options):
    """What the check could have seen, as each format says it, and the exit code."""
    said = {}
    for name in ("text", "markdown", "json", "junit"):
        code = main(["check", str(run), "--against", str(earlier), "--metric", "step_ms", "--format", name, *options])
        said[name] = capsys.readouterr().out
    document, suite = json.loads(said["json"]), ElementTree.fromstring(said["junit"].encode())
    seen = [
        " ".join(said["text"].split())[: len(document["seen"])],
        said["markdown"].splitlines()[0].replace("\\", "").strip(),
        document["seen"],
        suite.find("properties/property").get("value"),
        suite.find("system-out").text.splitlines()[0],
    ]
    return seen, document, code


def passes_of(path, times, later=0):
    """The sample's run with passes of these step times, ms, for each variant."""
    run = json.loads(SAMPLE.read_text())
    for variant in run["variants"]:
        passes = [
            {"round": at, "started_ns": at + later, "step_ns": int(ms * MS), "step_all_ns": [int(ms * MS)] * 3}
            for at, ms in enumerate(times)
        ]
        variant["measured"] |= {"passes": passes, "step_ns": int(times[0] * MS)}
    path.write_text(json.dumps(run))
    return path


def test_the_first_line_of_every_format_says_what_could_have_been_seen(tmp_path, capsys):
    earlier = passes_of(tmp_path / "earlier.json", [10, 10.2, 9.8, 10.1] * 2)
    run = passes_of(tmp_path / "run.json", [10, 9.8, 10.2, 9.9] * 2, later=10**9)
    seen, document, code = first_lines(run, earlier, capsys)
    assert len({*seen}) == 1
    assert 0.05 < document["detectable"] < 0.15
    assert seen[0].startswith(f"Regressions of more than {document['detectable']:.1%}".replace("%", " %"))
    assert code == 0
    assert first_lines(run, earlier, capsys, "--min-detectable", "5%")[2] == 1
    assert first_lines(run, earlier, capsys, "--min-detectable", "15")[2] == 0
    assert main(["check", str(run), "--against", str(earlier), "--min-detectable", "3%"]) == 3
    assert "regressions of up to 3 % pass" in capsys.readouterr().err


def test_a_build_server_is_strict(tmp_path, capsys, monkeypatch):
    earlier = passes_of(tmp_path / "earlier.json", [10, 10.5, 9.5, 10.05])
    run = passes_of(tmp_path / "run.json", [10, 9.5, 10.5, 9.95], later=10**9)
    command = ["check", str(run), "--against", str(earlier)]
    assert main(command) == 0
    assert "all pass" not in capsys.readouterr().out
    assert main([*command, "--strict"]) == 1
    for value, code in (("true", 1), ("woodpecker", 1), ("1", 1), ("", 0), ("false", 0), ("0", 0)):
        monkeypatch.setenv("CI", value)
        assert main(command) == code
        assert main([*command, "--no-strict"]) == 0


def test_other_threads_are_told(tmp_path, capsys):
    """With fewer threads, a step is slower for no fault of its code."""
    runs = []
    for threads in (1, 2):
        run = json.loads(passes_of(tmp_path / f"{threads}.json", [10, 10.2, 9.8], later=threads * 10**9).read_text())
        run["environment"]["threads"] = threads
        (tmp_path / f"{threads}.json").write_text(json.dumps(run))
        runs.append(tmp_path / f"{threads}.json")
    assert main(["check", str(runs[0]), "--against", str(runs[1])]) == 0
    assert "a different number of threads than in the earlier run (1; 2)" in " ".join(capsys.readouterr().out.split())
    assert main(["check", str(runs[0]), "--against", str(runs[0])]) == 0
    assert "threads" not in capsys.readouterr().out


def test_a_core_left_to_other_work_is_no_regression(tmp_path, capsys):
    """One capture chose one thread because other work ran, and the earlier one had both."""
    runs = []
    for threads, ms in ((1, 18), (2, 10)):
        path = passes_of(tmp_path / f"{threads}.json", [ms, 1.02 * ms, 0.98 * ms], later=threads * 10**9)
        run = json.loads(path.read_text())
        run["environment"] |= {"threads": threads, **({"threads_chosen": "one fewer"} if threads == 1 else {})}
        path.write_text(json.dumps(run))
        runs.append(str(path))
    assert main(["check", runs[0], "--against", runs[1], "--metric", "step_ms", "--no-strict"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "its steps ran with --threads 1, those of the earlier run with --threads 2: capture both alike" in printed
    assert main(["check", runs[0], "--against", runs[1], "--metric", "step_ms", "--strict"]) == 1


def test_hostile_names_stay_text(tmp_path, capsys):
    trace = write(
        tmp_path / "a<b>&\x1b[31m.json", *json.loads(training(tmp_path / "t.json").read_text())["traceEvents"]
    )
    assert main(["check", str(trace), "--against", str(trace), "--format", "junit"]) == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert ElementTree.fromstring(text.split("\n", 1)[1]).find("testcase").get("classname").startswith("a<b>&")


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
    assert "none fails" in (tmp_path / "check.md").read_text()  # the sample has a single pass
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
        "make it slower" in drawn["junit"],
        "make it slower" in " ".join(drawn["text"].split()),
        "make it slower" in drawn["markdown"],
    ) == ((bool(warned),) * 3)


def test_what_nobody_could_have_seen_is_no_figure(tmp_path, capsys):
    earlier = passes_of(tmp_path / "earlier.json", [10, 3000])
    run = passes_of(tmp_path / "run.json", [10, 2000], later=10**9)
    seen, document, _ = first_lines(run, earlier, capsys)
    assert document["detectable"] > 1e6
    assert seen[0].startswith("The passes differ too much, as on a busy machine")
    main(["check", str(run), "--against", str(earlier), "--metric", "step_ms"])
    said = capsys.readouterr().out
    assert "too far apart to tell" in said
    assert not re.search(r"\d{7}|\d,\d{3},\d{3}", said)


@pytest.mark.parametrize("face", [as_text, as_markdown, as_junit])
def test_what_fails_is_not_too_far_apart_to_tell(face):
    """However far apart the ends are, all of the interval is beyond the limit."""
    row = Row("a", "step_ms", 3.0, 50.0, (5.0, 50_000.0), "fail", detectable=9.0, fails=True)
    drawn = " ".join(face(Check([row], []), Options()).split())
    assert "more than 5" in drawn
    assert "too far apart" not in drawn
    passing = replace(row, outcome="unseen", interval=(0.001, 50_000.0), fails=False)
    assert face is as_junit or "too far apart to tell" in " ".join(face(Check([passing], []), Options()).split())


def test_reasons_are_told_in_full_and_once_for_all_rows_that_have_them():
    why = "a regression of 6.1 % could not have been seen; " + "a long reason " * 12 + "at its end"
    rows = [
        Row(name, "step_ms", 1.0, 1.1, (0.9, 1.3), "unseen", why=why, detectable=0.2, far_apart=name != "b")
        for name in "abc"
    ]
    for face in (as_text, as_markdown):
        drawn = " ".join(face(Check(rows, []), Options()).replace("\\", "").split())
        assert drawn.count(why.removesuffix("end")) == 1
        assert "step_ms of a, step_ms of b, step_ms of c: a regression" in drawn
        assert "3 of them are too uncertain to be called a pass: capture both anew, one right after the other" in drawn
        assert "other, and take more passes, as with tracekit capture" in drawn
    assert "anew" not in as_text(Check(rows[1:2], []), Options())
    unknown = as_text(Check([replace(row, detectable=None) for row in rows], []), Options())
    assert " ".join(unknown.split()).count(why.removesuffix("end")) == 1


@pytest.mark.parametrize(
    ("steadiness", "minutes", "told"), [(4, 1, False), (4, 30, True), (8, 1, False), (2, 30, False)]
)
def test_captures_are_far_apart_only_on_an_unsteady_machine_and_if_others_would_be_closer(
    sample, steadiness, minutes, told
):
    """The second yardstick takes 2 ms, and that many in every other pass."""

    def captured(begins_ns):
        passes = [
            Pass(
                round=k + 1,
                started_ns=begins_ns + 5_000 * MS * k,
                step_ns=10 * MS + k,
                step_all_ns=[10 * MS + k],
                turns=[Turn(started_ns=k, steps=1, processor_ns=MS, yardsticks_ns=[MS, (2, steadiness)[k % 2] * MS])],
            )
            for k in range(10)
        ]
        member = sample.members[0]
        measured = replace(member.variant.measured, passes=passes, step_ns=10 * MS, step_all_ns=[10 * MS])
        return Subject([changed(member, variant=replace(member.variant, measured=measured))])

    (row,) = against(captured(minutes * 60_000 * MS), captured(0), metrics=["step_ms"])
    assert row.far_apart == told
    assert ("unsteady" in row.why) == (told or steadiness == 8)
