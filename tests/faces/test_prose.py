"""Prose on a terminal: short lines, whole quantities, and nothing else is changed."""

from io import StringIO

import pytest
from rich.console import Console
from rich.text import Text

from tracekit.faces.text import PROSE, Prose

SAID = "It takes 1.50 ms of 2.58 ms a step (58.3 %), 2.7 × faster than eager; 12 GiB and 3 steps in 9 s, 292 µs each."


def lines(width: int) -> list[str]:
    console = Console(file=StringIO(), width=width)
    with console.capture() as drawn:
        console.print(Prose(Text(SAID * 2)))
    return [line.rstrip() for line in drawn.get().splitlines()]


@pytest.mark.parametrize("width", range(12, 180))
def test_no_line_ends_between_a_number_and_its_unit(width: int) -> None:
    wrapped = lines(width)
    assert " ".join(wrapped) == SAID * 2  # the same words, with plain spaces
    assert max(map(len, wrapped)) <= min(width, PROSE)
    assert not [line for line in wrapped if line.startswith(("ms", "%", "×", "GiB", "s,", "µs"))]
