"""What the tests of capture share: recipes on disk, and two profiled passes that several tests examine."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
import warm

from tests.capture.capturing import COMPILED, RECIPE, Lines, perform, read_trace


@pytest.fixture
def lines():
    return Lines()


@pytest.fixture(scope="session", autouse=True)
def forked_passes():
    with warm.passes():
        yield


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """Use one thread: on a busy machine, two wait for each other, and a step of 1 ms takes 30."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def recipe(tmp_path_factory):
    path = tmp_path_factory.mktemp("recipes") / "tiny.py"
    path.write_text(RECIPE)
    return path


@pytest.fixture
def shared():
    """A path that is the same file inside and outside of every view."""
    path = Path("/dev/shm", f"tracekit-turns-{os.getpid()}")
    yield path
    path.unlink(missing_ok=True)


@pytest.fixture
def write_recipe(tmp_path):
    def write(text):
        path = tmp_path / "recipe.py"
        path.write_text(text)
        return path

    return write


@pytest.fixture(scope="session")
def profiled(recipe, tmp_path_factory):
    """One profiled pass of the compiled recipe, whose sizes change at the seventh step."""
    return profile(recipe, tmp_path_factory.mktemp("profiled"), {"sizes": [6, 9]})


@pytest.fixture(scope="session")
def broken(recipe, tmp_path_factory):
    """One profiled pass of the recipe with a graph break, and with a counter that makes it recompile in every step."""
    return profile(recipe, tmp_path_factory.mktemp("broken"), {"broken": True})


def profile(recipe, folder, params):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        result = perform(folder, "profile", recipe, requested=COMPILED, steps=1, params=params)
    assert result.outcome == "ok", result.traceback
    return SimpleNamespace(
        ledger=result.ledger,
        effective=result.effective,
        cold=read_trace(folder / "cold.json.gz"),
        compiled_cold=[entry for entry in result.ledger.compiles if entry.during == "cold"],
    )


@pytest.fixture
def watch():
    """Emulate a GPU, and count what the emulation reports."""
    from tracekit.capture.audit.child import emulated

    with emulated() as emulation:
        emulation.watch.counting, emulation.watch.steps = True, 1
        yield emulation.watch


@pytest.fixture
def x(watch):
    """Six numbers on the emulated GPU."""
    import torch

    return torch.arange(6.0, device="cuda")
