"""What the tests of the terminal UI share."""

from pathlib import Path

import pytest

from tests.tui import made_traces


@pytest.fixture
def pair(tmp_path: Path) -> list[Path]:
    """An eager and a compiled trace."""
    return made_traces.pair(tmp_path)
