"""What a command says about installing works from where tracekit itself came, and with the tool that installed it."""

import json
import sys
from importlib import metadata
from pathlib import Path

import pytest

from tracekit.errors.asking import NeedsPackageError
from tracekit.installed import install_command, package_command

ORIGINS = {
    "an index": (None, "pip install 'tracekit-torch[plot]'"),
    "a folder": ({"url": "file:///home/me/trace%20kit", "dir_info": {}}, "pip install '/home/me/trace kit[plot]'"),
    "a checkout": ({"url": "file:///src/kit", "dir_info": {"editable": True}}, "pip install -e '/src/kit[plot]'"),
    "a repository": (
        {"url": "https://host.example/kit.git", "vcs_info": {"vcs": "git", "commit_id": "12ab"}},
        "pip install 'tracekit-torch[plot] @ git+https://host.example/kit.git@12ab'",
    ),
    "a wheel": (
        {"url": "https://host.example/kit.whl", "archive_info": {}},
        "pip install 'tracekit-torch[plot] @ https://host.example/kit.whl'",
    ),
}
# The environment's folder, a file in it, and what its INSTALLER says → the commands for an extra and for a package.
TOOLS = {
    "pip": ("env", "pyvenv.cfg", "pip\n", "pip install 'tracekit-torch[plot]'", "pip install fsspec"),
    "conda": ("env", "conda-meta", "conda", "pip install 'tracekit-torch[plot]'", "pip install fsspec"),
    "uv pip": ("env", "pyvenv.cfg", "uv", "uv pip install 'tracekit-torch[plot]'", "uv pip install fsspec"),
    "pipx": (
        "venvs/tracekit-torch",
        "pipx_metadata.json",
        "uv",
        "pipx install --force 'tracekit-torch[plot,sql]'",
        "pipx inject tracekit-torch fsspec",
    ),
    "pipx run": (
        ".cache/2623cc27",
        "pipx_metadata.json",
        "pip",
        "pipx run --spec 'tracekit-torch[plot,sql]' tracekit",
        "pipx run --with fsspec --spec 'tracekit-torch[sql]' tracekit",
    ),
    "uv tool": (
        "tools/tracekit-torch",
        "uv-receipt.toml",
        "uv",
        "uv tool install 'tracekit-torch[plot,sql]'",
        "uv tool install --with fsspec 'tracekit-torch[sql]'",
    ),
    "uvx": (
        "archive-v0/ix0Gy75r",
        "../../CACHEDIR.TAG",
        "uv",
        "uvx --from 'tracekit-torch[plot,sql]' tracekit",
        "uvx --with fsspec --from 'tracekit-torch[sql]' tracekit",
    ),
}


class Installed:
    """A distribution from an index, unless its origin says otherwise; beside it lies all that its extra `sql` needs."""

    requires = ("rich>=13.7", "msgspec>=1; extra == 'sql'", "no-such-package>=1; extra == 'plot'")

    def __init__(self, origin: object = None, installer: str = "pip\n") -> None:
        self.files = {"direct_url.json": json.dumps(origin) if origin else None, "INSTALLER": installer}

    def read_text(self, name: str) -> str | None:
        return self.files[name]


@pytest.mark.parametrize("case", ORIGINS)
def test_an_extra_comes_from_where_tracekit_came(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    origin, command = ORIGINS[case]
    monkeypatch.setattr(metadata, "distribution", lambda name: Installed(origin))
    assert install_command("plot") == command
    assert command in str(NeedsPackageError("A chart", "matplotlib", "plot"))


@pytest.mark.parametrize("tool", TOOLS)
def test_an_extra_and_a_package_come_by_the_tool_that_installed_tracekit(
    tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, file, installer, for_an_extra, for_a_package = TOOLS[tool]
    environment = tmp_path / folder
    environment.mkdir(parents=True)
    (environment / file).touch()
    monkeypatch.setattr(sys, "prefix", str(environment))
    monkeypatch.setattr(metadata, "distribution", lambda name: Installed(installer=installer))
    assert install_command("plot") == for_an_extra
    assert package_command("fsspec") == for_a_package


def test_a_clone_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", absent)
    assert install_command("plot").endswith("[plot]'")
    assert "pip install '/" in install_command("plot")
