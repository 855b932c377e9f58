"""One thread for the recipes: two of them on a busy machine wait for each other."""

import os

import pytest

# What CI has no time for; `make verify-recipes` sets it.
slow = pytest.mark.skipif(not os.environ.get("TRACEKIT_ALL_RECIPES"), reason="TRACEKIT_ALL_RECIPES is not set")


@pytest.fixture(autouse=True)
def one_thread():
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
