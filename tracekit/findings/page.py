"""What each finding means: its page, which a rule declares beside the code that it explains.

    @rule("busy_gpu", pages=(FindingPage("busy_gpu", "Kernels take their time", says="…", …),))

The example on it is a finding of a report that tracekit has made: `python -m docs.made` writes it to `examples.json`.
"""

from functools import lru_cache
from pathlib import Path

import msgspec
from msgspec import Struct

from tracekit.base.pages import Cure, Page, Part, cures, flowed, paragraph

_EXAMPLES = Path(__file__).with_name("examples.json")
_REPLAY = """The cost is what a step saves at most without that time, by a replay of the recorded steps in which all
    else happens as soon as what it waits for is done; without a GPU in the trace, it is that time itself. Time that a
    costlier finding claims as well counts there."""
# Cures of many findings.
DROPOUT = "Dropout draws other random numbers, unless `torch._inductor.config.fallback_random` is set."
COMPILE = Cure(f"Compile the model (`torch.compile`), which fuses operators. {DROPOUT}", "rounding")
PAD_BATCHES = Cure("Pad batches to a few sizes. Padding must be masked in losses and norms.", "rounding")
EXAMPLE, READ_MORE = "Example", "Read more"  # headings
_NO_EXAMPLE = "No recording that comes with tracekit shows this finding."


class FindingPage(Struct, frozen=True):
    """The page of a kind of finding. Texts are those of a reader of a report; they may span several lines."""

    id: str
    title: str
    says: str  # what holds where it is told
    slow: str  # why that takes time
    cost: str  # how the cost is computed, and what it rests on
    limits: str  # when it is wrong, or says too much or too little
    cures: tuple[Cure, ...]
    links: tuple[str, ...] = ()
    replayed: bool = True  # whether the cost comes from a replay without the claimed time

    @property
    def page(self) -> Page:
        """As every face shows it, with the example."""
        example = examples().get(self.id)
        parts = [
            paragraph("What it says", self.says),
            paragraph("Why that is slow", self.slow),
            Part("What it costs", (flowed(self.cost), *([flowed(_REPLAY)] if self.replayed else []))),
            paragraph("When it is wrong", self.limits),
            cures(self.cures),
            Part(EXAMPLE, (_NO_EXAMPLE,)),
        ]
        if example is not None:
            parts[-1] = Part(f"{EXAMPLE}: {example.source}", tuple(example.lines), "lines")
        if self.links:
            parts.append(Part(READ_MORE, self.links, "points"))
        return Page(self.id, "finding", self.title, tuple(parts))


class Example(Struct, frozen=True):
    """A finding as a report tells it, line by line, and what was reported."""

    source: str
    lines: list[str]


FINDING_PAGES: dict[str, FindingPage] = {}


def declare(page: FindingPage) -> FindingPage:
    """Register the page of a kind of finding. Raises ValueError if another one has its id."""
    if FINDING_PAGES.setdefault(page.id, page) != page:
        raise ValueError(f"two findings have the id {page.id!r}, or one has two pages: keep one")
    return page


@lru_cache
def examples() -> dict[str, Example]:
    """The examples by the id of the finding."""
    return msgspec.json.decode(_EXAMPLES.read_bytes(), type=dict[str, Example])
