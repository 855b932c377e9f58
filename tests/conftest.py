"""What the tests share: where the real traces are, and how many examples the property tests try."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import tempfile
from pathlib import Path

import hypothesis
import pytest
from real import TRACES

hypothesis.settings.register_profile(
    "default",
    max_examples=150,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large],
)
# For a long run, as in `make verify`: pytest --hypothesis-profile=thorough
hypothesis.settings.register_profile("thorough", parent=hypothesis.settings.get_profile("default"), max_examples=2000)
hypothesis.settings.load_profile("default")

# In the background or under nohup, a process ignores these signals, and so would everything that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Several test processes capture in one folder, which users cannot: each has locks of its own.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="tracekit-tests-state-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)


@pytest.fixture
def shared_traces() -> Path:
    """The folder of the real traces; skips the test if it is absent."""
    if not TRACES.is_dir():
        pytest.skip(f"the real traces are not here ({TRACES}); set TRACEKIT_TRACES")
    return TRACES


@pytest.fixture(autouse=True)
def outside_a_build_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide that the tests run on one, where every check is strict."""
    monkeypatch.delenv("CI", raising=False)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache that no other test uses."""
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Give bytes a fixed id: test workers must collect the same names, but compressed bytes contain the time."""
    return argname if isinstance(val, bytes) else None
