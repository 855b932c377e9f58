"""The tracekit that is running: its version, how it gets an extra, what comes with it, and how a child process imports
the same one.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib import metadata

DISTRIBUTION = "tracekit-torch"  # on PyPI, where the name `tracekit` belongs to another tool
_PACKAGE = Path(__file__).resolve().parent
# By what made the environment: how tracekit gets an extra there, and how the environment gets a package.
_COMMANDS = {
    "pip": ("pip install {origin}", "pip install {package}"),
    "uv": ("uv pip install {origin}", "uv pip install {package}"),
    "pipx": ("pipx install --force {origin}", f"pipx inject {DISTRIBUTION} {{package}}"),
    "pipx run": ("pipx run --spec {origin} tracekit", "pipx run --with {package} --spec {origin} tracekit"),
    "uv tool": ("uv tool install {origin}", "uv tool install --with {package} {origin}"),
    "uvx": ("uvx --from {origin} tracekit", "uvx --with {package} --from {origin} tracekit"),
}


def version() -> str | None:
    """The installed version; None in a clone that was not installed."""
    distribution = _distribution()
    return distribution.version if distribution else None


def install_command(extra: str) -> str:
    """The command that adds an extra to this installation, by the tool that made it and from where it came."""
    return _command(extra, "")


def package_command(package: str) -> str:
    """The command that adds a package to the environment of this installation."""
    return _command("", package)


def python_path() -> str:
    """A PYTHONPATH with which a Python process imports this tracekit, even if another one is installed."""
    return os.pathsep.join([str(_PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])


def data_folder(name: str) -> Path:
    """A folder that comes with tracekit: beside its modules if it was installed, beside the package in a clone."""
    installed = _PACKAGE / name
    return installed if installed.is_dir() else _PACKAGE.parent / name


def sample_run() -> Path:
    """The run that comes with tracekit."""
    return data_folder("sample_traces") / "h100" / "modes" / "run.json"


def _command(extra: str, package: str) -> str:
    import shlex  # only where something is missing

    distribution = _distribution()
    tool = _tool(distribution)
    extras = {extra} - {""}
    if distribution and tool not in ("pip", "uv"):  # the others replace the environment
        extras |= _extras_there(distribution)
    command = _COMMANDS[tool][1 if package else 0]
    return command.format(origin=_origin(distribution, sorted(extras)), package=shlex.quote(package))


def _distribution() -> "metadata.Distribution | None":
    from importlib import metadata  # takes a while

    try:
        return metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return None


def _tool(distribution: "metadata.Distribution | None") -> str:
    """What made the environment. pipx and `uv tool install` leave a file in it; what uvx makes is in uv's cache, in a
    folder that is named after a version.
    """
    environment = Path(sys.prefix)
    if (environment / "pipx_metadata.json").is_file():
        return "pipx" if environment.parent.name == "venvs" else "pipx run"
    if (environment / "uv-receipt.toml").is_file():
        return "uv tool"
    name = ((distribution and distribution.read_text("INSTALLER")) or "").strip()
    if name == "uv" and "-v" in environment.parent.name and (environment.parents[1] / "CACHEDIR.TAG").is_file():
        return "uvx"
    return name if name in _COMMANDS else "pip"


def _extras_there(distribution: "metadata.Distribution") -> set[str]:
    """The extras whose packages are all installed."""
    import re
    from importlib import metadata

    there: dict[str, bool] = {}
    for requirement in distribution.requires or ():
        if match := re.fullmatch(r"""([\w.-]+).*; *extra *== *['"]([\w-]+)['"]""", requirement):
            package, extra = match.groups()
            there[extra] = there.get(extra, True) and any(True for _ in metadata.distributions(name=package))
    return {extra for extra, is_there in there.items() if is_there}


def _origin(distribution: "metadata.Distribution | None", extras: list[str]) -> str:
    """Where it came from, as an installer takes it: a folder, an address, or the name for an index.

    That is in `direct_url.json`, which installations from an index do not have
    (https://packaging.python.org/en/latest/specifications/direct-url/).
    """
    import json
    import shlex
    from urllib.parse import unquote, urlsplit

    of_extras = f"[{','.join(extras)}]" if extras else ""
    if distribution:
        origin = json.loads(distribution.read_text("direct_url.json") or "{}")
    else:
        origin = {"url": _PACKAGE.parent.as_uri(), "dir_info": {}}
    url = origin.get("url", "")
    if "dir_info" in origin:
        editable = "-e " if origin["dir_info"].get("editable") else ""
        return f"{editable}{shlex.quote(unquote(urlsplit(url).path) + of_extras)}"
    version_control = origin.get("vcs_info")
    if version_control:
        url = f"{version_control['vcs']}+{url}@{version_control['commit_id']}"
    return shlex.quote(f"{DISTRIBUTION}{of_extras}" + (f" @ {url}" if url else ""))
