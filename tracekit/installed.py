"""The tracekit that is running: its version, how it gets an extra, and how a child process imports the same one."""

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def version() -> str | None:
    """The installed version; None in a clone that was not installed."""
    from importlib import metadata  # takes a while

    try:
        return metadata.version("tracekit")
    except metadata.PackageNotFoundError:
        return None


def install_command(extra: str) -> str:
    """The command that adds an extra to this installation, from where it came: a folder, an address, or an index.

    Where it came from is in `direct_url.json`, which installations from an index do not have
    (https://packaging.python.org/en/latest/specifications/direct-url/).
    """
    import json  # these take a while, and are needed only where something is missing
    import shlex
    from importlib import metadata
    from urllib.parse import unquote, urlsplit

    try:
        origin = json.loads(metadata.distribution("tracekit").read_text("direct_url.json") or "{}")
    except metadata.PackageNotFoundError:
        origin = {"url": _PACKAGE.parent.as_uri(), "dir_info": {}}
    url = origin.get("url", "")
    if "dir_info" in origin:
        editable = "-e " if origin["dir_info"].get("editable") else ""
        return f"pip install {editable}{shlex.quote(f'{unquote(urlsplit(url).path)}[{extra}]')}"
    version_control = origin.get("vcs_info")
    if version_control:
        url = f"{version_control['vcs']}+{url}@{version_control['commit_id']}"
    return f"pip install {shlex.quote(f'tracekit[{extra}]' + (f' @ {url}' if url else ''))}"


def python_path() -> str:
    """A PYTHONPATH with which a Python process imports this tracekit, even if another one is installed."""
    return os.pathsep.join([str(_PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])


def sample_run() -> Path:
    """The run that comes with tracekit: beside its modules if it was installed, beside the package in a clone."""
    within = Path("sample_traces", "h100", "modes", "run.json")
    installed = _PACKAGE / within
    return installed if installed.is_file() else _PACKAGE.parent / within
