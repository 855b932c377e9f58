"""Why compiling helped or did not: for each planted cause the sentence names it, with its share."""

import pytest
from real import trace_path
from small import event, kernel, launch, op, step, write

from tests.findings.edits import Tape, recompile
from tracekit import run as runs
from tracekit.profile import open_subject
from tracekit.report import report
from tracekit.run import Break, Compile, Effective, Ledger, Limit, Measured, Pass, Requested, Run, Skip, Traces, Variant
from tracekit.run.settings import BACKENDS

MS = 1_000_000


def trace(path, kernels, *, calls=1, python=0.0, compile_us=0.0, steps=4):
    """Steps of consecutive kernels, `{name: µs}` each, submitted by `calls` calls after `python` µs."""
    events = []
    for k in range(steps):
        t = at = 100_000.0 * k
        at += python
        if compile_us:
            events.append(event("cpu_op", "_compile.compile_inner (dynamo_timed)", at, at + compile_us))
            at += compile_us
        began = at
        for each in range(calls):
            events.append(op(f"aten::op{each}", at, at + 4))
            events.append(launch(at + 1, at + 3, 1000 * k + each + 1))
            at += 4
        gpu = began + 5
        for number, (name, us) in enumerate(kernels.items()):
            events.append(kernel(name, gpu, gpu + us, 1000 * k + min(number, calls - 1) + 1))
            gpu += us
        events.append(step(k, t, max(at, gpu) + 1))
    return write(path, *events)


def variant(
    name,
    folder,
    *,
    step_ms,
    passes=24,
    compiled=True,
    backend=None,
    mode=None,
    ledger=None,
    effective=None,
    tape=None,
    **of_trace,
):
    """A variant with a synthetic trace, or with a real one after editing."""
    path = folder / f"{name}.json"
    if tape is None:
        trace(path, **of_trace)
    else:
        tape.write(path)
    ns = int(step_ms * MS)
    return Variant(
        name=name,
        outcome="ok",
        requested=Requested(compile=compiled, backend=backend, mode=mode),
        effective=effective or Effective(),
        traces=Traces(steady=f"{name}.json"),
        measured=Measured(
            step_ns=ns,
            step_all_ns=[ns, ns + 10, ns - 10] * 5,
            spread_ns=10,
            clock="cuda events",
            passes=[Pass(round=k, started_ns=k, step_ns=ns, step_all_ns=[ns]) for k in range(passes)],
        ),
        ledger=ledger or Ledger(),
    )


def said(tmp_path, eager, compiled):
    """What the section says about a compiled variant compared with an eager one."""
    both = [variant("eager", tmp_path, compiled=False, **eager), variant("compiled", tmp_path, **compiled)]
    run = Run(created="2026-11-21T20:00:00+00:00", tracekit="0", recipe="gcn", script="r.py", variants=both)
    runs.write(run, tmp_path / "run.json")
    sections = [each for each in report(open_subject([tmp_path / "run.json"])).sections if each.id == "compiling"]
    assert [(each.scope, each.variant, each.baseline) for each in sections] == [("comparison", "compiled", "eager")]
    return sections[0].blocks[0].lines[0]


def compile_of(kind, guard=None):
    return Compile(id="0/0", kind=kind, guard=guard, start_ns=0, end_ns=1, thread=1)


PRODUCTS = {"ampere_sgemm_128x64_tn": 900.0, "void at::native::vectorized_elementwise_kernel<4, add<float>>": 80.0}
FUSED = {"ampere_sgemm_128x64_tn": 900.0, "triton_poi_fused_add_0": 40.0}
GUARD = "L['x'].size()[0] == 512"


@pytest.mark.parametrize(
    ("eager", "compiled", "sentences"),
    [
        pytest.param(
            {"step_ms": 1.0, "kernels": PRODUCTS},
            {"step_ms": 0.97, "kernels": FUSED},
            [
                "A step becomes only 3.0 % shorter because 95",
                "% of a step is matrix products and convolutions, which compiling leaves as they are.",
                "what can be fused 80.0 µs → 40.0 µs.",
            ],
            id="bound by matrix products",
        ),
        pytest.param(
            {"step_ms": 1.0, "kernels": PRODUCTS},
            {
                "step_ms": 3.0,
                "kernels": FUSED,
                "ledger": Ledger(limits=[Limit(name="forward", t_ns=1)], compiles=[compile_of("recompile", GUARD)] * 8),
            },
            [
                "A step takes 3.0 × as long as before, because forward reached the recompile limit and ran eagerly "
                "from then on",
                GUARD,
            ],
            id="limit reached",
        ),
        pytest.param(
            {"step_ms": 1.0, "kernels": {"triton_poi_fused_add_0": 5.0}, "calls": 20, "python": 300},
            {
                "step_ms": 0.98,
                "kernels": {"triton_poi_fused_add_0": 5.0},
                "calls": 18,
                "python": 290,
                "ledger": Ledger(breaks=[Break(compile="0/0", reason="item", line=k, t_ns=0) for k in range(6)] * 2),
            },
            ["because the GPU still spends 9", "6 graph breaks leave 18 launch calls a step"],
            id="broken into many graphs",
        ),
        pytest.param(
            {"step_ms": 1.0, "kernels": {"triton_poi_fused_add_0": 5.0}, "calls": 20},
            {"step_ms": 0.98, "kernels": {"triton_poi_fused_add_0": 5.0}, "calls": 18},
            ["because the GPU still spends", "18 launch calls a step are left, which CUDA graphs"],
            id="still bound by launches",
        ),
        pytest.param(
            {"step_ms": 1.0, "kernels": {"triton_poi_fused_add_0": 5.0}, "calls": 20},
            {
                "step_ms": 0.98,
                "kernels": {"triton_poi_fused_add_0": 5.0},
                "calls": 18,
                "ledger": Ledger(skips=[Skip(reason="mutated inputs", t_ns=0)]),
            },
            ["CUDA graphs were not recorded (mutated inputs)", "1 CUDA graph not recorded"],
            id="CUDA graphs skipped",
        ),
        pytest.param(
            {"step_ms": 1.0, "kernels": PRODUCTS},
            {"step_ms": 1.0, "kernels": PRODUCTS, "effective": Effective(ran_eagerly="no module was called")},
            ["A step takes as long as before,", "because nothing was compiled: no module was called."],
            id="nothing was compiled",
        ),
        pytest.param(
            {"step_ms": 1.0, "kernels": FUSED, "calls": 40, "python": 900},
            {"step_ms": 4.0, "kernels": FUSED, "calls": 5, "python": 10},
            ["A step takes 4.0 × as long as before, but its traced steps, which became", "shorter, do not show why."],
            id="traces that say otherwise",
        ),
        pytest.param(
            {"step_ms": 1.0, "kernels": FUSED, "calls": 40, "python": 900},
            {"step_ms": 1.5, "kernels": FUSED, "calls": 5, "python": 10},
            ["A step becomes 50.0 % longer, but its traced steps, which became"],
            id="traces that say otherwise, of a step not twice as long",
        ),
        pytest.param(
            {"step_ms": 1.0, "kernels": FUSED, "calls": 40, "python": 900},
            {"step_ms": 0.5, "kernels": FUSED, "calls": 5, "python": 10},
            ["A step becomes 50.0 % shorter because it spends less on Python (−890 µs)", "40 eager, 5 compiled"],
            id="gained",
        ),
    ],
)
def test_the_reason_is_the_planted_one(tmp_path, eager, compiled, sentences):
    text = said(tmp_path, eager, compiled)
    for sentence in sentences:
        assert sentence in text


def test_recompiling_in_each_step_comes_first(tmp_path):
    ledger = Ledger(compiles=[compile_of("first"), *[compile_of("recompile", GUARD)] * 4])
    slow = {"step_ms": 9.0, "kernels": PRODUCTS, "compile_us": 5_000.0, "ledger": ledger}
    text = said(tmp_path, {"step_ms": 1.0, "kernels": PRODUCTS}, slow)
    assert f"A step takes 9.0 × as long as before, because each step compiles again (guard {GUARD})." in text
    assert "Compiling resulted in 5 graphs, 4 recompilations and 0 graph breaks." in text


def test_a_first_compilation_is_no_reason(tmp_path):
    """A script that is too short for a warm-up is recorded from its first step on."""
    ledger = Ledger(compiles=[compile_of("first")])
    slow = {"step_ms": 4.0, "kernels": FUSED, "calls": 5, "python": 10, "compile_us": 5_000.0, "ledger": ledger}
    text = said(tmp_path, {"step_ms": 1.0, "kernels": FUSED, "calls": 40, "python": 900}, slow)
    assert text.startswith("A step takes 4.0 × as long as before, ")
    assert "again" not in text
    assert "Compiling resulted in 1 graph, 0 recompilations and 0 graph breaks." in text


def slowed(factor):
    """A real eager step on a GPU that is `factor` times as slow: it sets the pace, and the host runs ahead of it."""
    tape = Tape.read(trace_path("leimao_eager_rtx5080"))
    work = [each for each in tape.events if each.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    first = min(each["ts"] for each in work)
    for each in work:
        each["ts"], each["dur"] = first + factor * (each["ts"] - first), factor * each["dur"]
    return tape


@pytest.mark.traces
@pytest.mark.parametrize(
    ("eager", "compiled", "sentences"),
    [
        pytest.param(
            12,
            11.8,
            [
                "% of a step is matrix products and convolutions, which compiling leaves as they are.",
                "Compiling can do nothing about",
            ],
            id="bound by the GPU",
        ),
        pytest.param(
            1,
            1,
            ["because the GPU still spends", "launch calls a step are left, which CUDA graphs"],
            id="still bound by launches",
        ),
    ],
)
def test_the_reason_is_the_one_planted_into_a_real_trace(tmp_path, eager, compiled, sentences):
    tapes = {"step_ms": 1.0, "tape": slowed(eager)}, {"step_ms": 0.98, "tape": slowed(compiled)}
    text = said(tmp_path, *tapes)
    assert text.startswith("A step becomes only 2.0 % shorter because")
    for sentence in sentences:
        assert sentence in text


@pytest.mark.traces
def test_recompiling_in_each_step_of_a_real_trace(tmp_path):
    tape = slowed(1)
    tape.plant(tape.idle_moments(), recompile(4_000.0))
    ledger = Ledger(compiles=[compile_of("recompile", GUARD)] * 4)
    slow = {"step_ms": 6.0, "tape": tape, "ledger": ledger}
    text = said(tmp_path, {"step_ms": 2.0, "tape": slowed(1)}, slow)
    assert text.startswith(f"A step takes 3.0 × as long as before, because each step compiles again (guard {GUARD}).")


@pytest.mark.traces
def test_what_a_real_cuda_graph_saves(tmp_path):
    replayed = Tape.read(trace_path("leimao_cudagraph_manual_rtx5080"))
    text = said(tmp_path, {"step_ms": 2.58, "tape": slowed(1)}, {"step_ms": 0.96, "tape": replayed})
    assert text.startswith(
        "A step becomes 62.8 % shorter because it spends less on dispatch (−784 µs), Python (−429 µs)"
    )
    assert "waiting for the host" not in text


def test_two_compiled_variants_and_bare_traces_have_no_such_section(tmp_path):
    both = [variant(name, tmp_path, step_ms=1, kernels=PRODUCTS) for name in ("compiled", "again")]
    run = Run(created="2026-11-21T20:00:00+00:00", tracekit="0", recipe="gcn", script="r.py", variants=both)
    runs.write(run, tmp_path / "run.json")
    for inputs in ([tmp_path / "run.json"], [tmp_path / "compiled.json", tmp_path / "again.json"]):
        assert not [each for each in report(open_subject(inputs)).sections if each.id == "compiling"]


def work(us, name="void at::native::reduce_kernel<512>"):
    return {name: float(us)}


@pytest.mark.parametrize(
    ("settings", "eager", "kernels", "says"),
    [
        pytest.param(
            {"backend": "aot_eager"},
            work(900),
            work(600),
            "is other GPU work, which aot_eager does not fuse.",
            id="aot_eager",
        ),
        pytest.param(
            {"backend": "tensorrt"},
            work(900),
            work(600),
            "is other GPU work, which takes 300 µs less than in eager in these traces, which the passes without the "
            "profiler do not confirm.",
            id="a backend of which nothing is known",
        ),
        pytest.param(
            {},
            work(900),
            work(600, "triton_red_fused_sum_0"),
            "is other GPU work, of which fusing saved 300 µs in these traces, which the passes without the profiler do "
            "not confirm.",
            id="inductor",
        ),
        pytest.param(
            {},
            work(900),
            work(600),
            "is other GPU work, which takes 300 µs less than in eager",
            id="no generated kernel",
        ),
        pytest.param(
            {}, work(900), work(900), "is other GPU work, which takes as long as in eager.", id="nothing generated"
        ),
        pytest.param(
            {},
            work(900),
            work(900, "triton_red_fused_sum_0"),
            "is other GPU work, of which fusing saved nothing.",
            id="fused in vain",
        ),
    ],
)
def test_fusing_is_said_only_of_what_fuses(tmp_path, settings, eager, kernels, says):
    sentence = said(tmp_path, {"step_ms": 1.0, "kernels": eager}, {"step_ms": 1.0, "kernels": kernels, **settings})
    assert sentence.startswith("A step takes as long as before, within noise, because")
    assert says in sentence


def test_what_outweighs_the_fusing_is_named(tmp_path):
    sentence = said(
        tmp_path,
        {"step_ms": 1.0, "kernels": work(900)},
        {"step_ms": 1.0, "kernels": work(600, "triton_red_fused_sum_0"), "python": 300},
    )
    assert "of which fusing saved 300 µs, while Python costs 300 µs." in sentence


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "18 launch calls a step are left, which CUDA graphs (mode='reduce-overhead') would replay as one."),
        ({"mode": "reduce-overhead"}, "18 launch calls a step are left."),
        (
            {"backend": "aot_eager"},
            "18 launch calls a step are left, because aot_eager neither fuses operators nor records CUDA graphs.",
        ),
        ({"backend": "tensorrt"}, "18 launch calls a step are left."),
        ({"backend": "cudagraphs"}, "18 launch calls a step are left."),
    ],
)
def test_what_is_left_to_the_host_depends_on_the_backend(tmp_path, settings, says):
    short = {"kernels": {"triton_poi_fused_add_0": 5.0}}
    sentence = said(
        tmp_path, {"step_ms": 1.0, **short, "calls": 20}, {"step_ms": 0.98, **short, "calls": 18, **settings}
    )
    assert says in sentence


@pytest.mark.parametrize(
    ("backend", "says"),
    [
        (None, "Compiling can do nothing about 91."),
        ("aot_eager", "Compiling with aot_eager can do nothing about 99."),
        ("tensorrt", None),
    ],
)
def test_what_compiling_cannot_change_is_asked_of_the_backend(tmp_path, backend, says):
    sentence = said(
        tmp_path, {"step_ms": 1.0, "kernels": PRODUCTS}, {"step_ms": 0.97, "kernels": FUSED, "backend": backend}
    )
    assert says in sentence if says is not None else "can do nothing about" not in sentence
    assert ("which compiling leaves as they are" in sentence) == (backend != "tensorrt")


def test_the_backends_that_torch_has_are_known_by_their_names():
    torch = pytest.importorskip("torch")
    assert BACKENDS.keys() <= {*torch.compiler.list_backends(()), "eager_noexcept", "eager_debug"}
