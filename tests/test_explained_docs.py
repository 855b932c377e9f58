"""The pages in docs that explain findings, laws and buckets, and the examples on them, are those of today's code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs import examples
from docs.made import FOLDERS, HERE, pages


def test_the_pages_are_todays() -> None:
    made = pages()
    written = {f"{folder}/{path.name}" for folder in FOLDERS.values() for path in (HERE / folder).iterdir()}
    assert written == {path for path in made if "/" in path}, "run: make pages"
    stale = [path for path, text in made.items() if (HERE / path).read_text(encoding="utf-8") != text]
    assert not stale, "run: make pages"


def test_links_between_them_lead_to_pages() -> None:
    for path, text in pages().items():
        for target in re.findall(r"\]\(([^)]*\.md)\)", text):
            assert (HERE / path).parent.joinpath(target).resolve().exists(), (path, target)


def test_the_examples_are_todays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")  # whatever the terminal
    assert examples.STORED.read_text(encoding="utf-8") == examples.made(), "run: make pages"
