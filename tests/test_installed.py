"""What a command says about installing works from where tracekit itself came."""

import json
from importlib import metadata

import pytest

from tracekit.errors.asking import NeedsPackageError
from tracekit.installed import install_command

CASES = {
    "an index": (None, "pip install 'tracekit[plot]'"),
    "a folder": ({"url": "file:///home/me/trace%20kit", "dir_info": {}}, "pip install '/home/me/trace kit[plot]'"),
    "a checkout": ({"url": "file:///src/kit", "dir_info": {"editable": True}}, "pip install -e '/src/kit[plot]'"),
    "a repository": (
        {"url": "https://host.example/kit.git", "vcs_info": {"vcs": "git", "commit_id": "12ab"}},
        "pip install 'tracekit[plot] @ git+https://host.example/kit.git@12ab'",
    ),
    "a wheel": (
        {"url": "https://host.example/kit.whl", "archive_info": {}},
        "pip install 'tracekit[plot] @ https://host.example/kit.whl'",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_an_extra_comes_from_where_tracekit_came(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    origin, command = CASES[case]

    class Installed:
        def read_text(self, name: str) -> str | None:
            assert name == "direct_url.json"
            return json.dumps(origin) if origin else None

    monkeypatch.setattr(metadata, "distribution", lambda name: Installed())
    assert install_command("plot") == command
    assert command in str(NeedsPackageError("A chart", "matplotlib", "plot"))


def test_a_clone_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", absent)
    assert install_command("plot").endswith("[plot]'")
    assert "pip install '/" in install_command("plot")
