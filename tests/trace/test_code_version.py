"""The name of the code behind a cached result changes with every module that it imports, and with no other."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tracekit.trace.storing.code_version import sources

PROBE = """
import json, sys, {module}
loaded = [name for name in sys.modules if name.startswith("tracekit.")]
print(json.dumps(loaded))
"""


@pytest.mark.parametrize("module", ["tracekit.trace.sources", "tracekit.engine.cached", "tracekit.analyses.syncs"])
def test_all_that_python_imports_is_counted(module: str) -> None:
    output = subprocess.run([sys.executable, "-c", PROBE.format(module=module)], capture_output=True, check=True)
    loaded = set(json.loads(output.stdout))
    assert module in loaded
    assert loaded <= set(sources(module))


def test_the_process_that_helps_to_read_is_counted() -> None:
    assert "tracekit.trace.reading.convert" in sources("tracekit.trace.sources")


def test_laws_and_rules_are_counted_though_no_statement_names_them() -> None:
    """They decide what is stored of a trace, and are imported as all modules of their packages."""
    assert {"tracekit.trace.facts.laws.recorders", "tracekit.trace.facts.laws.steps"} <= set(
        sources("tracekit.engine.cached")
    )
    assert "tracekit.findings.rules.host_calls" in sources("tracekit.findings")


def test_what_a_result_does_not_rest_on_is_not_counted() -> None:
    counted = sources("tracekit.engine.cached")
    assert not [name for name in counted if name.startswith(("tracekit.faces", "tracekit.tui", "tracekit.capture"))]


@pytest.mark.parametrize(
    "statement",
    [
        "from tracekit.deep.below.new import value",
        "from tracekit.deep.below import new",
        "from tracekit.deep.below import (\n    other,\n    new,  # the one\n)",
        "import tracekit.deep.below.new",
        "import json\n\ndef late():\n    from tracekit.deep.below import new",
    ],
)
def test_a_module_in_a_new_folder_is_counted_however_it_is_imported(tmp_path: Path, statement: str) -> None:
    below = tmp_path / "tracekit" / "deep" / "below"
    below.mkdir(parents=True)
    for folder in (below, below.parent, below.parent.parent):
        (folder / "__init__.py").touch()
    (below / "new.py").write_text("value = 1\n")
    (tmp_path / "tracekit" / "start.py").write_text(f"{statement}\n")
    counted = sources("tracekit.start", root=tmp_path)
    assert set(counted) == {"tracekit.start", "tracekit.deep", "tracekit.deep.below", "tracekit.deep.below.new"}
