"""This very tracekit: its version, and how another process finds it."""

import os
from pathlib import Path


def version() -> str | None:
    """The version that is installed; None in a clone that is not."""
    from importlib import metadata  # takes a while

    try:
        return metadata.version("tracekit")
    except metadata.PackageNotFoundError:
        return None


def python_path() -> str:
    """A PYTHONPATH with which a Python process imports this tracekit, whichever else is installed."""
    root = str(Path(__file__).resolve().parents[1])
    return os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
