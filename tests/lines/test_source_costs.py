"""What the lines of a file cost, alone and with others: for a margin beside its text."""

import pytest

from tracekit.lines.means import Owner, OwnerMean, OwnerMeans
from tracekit.lines.owners import SourceLine
from tracekit.report.owner_costs import Fused, VariantOwners, source_costs

ONE, TWO, ELSEWHERE = SourceLine("f.py", 1, "f"), SourceLine("f.py", 2, "f"), SourceLine("g.py", 1, "g")
SOURCES = {"f.py": "a = b\nc = d\n", "g.py": "e\n"}


def variant(name, costs):
    owners = [Owner(lines, phase=phase) for lines, phase, _ in costs]
    means = [OwnerMean(number, "wall", "python", ns, 0.0) for number, (*_, ns) in enumerate(costs)]
    return VariantOwners(name, OwnerMeans(owners=owners, means=means, sources=SOURCES), "wall")


@pytest.fixture
def variants():
    return [
        variant("eager", [((ONE,), "forward", 30.0), ((ONE,), "backward", 12.0), ((ELSEWHERE,), "other", 5.0)]),
        variant("compiled", [((ONE, TWO), "forward", 20.0), ((TWO, ELSEWHERE), "forward", 25.0), ((), "other", 3.0)]),
    ]


def test_a_line_costs_what_it_takes_forward_and_backward(variants):
    assert source_costs(variants, "f.py").alone == {"eager": {1: 42.0}, "compiled": {}}
    assert source_costs(variants, "g.py").alone == {"eager": {1: 5.0}, "compiled": {}}


def test_what_was_fused_is_not_split_between_its_lines(variants):
    costs = source_costs(variants, "f.py")
    dearer, other = Fused("compiled", (TWO, ELSEWHERE), 25.0), Fused("compiled", (ONE, TWO), 20.0)
    assert costs.fused == (dearer, other)
    assert costs.fused_by_line() == {"eager": {}, "compiled": {1: 20.0, 2: 45.0}}
    assert [costs.total_ns(name) for name in ("eager", "compiled")] == [42.0, 45.0]


def test_a_file_that_was_not_captured_is_none_of_them(variants):
    with pytest.raises(KeyError):
        source_costs(variants, "h.py")
