"""What a run of the tests said about each claim, and where and when: the contents of docs/proof.json."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from tests.proof.claims import CLAIMS, Claim

PATH = Path(__file__).parents[2] / "docs" / "proof.json"


class Outcome(Struct):
    """How the tests of a claim ended."""

    passed: int = 0
    failed: list[str] = []
    skipped: dict[str, int] = {}  # how many, by the reason
    examples: int = 0  # that property tests generated, of passing ones
    figures: dict[str, dict[str, Any]] = {}  # by the name of the test: what it recorded

    @property
    def holds(self) -> bool:
        """Whether some test passed and none failed."""
        return self.passed > 0 and not self.failed


class Part(Struct):
    """A part of `make verify-cuda`: how it ended, in its own words."""

    name: str
    passed: bool
    said: str


class Ledger(Struct):
    """One run of the tests of all claims."""

    set: str  # "quick" or "thorough"
    date: str
    commit: str
    changed: bool  # whether files differed from the commit
    seconds: int
    versions: dict[str, str]
    machine: str
    outcomes: dict[str, Outcome]
    fake_cuda: list[Part]
    fake_cuda_absent: str = ""  # why no part of it ran; "" where some did

    @property
    def failed(self) -> list[str]:
        """Every test and part that failed."""
        tests = [name for outcome in self.outcomes.values() for name in outcome.failed]
        return [*tests, *(part.name for part in self.fake_cuda if not part.passed)]


def outcome_of(claim: Claim, tests: Mapping[str, Mapping[str, Any]]) -> Outcome:
    """How those of the tests ended that hold the claim."""
    held = {name: test for name, test in tests.items() if name.startswith(claim.tests)}
    return Outcome(
        passed=sum(test["outcome"] == "passed" for test in held.values()),
        failed=[name for name, test in held.items() if test["outcome"] == "failed"],
        skipped=dict(Counter(test["why"] for test in held.values() if test["outcome"] == "skipped")),
        examples=sum(test["examples"] for test in held.values()),
        figures={name.partition("::")[2]: dict(test["figures"]) for name, test in held.items() if test["figures"]},
    )


def outcomes_of(tests: Mapping[str, Mapping[str, Any]], claims: Iterable[Claim] = CLAIMS) -> dict[str, Outcome]:
    """The outcome of each claim that has any."""
    return {claim.id: outcome for claim in claims if (outcome := outcome_of(claim, tests)) != Outcome()}


def read(path: Path = PATH) -> Ledger:
    """The ledger of the last run."""
    return msgspec.json.decode(path.read_bytes(), type=Ledger)


def write(ledger: Ledger, path: Path = PATH) -> None:
    """Keep the ledger of a run."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(ledger), indent=1) + b"\n")
