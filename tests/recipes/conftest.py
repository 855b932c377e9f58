"""The packages that recipes need, and one thread per recipe: two would wait for each other on a busy machine."""

import gc
import importlib
import importlib.util
import os

import pytest

NEEDED = ("torch", "torch_geometric", "scipy")
INSTALL = "pip install -c constraints.txt -e '.[capture,dev]'"  # from the root of the repository, as `make test` does

# Runs the cases for which CI has no time; `make verify-recipes` sets it.
slow = pytest.mark.skipif(not os.environ.get("TRACEKIT_ALL_RECIPES"), reason="TRACEKIT_ALL_RECIPES is not set")


def missing(*packages: str) -> str | None:
    """The packages that are not installed, and the command that installs them."""
    absent = [package for package in packages if importlib.util.find_spec(package) is None]
    return f"the recipes need {' and '.join(absent)}, not installed here: {INSTALL}" if absent else None


def pytest_collect_file(parent: pytest.Collector) -> None:
    """Fail with one message, before each file of tests fails at an import."""
    if why := missing(*NEEDED):
        raise parent.CollectError(why)


@pytest.fixture(scope="session", autouse=True)
def frozen_garbage():
    """Dynamo collects garbage as it compiles, and would look through all of torch each time."""
    for name in (*NEEDED, "torch._dynamo"):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def one_thread():
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
