"""The run file: written atomically, read with a sentence for every kind of damage; an earlier run is never lost."""

import json

import pytest

from tracekit import run as runs
from tracekit.errors import TracekitError
from tracekit.errors.asking import OutputError
from tracekit.errors.reading import BadRunError, DirectoryGivenError, NoSuchFileError
from tracekit.run import Effective, Measured, Requested, Run, Traces, Variant


def make_run(created="2026-11-21T07:05:01.000001+00:00", **more):
    variants = more.pop("variants", [Variant(name="eager", outcome="ok", requested=Requested(compile=False))])
    return Run(created=created, tracekit="0.1.0", recipe="gcn", script="gcn.py", variants=variants, **more)


def damage(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def test_what_is_written_is_read(tmp_path):
    measured = Measured(step_ns=5, step_all_ns=[4, 5, 6], spread_ns=2, clock="perf_counter")
    compiled = Variant(
        name="compiled",
        outcome="crash",
        error="profile: killed",
        requested=Requested(compile=True, mode="max-autotune", options={"epilogue_fusion": True}),
        effective=Effective(mode="default", notes=["a note"]),
        measured=measured,
        losses=[1.5, None],
        metrics={"accuracy": 0.8},
    )
    run = make_run(variants=[compiled], params={"hidden": 64}, environment={"gpus": []})
    runs.write(run, tmp_path / "run.json")
    assert runs.read(tmp_path / "run.json") == run
    assert run.variant("compiled") == compiled
    assert run.variant("eager") is None
    assert measured.steps == 3


def test_what_older_files_call_failed_is_an_error(tmp_path):
    runs.write(make_run(), tmp_path / "run.json")
    damage(tmp_path / "run.json", lambda run: run["variants"][0].update(outcome="failed"))
    assert [each.outcome for each in runs.read(tmp_path / "run.json").variants] == ["error"]


def test_the_file_says_what_it_is_in_its_first_line_and_the_pass_by_its_name(tmp_path):
    entry = runs.Compile(id="0/0", kind="first", start_ns=1, end_ns=2, thread=3, during="cold")
    variant = Variant(name="c", outcome="ok", requested=Requested(compile=True), ledger=runs.Ledger(compiles=[entry]))
    runs.write(make_run(variants=[variant]), tmp_path / "run.json")
    content = json.loads((tmp_path / "run.json").read_text())
    assert next(iter(content)) == "schema"
    assert content["schema"] == "tracekit.run/1"
    assert content["variants"][0]["ledger"]["compiles"][0]["pass"] == "cold"


@pytest.mark.parametrize("as_bytes", [True, False])
def test_a_run_is_told_from_a_trace(tmp_path, as_bytes):
    runs.write(make_run(), tmp_path / "run.json")
    (tmp_path / "trace.json").write_text('{"schemaVersion": 1, "traceEvents": []}')
    sources = [tmp_path / "run.json", tmp_path / "trace.json"]
    if as_bytes:
        sources = [path.read_bytes() for path in sources]
    assert [runs.is_run(source) for source in sources] == [True, False]
    assert not runs.is_run(tmp_path / "absent")
    assert not runs.is_run(tmp_path)
    assert not runs.is_run(b"")


@pytest.mark.parametrize("number", [-1, 2**63, 10**400])
@pytest.mark.parametrize("key", ["step_ns", "spread_ns", "compile_ns", "infer_ns", "warmup_steps"])
def test_numbers_that_no_column_holds_are_refused(tmp_path, key, number):
    path = tmp_path / "run.json"
    measured = Measured(step_ns=5, step_all_ns=[5], spread_ns=2, clock="perf_counter")
    variant = Variant(name="eager", outcome="ok", requested=Requested(compile=False), measured=measured)
    runs.write(make_run(variants=[variant]), path)
    damage(path, lambda run: run["variants"][0]["measured"].update({key: number}))
    with pytest.raises(BadRunError, match=key):
        runs.read(path)


@pytest.mark.parametrize("gpu", [{"throttled_by": True}, {"throttled_by": {"a": 1}}, {"processes": "two"}])
def test_facts_of_a_gpu_that_are_none_are_passed_over(tmp_path, gpu):
    variant = Variant(name="eager", outcome="ok", requested=Requested(compile=False), gpu=gpu)
    assert (variant.gpu_throttled_by, variant.gpu_neighbours) == ([], 0)


def test_keys_of_a_newer_minor_version_are_tolerated(tmp_path):
    path = tmp_path / "run.json"
    runs.write(make_run(), path)
    damage(path, lambda run: (run.update(new=1), run["variants"][0].update(new={"a": 1})))
    assert runs.read(path) == make_run()


def with_measured(run, **change):
    right = {"step_ns": 5, "step_all_ns": [4, 5, 6], "spread_ns": 2, "clock": "perf_counter"}
    run["variants"][0].update(measured={**right, **change})


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda run: run.update(schema="tracekit.run/2"), "tracekit.run/2"),
        (lambda run: run.update(schema="else"), "schema"),
        (lambda run: run.pop("schema"), "schema"),
        (lambda run: run.update(variants=[]), "no variants"),
        (lambda run: run.update(variants=run["variants"] * 2), "share a name"),
        (lambda run: run.update(created="yesterday"), "yesterday"),
        (lambda run: run.pop("created"), "created"),
        (lambda run: run["variants"][0].update(outcome="good"), "good"),
        (lambda run: run["variants"][0].update(losses=["a"]), "losses"),
        (lambda run: run["variants"][0].update(requested=None), "requested"),
        (lambda run: with_measured(run, step_ns=0), "measured.step_ns"),
        (lambda run: with_measured(run, step_ns=-5), "measured.step_ns"),
        (lambda run: with_measured(run, step_all_ns=[]), "measured.step_all_ns"),
        (lambda run: with_measured(run, spread_ns=-1), "measured.spread_ns"),
        (lambda run: run["variants"][0].update(profiled={"step_ns": 0, "steps": 1}), "profiled.step_ns"),
        (lambda run: run["variants"][0].update(traces={"steady": "a\0b"}), "traces.steady"),
    ],
)
def test_a_bad_run_is_refused_in_one_sentence(tmp_path, change, why):
    path = tmp_path / "run.json"
    runs.write(make_run(), path)
    damage(path, change)
    with pytest.raises(BadRunError, match=why) as caught:
        runs.read(path)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"schema": 1}', pytest.param(b"[" * 100_000, id="deep")]
)
def test_what_is_no_run_is_refused(tmp_path, content):
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(BadRunError):
        runs.read(tmp_path / "run.json")


def test_every_cut_of_the_file_is_refused(tmp_path):
    path = tmp_path / "run.json"
    runs.write(make_run(), path)
    content = path.read_bytes().rstrip()
    for end in range(0, len(content), 7):
        path.write_bytes(content[:end])
        with pytest.raises(TracekitError):
            runs.read(path)


def test_a_path_that_is_no_file_is_refused(tmp_path):
    with pytest.raises(NoSuchFileError):
        runs.read(tmp_path / "absent.json")
    with pytest.raises(DirectoryGivenError):
        runs.read(tmp_path)
    with pytest.raises(OutputError):
        runs.write(make_run(), tmp_path / "absent" / "run.json")


def test_a_trace_lies_beside_its_run(tmp_path):
    traces = Traces(steady="run-1/eager/steady.json.gz")
    variant = Variant(name="eager", outcome="ok", requested=Requested(compile=False), traces=traces)
    run = make_run(variants=[variant])
    assert run.trace_path(tmp_path / "run.json", variant) == (tmp_path / "run-1/eager/steady.json.gz").resolve()
    assert run.trace_path(tmp_path / "run.json", variant, "cold") is None


def test_traces_below_a_folder_are_those_that_there_are():
    assert Traces(cold="cold.json.gz").moved_under("run-1/eager") == Traces(cold="run-1/eager/cold.json.gz")


@pytest.mark.parametrize("named", ["/etc/passwd", "../other.json", "a/../../other.json", "link/other.json"])
def test_a_trace_outside_the_runs_folder_is_refused(tmp_path, named):
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    traces = Traces(steady=named)
    variant = Variant(name="eager", outcome="ok", requested=Requested(compile=False), traces=traces)
    with pytest.raises(BadRunError, match="outside"):
        make_run(variants=[variant]).trace_path(folder / "run.json", variant)


@pytest.mark.parametrize(
    ("losses", "others", "apart"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([1.0, 2.0], [1.0, 2.5], 0.25),
        ([1.0, None], [1.0, None], 0.0),
        ([1.0, 1.0], [1.0, None], float("inf")),
        ([1.0], [1.0, 2.0], 0.0),
        ([], [], None),
    ],
)
def test_how_far_two_training_curves_are_apart(losses, others, apart):
    assert runs.divergence(losses, others) == apart
