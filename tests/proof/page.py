"""docs/proof.md: the ledger as a page. Every figure is one that a run recorded, or is read from a file beside it."""

from __future__ import annotations

import ast
import json
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.proof import claims
from tests.proof.claims import Claim
from tests.proof.ledger import Ledger, Outcome

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "proof.md"
# The headings of the predictions in docs/gpu.md; below the second, it is left to the figures what became of each.
_FORETOLD = "| change | before | foretold | seen | |"
_FORETOLD_SHARES = "| change | before, four recordings | foretold, share of before | seen |"
_QUESTIONS = {
    "first": "the first finding is the cause that costs most, or one within a tenth of it",
    "culprit": "it names the line, the operator or the kernel that is at fault",
    "cost": 'what it promises to save is what the step would save, within a tenth; "at most" may be a quarter more',
    "verdict": "the verdict names what bounds the step",
    "quiet": "where nothing is wrong, nothing is found",
    "apart": "steps that start-up prolongs are told apart",
}


def page(ledger: Ledger) -> str:
    """The whole page."""
    sections = (_head, _twins, _worlds, _traces, _captures, _gpu, _not_proven)
    paragraphs = "\n\n".join(section(ledger) for section in sections).split("\n\n")
    return "\n\n".join(_wrapped(paragraph) for paragraph in paragraphs) + "\n"


def _wrapped(paragraph: str) -> str:
    """The paragraph in lines of the usual length; tables, lists and headings as they are."""
    if paragraph.startswith(("|", "- ", "#")):
        return paragraph
    return textwrap.fill(" ".join(paragraph.split()), 120, break_long_words=False, break_on_hyphens=False)


def _head(ledger: Ledger) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in ledger.versions.items())
    changed = " and what was not committed then" if ledger.changed else ""
    failed = f"**{len(ledger.failed)} failed**: the last list has the names." if ledger.failed else "None failed."
    return f"""# What is proven, and what is not

`make proof` runs the tests behind each claim and writes this page; no figure here was typed. This is its {ledger.set}
set of {ledger.date}, of commit {ledger.commit}{changed}: {ledger.seconds:,} s on {ledger.machine}, with {versions}.
{failed} [proof.json](proof.json) has all that was recorded."""


def _twins(ledger: Ledger) -> str:
    known = [ledger.outcomes[claim.id] for claim in claims.BY_TWIN if claim.id in ledger.outcomes]
    return f"""## By the contract, and by naive twins

A twin answers the same question in the slowest and plainest way. That of the contract shares no code with the package;
the others take names and the events that were read from it, and no answer. Property tests generated
{sum(each.examples for each in known):,} examples for all of them.

{_claims(ledger, claims.BY_TWIN, examples=True)}"""


def _worlds(ledger: Ledger) -> str:
    worlds = _only_figures(ledger, claims.WORLDS)
    rows = [
        (rate.says, f"{rate.right:,}", f"{rate.asked:,}", rate.share, f"{rate.wanted} %") for rate in _rates(ledger)
    ]
    return f"""## In worlds whose causes are known

A simulated machine runs a training script in which something is wrong, and writes the trace; the truth is the same
world without it. {worlds.get("worlds", 0):,} worlds, {worlds.get("causes", 0)} kinds of causes:

{_table(("", "right", "of", "rate", "wanted"), rows)}"""


class _Rate(NamedTuple):
    """How often something was right, of how many, and in how many percent it should be."""

    says: str
    right: int
    asked: int
    wanted: int

    @property
    def share(self) -> str:
        return f"{100 * self.right / self.asked:.1f} %" if self.asked else "–"

    @property
    def falls_short(self) -> bool:
        return 100 * self.right < self.wanted * self.asked


def _rates(ledger: Ledger) -> Iterator[_Rate]:
    """The rates in worlds and in damaged traces."""
    for name, counts in _only_figures(ledger, claims.WORLDS).get("rates", {}).items():
        yield _Rate(_QUESTIONS[name], *counts)
    for figures in _outcome(ledger, claims.WHAT_IF).figures.values():
        yield _Rate(f"what-if: if {figures['change']}, the true gain is in the range", *figures["within"])
    for claim, what in (
        (claims.DAMAGE, "a world, damaged in one or two"),
        (claims.DAMAGED_TRACES, "a real trace, damaged in one"),
    ):
        if damage := _only_figures(ledger, claim):
            says = f"of {what} of {damage['kinds']} ways, no more is claimed than the truth"
            yield _Rate(says, *damage["kept"])


def _traces(ledger: Ledger) -> str:
    rows, sample_rows = (_buckets(ledger, claim) for claim in (claims.TRACES, claims.SAMPLES))
    gpus = {row[1] for row in rows} - {"–"}
    first = _outcome(ledger, claims.FIRST_FINDINGS)
    return f"""## On real traces

**{_equal(rows)} of {len(rows)}** traces, on {len(gpus)} kinds of GPU and on CPUs, have every bucket of every step
equal to the twin's, to the nanosecond; so have {_equal(sample_rows)} of {len(sample_rows)} that come with tracekit. In
{first.passed} of {first.passed + len(first.failed)}, verdict and first culprit are those that people concluded from the
raw events. The traces of this table are not part of the repository; none says which version of PyTorch wrote it.

{_table(("trace", "GPU, as the file has it", "runtime", "events", "steps", "equal"), rows)}

{_claims(ledger, claims.BY_FORMAT)}"""


def _buckets(ledger: Ledger, claim: Claim) -> list[tuple[object, ...]]:
    """A row for each trace whose buckets were compared with the twin's; the last cell says whether they are equal."""
    outcome, rows = _outcome(ledger, claim), []
    for test, figures in outcome.figures.items():
        trace = figures["trace"]
        same = _yes(not any(failed.endswith(test) for failed in outcome.failed))
        name = test.partition("[")[2].rstrip("]")
        rows.append((name, trace["gpu"] or "–", trace["runtime"] or "–", f"{trace['events']:,}", trace["steps"], same))
    return rows


def _equal(rows: Iterable[Sequence[object]]) -> int:
    return sum(row[-1] == _yes(True) for row in rows)


def _captures(ledger: Ledger) -> str:
    if ledger.fake_cuda:
        rows = [(_question(part.name), _yes(part.passed), part.said) for part in ledger.fake_cuda]
        fake = f"""
PyTorch's CUDA build, unchanged, ran on CUDA libraries of our own, without a GPU: `make verify-cuda` has more parts.

{_table(("part", "passed", "it said"), rows)}"""
    else:
        fake = f"\nPyTorch's CUDA build on CUDA libraries of our own was not run: {ledger.fake_cuda_absent}."
    return f"""## By captures without a GPU

{_claims(ledger, claims.BY_CAPTURE)}
{fake}"""


def _gpu(ledger: Ledger) -> str:
    rows = []
    for figures in _outcome(ledger, claims.PAIRS).figures.values():
        pair = figures["pair"]
        within = pair["best_ns"] <= pair["after_ns"] <= pair["worst_ns"]
        nearest = pair["best_ns"] if pair["after_ns"] < pair["best_ns"] else pair["worst_ns"]
        apart = "within" if within else f"{100 * abs(pair['after_ns'] / nearest - 1):.0f} % outside"
        before, after, best, worst = (pair[key] / 1e6 for key in ("before_ns", "after_ns", "best_ns", "worst_ns"))
        rows.append((f"if {pair['change']}", f"{before:.2f}", f"{best:.2f}–{worst:.2f}", f"{after:.2f}", apart))
    made = _predictions()
    within = sum(row[-1] == "within" for row in made)
    return f"""## On a real GPU

Captures ran on {_captured_on()}. [On a GPU](gpu.md) has all that was seen there, written down at the time,
bounds that were exceeded included. Of {len(made)} predictions that `what-if` made before the change was, {within}
were within their range:

{_table(("change", "before, ms a step", "foretold", "seen", ""), made)}

What today's version says of the recordings that are kept. Its rules were mended after these were made, so this is no
prediction; it keeps what is said from becoming worse:

{_table(("change", "before, ms a step", "foretold today", "seen", ""), rows)}

{_claims(ledger, (claims.H100,))}"""


def _not_proven(ledger: Ledger) -> str:
    skipped = Counter[str]()
    for outcome in ledger.outcomes.values():
        skipped.update(outcome.skipped)
    later = [claim for claim in claims.CLAIMS if claim.id not in ledger.outcomes]
    gaps = [
        *(f"**Failed in this run**: `{name}`." for name in ledger.failed),
        *(
            f"Less often than wanted: {rate.says}, in {rate.right} of {rate.asked}; wanted in {rate.wanted} %."
            for rate in _rates(ledger)
            if rate.falls_short
        ),
        *(f"Not run in this set: {claim.says}" for claim in later),
        *(f"{'A test was' if count == 1 else f'{count} tests were'} skipped: {why}." for why, count in skipped.items()),
        f"Captures on any GPU but {_captured_on()}, on AMD's, or on several at once: no run that is kept here has "
        "them. How such recordings are read is tested on the traces above.",
        "That what is foretold comes true where the host sets the pace on an unsteady machine: see the failures above.",
        "That real training has the causes of the worlds as often, or in the same way: the rates hold for the worlds.",
        "That the contract is what you mean by the words. Twin and engine follow the same contract, so a rule that "
        "divides time unfairly is in both.",
        "That the profiler tells the truth. What it does not record, and no law notices, cannot be known from a trace.",
        "Operating systems other than Linux: no test runs there.",
        "This page runs none of `make gpu`, `make verify-torch` (captures with other versions of PyTorch) and `make "
        "bench` (how fast it is).",
    ]
    return "## What is not proven\n\n" + "\n".join(f"- {gap}" for gap in gaps)


def _claims(ledger: Ledger, listed: Iterable[Claim], examples: bool = False) -> str:
    rows = []
    for claim in listed:
        outcome = ledger.outcomes.get(claim.id)
        if outcome is None:
            continue
        passed = f"{outcome.passed} of {outcome.passed + len(outcome.failed)}"
        where = ", ".join(
            f"`{test.removeprefix('tests/')}`" for test in dict.fromkeys(t.partition("::")[0] for t in claim.tests)
        )
        rows.append(
            (claim.says, passed, *((f"{outcome.examples:,}" if outcome.examples else "–",) if examples else ()), where)
        )
    return _table(("claim", "tests passed", *(("examples",) if examples else ()), "in `tests`"), rows)


def _question(part: str) -> str:
    """What a part of `make verify-cuda` is about: the first sentence of its file, if it is one of tests."""
    path = ROOT / "tests" / "fakecuda" / f"{part}.py"
    said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) if path.exists() else None
    return f"{said.partition(chr(10))[0]} (`{part}`)" if said else f"`{part}`"


def _outcome(ledger: Ledger, claim: Claim) -> Outcome:
    return ledger.outcomes.get(claim.id, Outcome())


def _only_figures(ledger: Ledger, claim: Claim) -> dict[str, Any]:
    """What the only test of a claim recorded."""
    return next(iter(_outcome(ledger, claim).figures.values()), {})


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "**no**"


def _captured_on() -> str:
    """The GPUs of the runs in sample_traces, with the versions of PyTorch."""
    found = set()
    for path in sorted((ROOT / "sample_traces").glob("**/run.json")):
        environment = json.loads(path.read_text(encoding="utf-8"))["environment"]
        found |= {f"one {gpu['name']} with torch {environment['torch']}" for gpu in environment["gpus"]}
    return ", ".join(sorted(found))


def _predictions() -> list[tuple[str, ...]]:
    """What docs/gpu.md says was foretold before a change, what was seen after it, and whether that is within."""
    rows = [(*row, said.removesuffix(": see below")) for *row, said in _rows_below(_FORETOLD)]
    for change, before, foretold, seen in _rows_below(_FORETOLD_SHARES):
        least, most = map(float, foretold.split("–"))
        said = "within" if least <= float(seen) <= most else "outside"
        rows.append((f"{change}, later, with rules that had been mended", before, f"{foretold} of it", seen, said))
    return rows


def _rows_below(heading: str) -> list[list[str]]:
    _, _, rest = (ROOT / "docs" / "gpu.md").read_text(encoding="utf-8").partition(heading)
    rows = re.match(r"\n\|[-|]+\|\n((?:\|.*\|\n)+)", rest)
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[1].splitlines()] if rows else []


def _table(heading: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [f"| {' | '.join(heading)} |", f"|{'---|' * len(heading)}"]
    return "\n".join(
        [*lines, *(f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in row)} |" for row in rows)]
    )
