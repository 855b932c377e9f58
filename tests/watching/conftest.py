"""No test's watch is known outside of the test."""

import pytest


@pytest.fixture(autouse=True)
def state(tmp_path_factory, monkeypatch):
    """The folder for the registry of watches."""
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder
