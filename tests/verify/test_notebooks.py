"""The notebooks of the documentation run on the sample run, and print the outputs that they contain."""

import os
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

pytestmark = pytest.mark.skipif(not os.environ.get("TRACEKIT_VERIFY"), reason="long proofs: make verify")


def printed(notebook):
    """The text of every output, cell by cell."""
    return [
        "".join(output.get("text", "")) or output.get("data", {}).get("text/plain", "")
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output["output_type"] != "error"
    ]


def test_there_is_one_for_each_question():
    assert {path.stem for path in NOTEBOOKS} == {"launch_bound", "compiling", "recompiling"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_prints_what_it_holds(path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    stored, again = (nbformat.read(path, as_version=4) for _ in range(2))
    nbclient.NotebookClient(again, timeout=300, resources={"metadata": {"path": str(FOLDER)}}).execute()
    assert printed(again) == printed(stored)
