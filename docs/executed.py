"""Executes the notebooks of this folder on the sample run, and stores what they print. `make notebooks`."""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent / "notebooks"

if __name__ == "__main__":
    for path in sorted(FOLDER.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(FOLDER)}}).execute()
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)  # when it ran is of no interest, and differs each time
        nbformat.write(notebook, path)
