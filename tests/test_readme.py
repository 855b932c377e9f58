"""What the README says of the repository is there, and the packages are all in its picture."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()


def test_the_picture_has_every_package() -> None:
    packages = {file.parent.name for file in ROOT.glob("tracekit/*/__init__.py")}
    assert packages == set(re.findall(r"^\| `tracekit/(\w+)/`", README, re.MULTILINE))


def test_the_files_that_it_names_exist() -> None:
    named = re.findall(
        r"`((?:tracekit|tests|recipes|docs|sample_traces)/[\w./]+)`|\]\(([\w./]+?)(?:#[\w-]+)?\)", README
    )
    missing = [path for pair in named for path in pair if path and not (ROOT / path).exists()]
    assert not missing
