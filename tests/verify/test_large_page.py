"""The HTML page of a long trace is small, and making it takes memory that does not grow with the trace."""

import os
from pathlib import Path

import pytest

from tests.benchmarks.__main__ import SEED
from tests.benchmarks.measure import Suite
from tests.benchmarks.replicate import replicate

_MEGA = (200, 800)  # of JSON
_PAGE_BYTES, _MEMORY_BYTES = 1_000_000, 400_000_000


@pytest.mark.skipif(not os.environ.get("TRACEKIT_VERIFY"), reason="TRACEKIT_VERIFY is not set: make verify")
@pytest.mark.skipif(not SEED.exists(), reason=f"{SEED} is not there to be repeated")
def test_a_page_of_bounded_size_in_bounded_memory(tmp_path: Path) -> None:
    memory = []
    for mega in _MEGA:
        trace, page = tmp_path / f"{mega}.json.gz", tmp_path / f"{mega}.html"
        size = replicate(SEED, trace, mega * 1_000_000)
        made = Suite(trace, size, tmp_path / "cache", "2", 1).verb(
            "report", str(trace), "--format", "html", "-o", str(page)
        )
        assert made.code == 0, made.errors
        assert page.stat().st_size < _PAGE_BYTES
        assert made.memory < _MEMORY_BYTES
        memory.append(made.memory)
        print(f"{mega} MB of JSON: a page of {page.stat().st_size / 1e3:.0f} KB, {made.memory / 1e6:.0f} MB of memory")
    assert memory[1] < 1.3 * memory[0]
