"""The tracekit that is running: its version, and how a child process imports the same one."""

import os
from pathlib import Path


def version() -> str | None:
    """The installed version; None in a clone that was not installed."""
    from importlib import metadata  # takes a while

    try:
        return metadata.version("tracekit")
    except metadata.PackageNotFoundError:
        return None


def python_path() -> str:
    """A PYTHONPATH with which a Python process imports this tracekit, even if another one is installed."""
    root = str(Path(__file__).resolve().parents[1])
    return os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])


def sample_run() -> Path:
    """The run that comes with tracekit: beside its modules if it was installed, beside the package in a clone."""
    package = Path(__file__).resolve().parent
    installed = package / "sample_traces" / "run.json"
    return installed if installed.is_file() else package.parent / "sample_traces" / "run.json"
