"""One planted study for all tests that only read it."""

import pytest

from tests.study.planted_grid import plant


@pytest.fixture(scope="session")
def study(tmp_path_factory):
    return plant(tmp_path_factory.mktemp("planted"))
