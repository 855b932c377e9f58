"""What the compiler's own words say is to be done, and what is not to be said of code that is compiled already."""

import inspect

import pytest
import torch_geometric.nn
import torch_geometric.utils
from msgspec.structs import replace
from small import BEFORE, kernel, launch, op, step, write
from torch_geometric.utils import num_nodes

from tests.findings.healthy import healthy
from tracekit.analyses import answers
from tracekit.analyses.compiled_code import is_on_purpose
from tracekit.findings import Finding, diagnose
from tracekit.findings.compiler_advice import NORMS, SIZES, against_break, against_guard
from tracekit.profile import open_subject
from tracekit.run import Break, Ledger, Limit, Requested, Variant

LIBRARIES = "/venv/lib/python3.11/site-packages"
ITEM = "Unsupported Tensor.item() call with capture_scalar_outputs=False: Dynamo does not support tracing it"
MARKED = "Attempted to call function marked as skipped: Dynamo developers have intentionally marked that the function"
RATE = "3/7: self.param_groups[0]['lr'] == 0.0466  # (_dynamo/output_graph.py:3375 in remove_tensorify)"


def stack(*frames: tuple[str, str]) -> str:
    return "\n".join(f'  File "{file}", line 7, in {function}\n    code()' for file, function in frames)


def broken(reason: str, *frames: tuple[str, str]) -> Break:
    return Break(compile="0/0", reason=reason, file=frames[-1][0], line=7, stack=stack(*frames), t_ns=0)


MODEL = ("/home/me/model.py", "forward")
SCATTER = (f"{LIBRARIES}/torch_geometric/utils/_scatter.py", "scatter")
POOL = (f"{LIBRARIES}/torch_geometric/nn/pool/glob.py", "global_add_pool")
NORM = (f"{LIBRARIES}/torch_geometric/nn/conv/gcn_conv.py", "gcn_norm")
LOOPS = (f"{LIBRARIES}/torch_geometric/utils/loop.py", "add_remaining_self_loops")
GPS = (f"{LIBRARIES}/torch_geometric/nn/conv/gps_conv.py", "forward")
WRAPPER = (f"{LIBRARIES}/torch_geometric/experimental.py", "wrapper")
DENSE = (f"{LIBRARIES}/torch_geometric/utils/_to_dense_batch.py", "to_dense_batch")
GRAPH_NORM = (f"{LIBRARIES}/torch_geometric/nn/norm/graph_norm.py", "forward")
AGGREGATION = (f"{LIBRARIES}/torch_geometric/nn/aggr/base.py", "__call__")
OPTIMIZER = (f"{LIBRARIES}/torch/optim/optimizer.py", "_use_grad")


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (RATE, "Pass the learning rate as a tensor"),
        ("0/7: self.steps == 8    # return x * steps", "Pass steps as an argument"),
        ("0/0: tensor 'x' size mismatch at index 0. expected 3, actual 4", "mark_dynamic"),
        ("0/0: k == 0.5  # y = x * k", "Pass the number as a tensor"),
        ("0/0: k == 1e-05  # y = x * k", "cannot be marked dynamic"),
        ("0/0: len(x) == 3  # for each in x", None),
        ("2/0: self.param_groups[0]['betas'][0] == 0.95    # for group in self.param_groups", "cycle_momentum=False"),
        ("2/0: self.param_groups[0]['momentum'] == 0.85  # in step", "cycle_momentum=False"),
        ("2/0: self.param_groups[0]['weight_decay'] == 0.01  # in step", "Leave weight_decay of the optimizer as it"),
    ],
)
def test_a_guard_says_what_to_do(reason, words):
    advice = against_guard(reason)
    assert advice is None if words is None else words in advice


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        ((MODEL, POOL, SCATTER), "global_add_pool the size that it reads from the data: size=…"),
        ((MODEL, SCATTER), "scatter the size that it reads from the data: dim_size=…"),
        (
            (MODEL, WRAPPER, DENSE),
            "to_dense_batch the size that it reads from the data: batch_size=… and max_num_nodes=…",
        ),
        ((MODEL, GRAPH_NORM, SCATTER), "GraphNorm the size that it reads from the data: batch_size=…"),
        ((MODEL, AGGREGATION, SCATTER), "the aggregation the size that it reads from the data: dim_size=…"),
        ((MODEL, GPS, WRAPPER, DENSE), None),  # which takes no sizes to pass on
        ((MODEL, NORM, LOOPS), "normalize=False"),
        ((MODEL, LOOPS), "add_self_loops=False"),
        ((POOL, MODEL), None),  # a function of the user's that the library calls
        ((MODEL,), None),
    ],
)
def test_a_size_that_is_read_from_the_data_is_to_be_given(frames, words):
    advice = against_break(broken(ITEM, *frames))
    assert advice is None if words is None else words in advice
    assert against_break(broken("Failed to trace builtin operator print", *frames)) is None


@pytest.mark.parametrize("function", SIZES)
def test_the_library_has_these_parameters(function):
    places = (torch_geometric.nn, torch_geometric.utils, num_nodes)
    found = next(getattr(place, function) for place in places if hasattr(place, function))
    assert {name.strip("=…") for name in SIZES[function].split(" and ")} <= {*inspect.signature(found).parameters}


@pytest.mark.parametrize("module", NORMS)
def test_these_layers_take_a_batch_size(module):
    layer = getattr(torch_geometric.nn, NORMS[module])
    assert layer.__module__.endswith(f".{module}")
    assert "batch_size" in inspect.signature(layer.forward).parameters


def test_all_breaks_on_purpose_are_said_to_be(tmp_path):
    profile = open_subject([healthy(tmp_path / "t.json")]).profiles[0]
    ledger = Ledger(breaks=[broken(MARKED, MODEL, OPTIMIZER)])
    variant = Variant(name="a", outcome="ok", requested=Requested(compile=True), ledger=ledger)
    (answer,) = (each for each in answers(replace(profile, variant=variant)) if each.analysis == "graph_breaks")
    assert answer.sentence.endswith("All are made by torch on purpose: there is nothing to rewrite.")


def test_a_backend_that_fuses_nothing_is_named(tmp_path):
    profile = open_subject([write(tmp_path / "t.json", *BEFORE, step(0, 0, 100), op("aten::add", 10, 90))]).profiles[0]
    for backend, expected in (
        ("aot_eager", "The backend aot_eager runs each"),
        ("inductor", "outside of the compiled"),
    ):
        variant = Variant(name="a", outcome="ok", requested=Requested(compile=True, backend=backend))
        advice = {each.id: each.advice for each in diagnose(replace(profile, variant=variant)).all_findings}
        assert expected in advice["cpu_compute"]


def test_what_torch_breaks_by_design_is_told_from_what_the_user_broke():
    assert is_on_purpose(broken(MARKED, MODEL, OPTIMIZER))
    assert is_on_purpose(broken("Call to `torch._dynamo.graph_break()`: User-inserted graph break", MODEL, OPTIMIZER))
    assert not is_on_purpose(broken("Call to `torch._dynamo.graph_break()`: User-inserted graph break", MODEL))
    assert not is_on_purpose(broken(ITEM, MODEL, SCATTER))


def findings(folder, ledger: Ledger) -> dict[str, Finding]:
    """What is found in a healthy training that was compiled with this ledger; it idles without need."""
    profile = open_subject([healthy(folder / "t.json", waits=True)]).profiles[0]
    variant = Variant(name="a", outcome="ok", requested=Requested(compile=True), ledger=ledger)
    return {finding.id: finding for finding in diagnose(replace(profile, variant=variant)).all_findings}


def test_a_limit_quotes_the_guard_and_knows_its_cure(tmp_path):
    limit = findings(tmp_path, Ledger(limits=[Limit(file="sgd.py", line=105, name="step", reason=RATE, t_ns=0)]))
    finding = limit["recompile_limit"]
    assert finding.title.endswith("The guard that failed last: self.param_groups[0]['lr'] == 0.0466")
    assert finding.advice.startswith("Pass the learning rate as a tensor")
    assert finding.advice.endswith("or raise torch._dynamo.config.recompile_limit.")


def test_breaks_on_purpose_are_not_to_be_rewritten(tmp_path):
    designed = broken(MARKED, MODEL, OPTIMIZER)
    assert "graph_breaks" not in findings(tmp_path, Ledger(breaks=[designed, designed]))
    mixed = findings(tmp_path, Ledger(breaks=[designed, broken(ITEM, MODEL, POOL, SCATTER)]))["graph_breaks"]
    assert mixed.title.startswith("1 graph break at …/utils/_scatter.py:7")
    assert "size=…" in mixed.advice


def test_what_is_compiled_is_not_to_be_compiled(tmp_path):
    profile = open_subject([slow(tmp_path)]).profiles[0]
    compiled = Variant(name="a", outcome="ok", requested=Requested(compile=True))
    for variant, expected in ((None, True), (compiled, False)):
        texts = " ".join(finding.advice for finding in diagnose(replace(profile, variant=variant)).all_findings)
        assert ("torch.compile" in texts) is expected, texts
        assert "at most" in texts


def test_what_replays_cuda_graphs_is_not_to_use_them(tmp_path):
    listed = {
        replayed: {finding.id: finding.advice for finding in diagnose(open_subject([path]).profiles[0]).all_findings}
        for replayed, path in ((False, slow(tmp_path)), (True, slow(tmp_path, "cudaGraphLaunch")))
    }
    (name,) = {"dispatch_bound", "launch_bound"} & {*listed[True]}
    assert listed[True][name].startswith("Bring more of the step into the CUDA graphs")
    assert "reduce-overhead" in listed[False][name]


def slow(folder, first_call="cudaLaunchKernel"):
    """Steps in which the host needs long for small kernels."""
    events = []
    for number in range(4):
        begin = 10_000.0 * number
        events.append(step(number, begin, begin + 5000))
        for call in range(50):
            at, correlation = begin + 100 * call, 100 * number + call + 1
            events += [
                op("aten::add", at, at + 80),
                launch(at + 40, at + 45, correlation, "cudaLaunchKernel" if call else first_call),
                kernel("add", at + 46, at + 50, correlation),
            ]
    return write(folder / f"{first_call}.json", *events)
