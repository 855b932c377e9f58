"""An empty cache, and a trace that is large enough for it."""

from pathlib import Path

import pytest

from tests.trace.cached_traces import made
from tracekit.trace.storing import cache


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(cache.DIRECTORY, str(tmp_path / "cache"))
    monkeypatch.delenv("TRACEKIT_NO_CACHE", raising=False)
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace that is worth caching: 20 MB, compressed."""
    return made(tmp_path_factory.mktemp("big") / "big.json.gz", 20)
