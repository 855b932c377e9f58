"""A variant that failed or computes something else is said to before anything else, in every face."""

import pytest
from small import training

from tests.faces.formats import READ, written
from tests.report.test_run_facts import opened, variant
from tracekit.report import report
from tracekit.report.sections.headline import at_a_glance
from tracekit.run import Requested, Variant

_DOUBLE = "RuntimeError: torch.compile with aot_autograd does not currently support double backward"


def lead(made):
    """The lines that lead the report."""
    return made.sections[0].blocks[0].lines


def test_losses_that_differ_lead_the_report(tmp_path):
    eager = variant(tmp_path, "eager", losses=[1.0, 0.5])
    made = report(opened(tmp_path, eager, variant(tmp_path, "compiled", losses=[1.0, 0.525])))
    differing = "its losses differ from eager's by 5.0 % (rounding explains <0.1 %)"
    assert lead(made) == (f"In doubt, compiled: {differing}. It may not compute the same.",)
    assert at_a_glance(made, ()).change.endswith(f", and {differing}")  # it is as fast


def test_losses_that_are_not_finite_lead_it_too(tmp_path):
    eager = variant(tmp_path, "eager", losses=[1.0, 0.5])
    made = report(opened(tmp_path, eager, variant(tmp_path, "compiled", losses=[1.0, None])))
    assert "its losses are finite in other steps than eager's" in lead(made)[0]


def test_equal_losses_are_no_doubt(tmp_path):
    eager = variant(tmp_path, "eager", losses=[1.0, 0.5])
    made = report(opened(tmp_path, eager, variant(tmp_path, "compiled", losses=[1.0, 0.50001])))
    assert made.sections[0].id == "headline"
    assert "losses" not in at_a_glance(made, ()).change


@pytest.mark.parametrize(
    ("outcome", "error", "said"),
    [
        ("error", "BackendCompilerFailed: no kernel", "compiled failed: BackendCompilerFailed: no kernel."),
        ("oom", "tried to allocate 3 GiB", "compiled ran out of memory: tried to allocate 3 GiB."),
        ("crash", None, "compiled crashed."),
        ("interrupted", "by Ctrl-C", None),
    ],
)
def test_a_variant_that_failed_leads_it_with_the_reason(tmp_path, outcome, error, said):
    failed = Variant(name="compiled", outcome=outcome, error=error, requested=Requested(compile=True))
    made = report(opened(tmp_path, variant(tmp_path, "eager"), failed))
    assert (lead(made)[0] == said) if said is not None else (made.sections[0].id == "headline")


def test_where_compiled_code_cannot_be_differentiated_twice_it_says_what_can_be_compiled(tmp_path):
    training(tmp_path / "eager.json")
    failed = Variant(name="compiled", outcome="error", error=_DOUBLE, requested=Requested(compile=True))
    made = report(opened(tmp_path, variant(tmp_path, "eager"), failed))
    (line,) = lead(made)
    assert line.startswith(f"compiled failed: {_DOUBLE}. Compiled code cannot be differentiated twice")
    assert "torch.func.grad" in line


@pytest.mark.parametrize("name", READ)
def test_every_face_has_it_before_any_step_time(tmp_path, name):
    eager = variant(tmp_path, "eager", losses=[1.0, 0.5])
    failed = Variant(name="max", outcome="error", error="no kernel", requested=Requested(compile=True))
    made = report(opened(tmp_path, eager, variant(tmp_path, "compiled", losses=[1.0, 0.525]), failed))
    text = written(made, tmp_path, name).read_text().replace("\\", "").replace("\N{NO-BREAK SPACE}", " ")
    flat = " ".join(text.split())
    told = [
        flat.find(each) for each in ("max failed: no kernel.", "In doubt, compiled: its losses", "a step unprofiled")
    ]
    assert 0 <= told[0] < told[1] < told[2]
