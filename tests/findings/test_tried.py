"""No advice that the capture itself refutes: whatever the variants tried in vain is not proposed as if nobody had."""

import re
import shutil
import statistics
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from small import training

from tracekit import run as runs
from tracekit.faces.markdown import draw_blocks
from tracekit.findings.tried import with_results
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.report.blocks import Excerpt
from tracekit.report.sections.headline import headline
from tracekit.run import Measured, Pass, Requested, Run, Traces, Variant

ROOT = Path(__file__).resolve().parent.parent.parent
SAMPLES = ["run.json", "h100/gcn_cora/run.json", "h100/self_loops/run.json"]
MS = 1_000_000
# What proposes to compile a model, wherever it stands; `torch.compiler` is a name of something else.
COMPILE_IT = re.compile(
    r"torch\.compile(?!r)|[Cc]ompile the model|[Ss]witch to torch|compiling fuses|fuse them \(torch"
)


def measured(step_ms, pairs=4):
    """Passes that took turns, each within 1 % of that time."""
    ns = [round(step_ms * MS * (1 + 0.005 * (k % 3 - 1))) for k in range(pairs)]
    return Measured(
        step_ns=round(statistics.geometric_mean(ns)),
        step_all_ns=[each for each in ns for _ in range(9)],
        spread_ns=0,
        clock="perf_counter",
        passes=[Pass(round=k, started_ns=100 * k, step_ns=each, step_all_ns=[each] * 9) for k, each in enumerate(ns)],
    )


def varied(sample, folder, factor, **changes):
    """A captured run in which every compiled variant takes so many times as long as its eager ones."""
    source = ROOT / "sample_traces" / sample
    run = runs.read(source)
    for each in run.variants:
        for path in filter(None, msgspec.structs.asdict(each.traces).values()):
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source.parent / path, target)
            if (lines := (source.parent / path.replace(".json.gz", ".lines.json.gz"))).exists():
                shutil.copy(lines, target.parent)
    variants = [
        replace(each, measured=measured(10.0 * (factor if each.requested.compile else 1)), **changes)
        for each in run.variants
    ]
    runs.write(replace(run, variants=variants), folder / "run.json")
    return report(open_subject([folder / "run.json"]))


def advice_of(made):
    """Every sentence of the whole report that is about what could be done."""
    kept = [section for section in made.sections if not any(isinstance(block, Excerpt) for block in section.blocks)]
    text = draw_blocks([block for section in kept for block in section.blocks])
    return [sentence for sentence in re.split(r"(?<=[.:]) (?=[A-Z])|\n", text) if COMPILE_IT.search(sentence)]


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("factor", [1.26, 1.0])
def test_where_compiling_was_no_faster_no_sentence_advises_it(tmp_path, sample, factor):
    made = varied(sample, tmp_path, factor)
    assert not advice_of(made)
    eager = {profile.name for profile in made.profiles if not profile.variant.requested.compile}
    said = " ".join(finding.advice for name in eager for finding in made.diagnoses[name].all_findings)
    if any(profile.variant.requested.compile for profile in made.profiles) and eager:
        result = "1.26 × slower than" if factor > 1 else "as fast as"
        assert re.search(rf"Compiling was tried here: \S+ is {result}", said)


def test_where_it_was_faster_the_advice_stays(tmp_path):
    made = varied("run.json", tmp_path, 0.5)
    assert "compile the model" in made.diagnoses["eager"].findings[0].do
    assert not made.attempts["eager"]


def test_next_names_what_holds_the_compiled_variant_back_and_what_to_do(tmp_path):
    (block, *_) = varied("h100/gcn_cora/run.json", tmp_path, 1.26).sections[0].blocks
    assert block.last.startswith("Next, in compiled: first mend this: ")
    assert re.search(r"\d+ graph breaks? at \S+:\d+\. Add the self-loops", block.last)


def test_a_compiled_variant_that_failed_is_no_advice_either(tmp_path):
    training(tmp_path / "eager.json", python=600)
    failed = Variant(
        name="compiled", outcome="error", error="BackendCompilerFailed: no kernel", requested=Requested(compile=True)
    )
    made = of_variants(tmp_path, Requested(compile=False), failed)
    text = with_results("Compile the model (torch.compile), so that operators are fused.", made.attempts["eager"])
    assert text == "Compiling was tried here: compiled failed (BackendCompilerFailed: no kernel)."
    assert headline(made)


def of_variants(folder, requested, other, **params):
    """A run of one variant with a trace, and of another one."""
    training(folder / "eager.json", steps=6)
    first = Variant(
        name="eager",
        outcome="ok",
        requested=requested,
        params=params,
        traces=Traces(steady="eager.json"),
        measured=measured(1.0),
    )
    run = Run(created=runs.now(), tracekit="0", recipe="r", script="r.py", variants=[first, other])
    runs.write(run, folder / "run.json")
    return report(open_subject([folder / "run.json"]))


@pytest.mark.parametrize(
    ("ours", "theirs", "advice", "said"),
    [
        ({}, {"mode": "reduce-overhead"}, 'Use CUDA graphs (mode="reduce-overhead").', "CUDA graphs were tried"),
        ({}, {"dynamic": True}, "Mark the dimension as dynamic (dynamic=True).", "Dynamic sizes were"),
        ({}, {"mode": "max-autotune"}, 'Let the compiler choose (mode="max-autotune").', "Autotuning was"),
        ({}, {"options": {"cpp_wrapper": True}}, 'Use options={"cpp_wrapper": True}.', "C++ wrappers were"),
        ({"backend": "aot_eager"}, {}, "Mend it: compile with one that fuses them (inductor).", "A backend that fuses"),
    ],
)
def test_settings_of_the_compiler_that_another_variant_has(tmp_path, ours, theirs, advice, said):
    for step_ms, outcome in ((1.1, "1.10 × slower than eager"), (1.0, "as fast as eager"), (0.8, None)):
        other = Variant(name="b", outcome="ok", requested=Requested(compile=True, **theirs), measured=measured(step_ms))
        folder = tmp_path / str(step_ms)
        folder.mkdir()
        text = with_results(advice, of_variants(folder, Requested(compile=True, **ours), other).attempts["eager"])
        assert text.startswith(advice)
        assert (said in text) is (outcome is not None)
        assert outcome is None or f"tried here: b is {outcome}" in text


@pytest.mark.parametrize(
    ("ours", "theirs", "advice", "step_ms", "said"),
    [
        ({"workers": 2}, {"workers": 8}, "Use more workers (num_workers).", 1.1, "More workers were tried here: b is"),
        ({"batch": 64}, {"batch": 128}, "Use larger batches.", 2.2, "b is 1.10 × slower than eager (1.0"),
        ({"batch": 64}, {"batch": 128}, "Use larger batches.", 1.5, None),
        ({"batch": 64}, {"batch": 32}, "Use larger batches.", 1.5, None),
        ({"amp": "fp32"}, {"amp": "bf16"}, "Try bfloat16 under autocast.", 1.1, "A smaller type was tried here"),
    ],
)
def test_parameters_that_another_variant_has(tmp_path, ours, theirs, advice, step_ms, said):
    eager = Requested(compile=False)
    other = Variant(name="b", outcome="ok", requested=eager, params=theirs, measured=measured(step_ms))
    text = with_results(advice, of_variants(tmp_path, eager, other, **ours).attempts["eager"])
    assert text == advice if said is None else said in text
    if said is not None and "batch" in ours:
        assert text.endswith(" per sample.")


def test_of_two_that_differ_in_more_the_one_that_differs_least_counts(tmp_path):
    eager = Requested(compile=False)
    training(tmp_path / "eager.json", steps=6)
    variants = [
        Variant(name="eager", outcome="ok", requested=eager, traces=Traces(steady="eager.json"), measured=measured(1)),
        Variant(name="plain", outcome="ok", requested=Requested(compile=True), measured=measured(1.2)),
        Variant(
            name="ahead",
            outcome="ok",
            requested=Requested(compile=True),
            params={"loops_ahead": True},
            measured=measured(0.5),
        ),
    ]
    run = Run(created=runs.now(), tracekit="0", recipe="r", script="r.py", variants=variants)
    runs.write(run, tmp_path / "run.json")
    (attempt,) = report(open_subject([tmp_path / "run.json"])).attempts["eager"]
    assert attempt.result.startswith("plain is 1.20 × slower than eager (")
    assert "; with loops_ahead=True, ahead is 2.0 × faster than eager (" in attempt.result
